#!/bin/sh
# Compiles every kernel source for every device and keeps the zebins under bin/.
#
# usage: build.sh [name...]        without names: everything
#
# The kernels come from two compilers: version 22.43, for four devices, and with
#     OCLOC=PROGRAM SUFFIX=-26 DEVICES="acm-g10 pvc bmg" build.sh
# the current one (26.27), into bin/DEVICE-26. `cargo run -p xtask -- current-ocloc` gets one and names PROGRAM.
#
# Other options of the compiler and another place for the results, here as `cargo run -p xtask -- agree DIR` takes it:
#     OPTIONS=-cl-opt-disable BIN=DIR DEVICES="skl pvc" build.sh
#
# Needs ocloc (Debian: intel-opencl-icd) and python3. Beside the zebins, the
# .visaasm and .ze_info sections are written as plain text to $CORPUS for reading.
set -eu
case ${BIN:-} in "" | /*) ;; *) BIN=$PWD/$BIN ;; esac
cd "$(dirname "$0")"
HERE=$(pwd)

CORPUS=${CORPUS:-/tmp/visa-corpus}
OCLOC=${OCLOC:-ocloc}
SUFFIX=${SUFFIX:-}
DEVICES=${DEVICES:-skl tgllp acm-g10 pvc}
OPTIONS=${OPTIONS:-}
BIN=${BIN:-bin}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# Sources a device cannot compile, as name:device. No fp64 on Xe-LP and Xe-HPG, no sampler on Xe-HPC, 2D blocks only there.
# For Gen9 and Xe-LP the compiler does not come back from recursion. Version 22.43 (a device with -22) knows no assert, and
# devices have no cl_ext_float_atomics with it.
EXCLUDED="
gemm_tile:skl gemm_tile:tgllp gemm_tile:acm-g10
double:tgllp double:acm-g10
convert_double:tgllp convert_double:acm-g10
image_sample:pvc image_access:pvc image_filter:pvc image_samples:pvc image_write:pvc-26 image_samples:acm-g10-26
call_ids:skl call_ids:tgllp
assert:skl-22 assert:tgllp-22 assert:acm-g10-22 assert:pvc-22
float_atomics:skl-22 float_atomics:tgllp-22 float_atomics:acm-g10-22 float_atomics:pvc-22
"

# Further builds of a source under another name, as name:source:environment.
VARIANTS="
call_stack:call:IGC_FunctionControl=3
"

# Sources that need extensions which Intel's driver only names when graphics is there.
EXTENDED="
image_samples
"

excluded() {
    case " $(echo $EXCLUDED) " in *" $1:$2 "* | *" $1:$2${SUFFIX:--22} "*) return 0 ;; esac
    return 1
}

compile() {
    name=$1 device=$2
    source=$name environment=
    for entry in $VARIANTS; do
        case $entry in "$name":*)
            entry=${entry#*:}
            source=${entry%%:*} environment=${entry#*:}
            ;;
        esac
    done
    extensions=
    case " $(echo $EXTENDED) " in *" $name "*) extensions=" -cl-ext=+all" ;; esac
    out="$WORK/$device/$name"
    mkdir -p "$out" "$BIN/$device$SUFFIX"
    # From its own folder: the compiler leaves a file behind where it runs.
    if ! (cd "$out" && env $environment $OCLOC compile -file "$HERE/$source.cl" -device "$device" \
        -out_dir "$out" -output "$name" --format zebin -options "-cl-std=CL2.0 $OPTIONS" \
        -internal_options "-ze-emit-zebin-visa-sections$extensions") >"$out/$name.log" 2>&1; then
        echo "$name: ocloc fails for $device" >&2
        cat "$out/$name.log" >&2
        return 1
    fi
    python3 slim.py "$out"/*.bin "$BIN/$device$SUFFIX/$name.zebin" "$CORPUS/$device$SUFFIX" "$name"
}

[ $# -gt 0 ] || set -- $(ls *.cl | sed 's/\.cl$//') $(for entry in $VARIANTS; do echo "${entry%%:*}"; done)
status=0
for name in "$@"; do
    for device in $DEVICES; do
        if excluded "$name" "$device"; then
            rm -f "$BIN/$device$SUFFIX/$name.zebin"
        else
            compile "$name" "$device" || status=1
        fi
    done
done
du -sh "$BIN"
exit $status
