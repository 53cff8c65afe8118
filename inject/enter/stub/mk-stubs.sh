#!/bin/sh
# inject/enter/stub/mk-stubs.sh [DIR]: assemble the stubs with clang, which knows every processor, and write
# their bytes to DIR/NAME.h (default: beside the sources).  To be run after a change of a stub or of
# inject/enter/stub.h; tests/inject compares.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in "$here"/*.S; do
    name=$(basename "$source" .S)
    "${CLANG:-clang}" --target="$name-linux-gnu" -c -x assembler-with-cpp "$source" -o "$work/o"
    "${OBJCOPY:-llvm-objcopy}" -O binary --only-section=.text "$work/o" "$work/text"
    {
        echo "/* inject/enter/stub/$name.S, assembled by mk-stubs.sh. */"
        od -An -v -tx1 -w12 "$work/text" | sed 's/ \(..\)/0x\1, /g; s/ $//'
    } >"$out/$name.h"
done
