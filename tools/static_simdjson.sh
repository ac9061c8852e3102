#!/bin/sh
# usage: [CXX=g++] [AR=ar] tools/static_simdjson.sh OUT/libsimdjson.a
# Puts a static simdjson at OUT: the system's own where it has one (Fedora, Homebrew, a build of yours). Debian's
# package has only the shared library; there it is made of Debian's source package of the version installed, which
# apt fetches and verifies. `make static` calls this.
set -eu
[ $# = 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
out=$1
compiler=${CXX:-g++}
mkdir -p "$(dirname "$out")"
found=$("$compiler" -print-file-name=libsimdjson.a)
if [ "$found" != libsimdjson.a ]; then
    cp "$found" "$out"
    exit 0
fi
if ! dpkg -s libsimdjson-dev >/dev/null 2>&1 || ! command -v apt-get >/dev/null; then
    echo "static_simdjson: expected libsimdjson.a where $compiler looks for libraries, found none" >&2
    exit 1
fi

work=$(cd "$(mktemp -d)" && pwd)
trap 'rm -rf "$work"' EXIT
version=$(dpkg-query -W -f '${source:Version}' libsimdjson-dev)
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$work/list"
apt() {
    apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
}
echo "fetch   simdjson $version (source)"
(cd "$work" && apt update && apt source --download-only "simdjson=$version" && tar -xf simdjson_*.orig.tar.* --strip-components=1)
"$compiler" -std=c++17 -O2 -I"$work/include" -I"$work/src" -c "$work/src/simdjson.cpp" -o "$work/simdjson.o"
"${AR:-ar}" rc "$work/libsimdjson.a" "$work/simdjson.o"
mv "$work/libsimdjson.a" "$out"
