#!/bin/sh
# Compiles every kernel source for every device and keeps the zebins under bin/.
#
# usage: build.sh [name...]        without names: everything
#
# Needs ocloc (Debian: intel-opencl-icd), objcopy and python3. Beside the zebins, the
# .visaasm and .ze_info sections are written as plain text to $CORPUS for reading.
set -eu
cd "$(dirname "$0")"

CORPUS=${CORPUS:-/tmp/visa-corpus}
DEVICES="skl tgllp acm-g10 pvc"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# Sources a device cannot compile, as name:device. No fp64 on Xe-LP and Xe-HPG.
EXCLUDED="
double:tgllp double:acm-g10
convert_double:tgllp convert_double:acm-g10
"

# Options beyond the default -cl-std=CL2.0, as name:option.
EXTRA_OPTIONS="
"

excluded() {
    case " $(echo $EXCLUDED) " in *" $1:$2 "*) return 0 ;; esac
    return 1
}

options() {
    printf '%s' "-cl-std=CL2.0"
    for entry in $EXTRA_OPTIONS; do
        [ "${entry%%:*}" = "$1" ] && printf ' %s' "${entry#*:}"
    done
    return 0
}

compile() {
    name=$1 device=$2
    out="$WORK/$device"
    mkdir -p "$out" "bin/$device"
    if ! ocloc compile -file "$name.cl" -device "$device" -out_dir "$out" -output "$name" \
        --format zebin -options "$(options "$name")" \
        -internal_options "-ze-emit-zebin-visa-sections" >"$out/$name.log" 2>&1; then
        echo "FAILED: $name for $device" >&2
        cat "$out/$name.log" >&2
        return 1
    fi
    python3 slim.py "$out/${name}"*.bin "bin/$device/$name.zebin" "$CORPUS/$device" "$name"
}

[ $# -gt 0 ] || set -- $(ls *.cl | sed 's/\.cl$//')
status=0
for name in "$@"; do
    for device in $DEVICES; do
        if excluded "$name" "$device"; then
            rm -f "bin/$device/$name.zebin"
        else
            compile "$name" "$device" || status=1
        fi
    done
done
du -sh bin
exit $status
