#!/bin/sh
# Print 3.N.def of interpreters, from their headers, into a folder.
#   mk-layouts.sh OUT INCLUDE...     INCLUDE: a folder with Python.h (…/include/python3.14); INCLUDE,t: free-threaded
# Headers of another system's root (…/ROOT/usr/include/python3.14) find that root's other headers beside them.
# LAYOUT_SOURCE: where the headers come from, for the first line, when that is no installed interpreter.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for include; do
    free=
    case $include in *,t) free=-DPy_GIL_DISABLED=1 include=${include%,t} ;; esac
    # shellcheck disable=SC2086 # $free is one word or none
    ${CC:-cc} -w -O0 $free ${LAYOUT_CPPFLAGS-} -I"$include" -I"$include/internal" \
        -idirafter "$(dirname "$include")" -o "$work/mk" "$here/mk/mk.c"
    "$work/mk" "${LAYOUT_SOURCE-}" >"$work/def"
    version=$(sed -n 's/^LAYOUT_BEGIN([^"]*"\([^"]*\)".*/\1/p' "$work/def")
    mv "$work/def" "$out/$version.def"
done
