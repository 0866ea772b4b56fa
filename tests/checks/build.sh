#!/bin/sh
# Compiles the kernels of the checkers' tests, with lines of the source and 64-bit addresses, each source to DEVICE.zebin or, of
# the others, such as barrier.cl, barrier-DEVICE.zebin. Version 22.43 of the compiler:
#     build.sh
# the current one (`cargo run -p xtask -- current-ocloc` names PROGRAM), into DEVICE-26.zebin:
#     OCLOC=PROGRAM SUFFIX=-26 DEVICES="pvc bmg" OPTIONS=-DSPLIT build.sh
# SOURCES="barrier" compiles only that one. Only the current compiler knows split barriers.
set -eu
cd "$(dirname "$0")"
OCLOC=${OCLOC:-ocloc}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
for source in ${SOURCES:-memory barrier race init read_only alignment}; do
    case $source in
    memory) prefix= ;;
    *) prefix=$source- ;;
    esac
    cp "$source.cl" "$WORK"
    for device in ${DEVICES:-skl acm-g10 pvc}; do
        # Without the first internal option the file has no vISA, without the second some devices reach buffers through surfaces.
        (cd "$WORK" && "$OCLOC" compile -file "$source.cl" -device "$device" -out_dir "$source/$device" -output "$source" \
            --format zebin -options "-cl-std=CL2.0 -g ${OPTIONS:-}" \
            -internal_options "-ze-emit-zebin-visa-sections -cl-intel-greater-than-4GB-buffer-required") >"$WORK/log" 2>&1 || {
            cat "$WORK/log" >&2
            exit 1
        }
        python3 ../kernels/slim.py "$WORK/$source/$device"/*.bin "$prefix$device${SUFFIX:-}.zebin" "$WORK/text/$source/$device" \
            "$source"
    done
done
