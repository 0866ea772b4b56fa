#!/bin/sh
# Compiles the kernels of the checkers' tests, with lines of the source and 64-bit addresses. Version 22.43 of the compiler:
#     build.sh
# the current one (`cargo run -p xtask -- current-ocloc` names PROGRAM), into DEVICE-26.zebin:
#     OCLOC=PROGRAM SUFFIX=-26 DEVICES="pvc bmg" build.sh
set -eu
cd "$(dirname "$0")"
OCLOC=${OCLOC:-ocloc}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cp memory.cl "$WORK"
for device in ${DEVICES:-skl acm-g10 pvc}; do
    # Without the first internal option the file has no vISA, without the second some devices reach buffers through surfaces.
    (cd "$WORK" && "$OCLOC" compile -file memory.cl -device "$device" -out_dir "$device" -output memory --format zebin \
        -options "-cl-std=CL2.0 -g" \
        -internal_options "-ze-emit-zebin-visa-sections -cl-intel-greater-than-4GB-buffer-required") >"$WORK/log" 2>&1 || {
        cat "$WORK/log" >&2
        exit 1
    }
    python3 ../kernels/slim.py "$WORK/$device"/*.bin "$device${SUFFIX:-}.zebin" "$WORK/text/$device" memory
done
