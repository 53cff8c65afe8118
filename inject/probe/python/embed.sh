#!/bin/sh
# embed.sh SRCDIR FILE... > sources.inc: our Python as bytes, and the table of sources.h.
# The group is the folder below inject/probe; python/ is the ground, without a name.
set -eu
srcdir=$1
shift

group_of() {
    group=${1#inject/probe/}
    group=${group%%/*}
    [ "$group" != python ] || group=
}

array_of() {
    echo "source_${group}_$(basename "$1" .py)"
}

for file; do
    group_of "$file"
    echo "static const char $(array_of "$file")[] = {"
    od -An -v -tu1 -w16 "$srcdir/$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
    echo '0};'
done
echo 'const struct prb_py_source prb_py_sources[] = {'
for file; do
    group_of "$file"
    name=$(basename "$file" .py)
    label="$group $name"
    [ -n "$group" ] || label=$name
    [ "$group" != "$name" ] || label=$name # <probing crash>
    array=$(array_of "$file")
    echo "{\"$name\", \"<probing $label>\", \"$group\", $array, sizeof $array - 1},"
done
echo '{0}};'
