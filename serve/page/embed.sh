#!/bin/sh
# embed.sh INDEX FILE...: the page as C, for assets.c: HASH of all files, index_html, and assets, compressed.
# Modules import one another by their file name: the one name that npm's modules use for another is written so.
set -eu
index=$1
shift

served() {
    sed 's|from"preact"|from"./preact.js"|g; /^\/\/# sourceMappingURL=/d' "$1"
}

type_of() {
    case $1 in
    *.js) echo 'text/javascript; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.svg) echo 'image/svg+xml' ;;
    esac
}

hash=$(for file in "$index" "$@"; do
    echo "$file" | sed 's|.*/||'
    served "$file"
done | sha256sum | cut -c1-16)

echo '/* Made by embed.sh. */'
echo "#define HASH \"$hash\""
echo 'static const char index_html[] ='
sed "s|@HASH@|$hash|g"'; s/[\\"]/\\&/g; s/.*/    "&\\n"/' "$index"
echo '    ;'
for file in "$@"; do
    name=${file##*/}
    symbol=$(echo "$name" | tr -c 'A-Za-z0-9\n' _)
    echo "static const unsigned char data_${symbol}[] = {"
    served "$file" | gzip -9n | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
done
echo 'static const struct asset assets[] = {'
for file in "$@"; do
    name=${file##*/}
    symbol=$(echo "$name" | tr -c 'A-Za-z0-9\n' _)
    echo "    {\"$name\", \"$(type_of "$name")\", data_$symbol, sizeof data_$symbol},"
done
echo '    {0}};'
