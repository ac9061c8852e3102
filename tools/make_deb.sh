#!/bin/sh
# usage: [STRIP=strip] [MAKE=make] tools/make_deb.sh BUILD_FOLDER
# Packs BUILD_FOLDER/linnet, with its manual pages and completions, as BUILD_FOLDER/linnet_VERSION_ARCH.deb. The same
# commit gives the same bytes. `make deb` calls this.
set -eu
[ $# = 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
build=$1
command -v dpkg-deb >/dev/null || { echo "make_deb: expected dpkg-deb (package dpkg), found none" >&2; exit 1; }
umask 022
version=$(sed -n 's/.*version_number = "\([^"]*\)".*/\1/p' src/commands/version.cpp)
machine=$("${CXX:-g++}" -dumpmachine)
case $machine in
    x86_64-*) arch=amd64 ;;
    aarch64-*) arch=arm64 ;;
    *) arch=$(dpkg --print-architecture) ;;
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
maintainer="the linnet authors <linnet@packages.invalid>"

work=$build/deb
root=$work/root
rm -rf "$work"
mkdir -p "$work/debian" "$root/DEBIAN"
"${MAKE:-make}" --no-print-directory run-install DESTDIR="$PWD/$root" PREFIX=/usr >/dev/null
"${STRIP:-strip}" --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/linnet"
# Debian's folder for zsh functions of packages is its own.
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_linnet" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
gzip -9n "$root"/usr/share/man/man1/*.1

doc=$root/usr/share/doc/linnet
rm "$doc/LICENSE"  # a package says it in `copyright`
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: linnet"
    echo
    echo "Files: *"
    echo "Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)"
    echo "License: Expat"
    sed -n '5,$s/^/ /p' LICENSE | sed 's/^ $/ ./'
} >"$doc/copyright"
printf 'linnet (%s) unstable; urgency=medium\n\n  * Built from revision %s.\n\n -- %s  %s\n' "$version" \
    "$(git describe --always 2>/dev/null || echo unknown)" "$maintainer" "$date" | gzip -9n >"$doc/changelog.gz"

# Which packages hold the libraries that the program names; a set for Debian 12 where that cannot be asked.
depends="libc6 (>= 2.34), libedit2, libgcc-s1, libpcre2-8-0, libpng16-16, libsimdjson14, libstdc++6 (>= 12), libutf8proc2, libzstd1, zlib1g"
if command -v dpkg-shlibdeps >/dev/null && [ "$arch" = "$(dpkg --print-architecture)" ]; then
    printf 'Source: linnet\n\nPackage: linnet\nArchitecture: any\n' >"$work/debian/control"
    depends=$(cd "$work" && dpkg-shlibdeps -O root/usr/bin/linnet 2>shlibdeps.log | sed -n 's/^shlibs:Depends=//p')
    [ -n "$depends" ] || { cat "$work/shlibdeps.log" >&2; exit 1; }
fi

cat >"$root/DEBIAN/control" <<CONTROL
Package: linnet
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -k -s --apparent-size "$root/usr" | cut -f 1)
Depends: $depends
Section: science
Priority: optional
Description: train and run language models on the CPU
 linnet takes a text file to a running language model in one program: it
 trains a tokenizer and a transformer on the text, writes GGUF files that
 llama.cpp and its relatives load, measures a model and generates from it.
 It needs no GPU, no network and no Python; a small model is built in.
CONTROL
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

package=$build/linnet_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
rm -rf "$work"
echo "$package"
