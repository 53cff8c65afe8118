#!/bin/sh
# Print 3.N.def of interpreters, from their headers, into a folder.
#   mk-layouts.sh OUT [INCLUDE...]   INCLUDE: a folder with Python.h (…/include/python3.14); INCLUDE,t: free-threaded
# Without INCLUDE: the newest release of each minor version found under version managers, /usr and PROBING_NEWER_ROOT.
# Headers of another system's root (…/ROOT/usr/include/python3.14) find that root's other headers beside them.
# LAYOUT_SOURCE: where the headers come from, for the first line, when that is no installed interpreter.
# LAYOUT_CPPFLAGS: more options for the compiler.
set -eu

# "minor patch folder" of every folder of headers with the internal ones (which 3.6 and older lack).
found() {
    for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/include/python3.* /usr/include/python3.* \
        /usr/local/include/python3.* "${PROBING_NEWER_ROOT:-/nonexistent}"/usr/include/python3.*; do
        [ -f "$folder/patchlevel.h" ] || continue
        release=$(awk '$2 == "PY_MINOR_VERSION" { minor = $3 } $2 == "PY_MICRO_VERSION" { print minor, $3 }' \
            "$folder/patchlevel.h")
        [ -d "$folder/internal" ] || [ "${release% *}" -le 6 ] || continue
        echo "$release $folder"
    done
}

# The newest of each minor version; from 3.13 on also as a free-threaded build compiles it.
newest() {
    found | sort -k1,1n -k2,2n | awk '{ at[$1] = $3 } END { for (minor in at) {
        print at[minor]; if (minor + 0 >= 13) print at[minor] ",t" } }'
}

here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
# shellcheck disable=SC2046 # folders of headers have no blanks in their names
[ $# -gt 0 ] || set -- $(newest)
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for include; do
    free=
    case $include in *,t) free=-DPy_GIL_DISABLED=1 include=${include%,t} ;; esac
    # shellcheck disable=SC2086 # no, one or several options
    ${CC:-cc} -w -O0 $free ${LAYOUT_CPPFLAGS-} -I"$include" -I"$include/internal" \
        -idirafter "$(dirname "$include")" -o "$work/mk" "$here/mk/mk.c"
    "$work/mk" "${LAYOUT_SOURCE-}" >"$work/def"
    version=$(sed -n 's/^LAYOUT_BEGIN([^"]*"\([^"]*\)".*/\1/p' "$work/def")
    mv "$work/def" "$out/$version.def"
    echo "$version from $include"
done
