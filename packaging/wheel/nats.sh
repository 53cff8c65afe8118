#!/bin/sh
# packaging/wheel/nats.sh ROOT: libnats for the wheel, compiled in the root folder of Debian 11, which has no package of it.
# The source is the one that Ubuntu 24.04 has, of Ubuntu's archive as debootstrap knows it; whoever gives it, its bytes are these or it is
# refused.  It is installed as a package of that root, so that vendor.py finds its version and licence as those of the others.  NATS
# Streaming, which nothing here uses, is left out, and with it protobuf.  Status 77 when it cannot be had.
set -eu
root=${1:?usage: packaging/wheel/nats.sh ROOT}
version=3.7.0
sum=6570e3c1be5d4d6040fd620d2318299e59045b7dc6c88d49c6168a3088d44ea2
archive=$(sed -n 's/.*default_mirror \(http.*\)/\1/p' /usr/share/debootstrap/scripts/gutsy | grep -v old- | head -n 1)

# shellcheck disable=SC2016 # the inner shell expands these
unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" /usr/bin/env -i LC_ALL=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "$1" "$2" "$3" "$4"' "$root" '
version=$0 soname=libnats.so.${0%.*} work=/tmp/nats
[ "$(dpkg-query -W -f "\${Status} \${Version}" nats.c 2>/dev/null)" != "install ok installed $version" ] || exit 0
rm -rf "$work" && mkdir "$work" && cd "$work"
/usr/lib/apt/apt-helper download-file "$2/pool/universe/n/nats.c/nats.c_$version.orig.tar.gz" source.tar.gz "SHA256:$1" || exit 77
tar xf source.tar.gz && cd "nats.c-$version"
top=$work/package lib=usr/lib/$(gcc -print-multiarch)
mkdir -p "$top/DEBIAN" "$top/$lib" "$top/usr/include/nats" "$top/usr/share/doc/nats.c"
gcc -std=gnu99 -O2 -fPIC -shared -pthread -ffile-prefix-map="$PWD=." -D_GNU_SOURCE -D_REENTRANT -DLINUX -DNATS_HAS_TLS -DNATS_USE_OPENSSL_1_1 \
    -DNATS_FORCE_HOST_VERIFICATION -Isrc/include -Isrc/unix -Wl,-soname,"$soname" -o "$top/$lib/$soname" src/*.c src/unix/*.c -lssl -lcrypto -lrt
ln -s "$soname" "$top/$lib/libnats.so"
cp src/nats.h src/status.h src/version.h "$top/usr/include/nats"
{ grep -h "^// Copyright" -r src | sort -u && echo && cat LICENSE; } >"$top/usr/share/doc/nats.c/copyright"
printf "%s\n" "Package: nats.c" "Version: $version" "Architecture: $(dpkg --print-architecture)" "Maintainer: Probing maintainers <maintainers@probing.invalid>" \
    "Description: client of the NATS bus, without NATS Streaming" >"$top/DEBIAN/control"
dpkg-deb --root-owner-group -b "$top" "$work/nats.deb" && dpkg -i "$work/nats.deb"
ldconfig; cd / && rm -rf "$work" /probing/build
' "$version" "$sum" "$archive"
