#!/bin/sh
# usage: [CXX=g++] tools/build_simdjson.sh FOLDER
# Makes FOLDER/libsimdjson.a, which Debian's package lacks and a static program needs, from Debian's source of the version
# that is installed. Needs the network; the packages and settings of this machine stay as they are.
set -eu
[ $# = 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
compiler=${CXX:-g++}
version=$(dpkg-query -W -f='${source:Version}' libsimdjson-dev)
mkdir -p lists/partial cache/archives/partial parts source
for list in /etc/apt/sources.list.d/*.sources; do
    if [ -f "$list" ]; then sed 's/^Types:.*/Types: deb-src/' "$list" >"parts/$(basename "$list")"; fi
done
if [ -f /etc/apt/sources.list ]; then sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >parts/main.list; fi
apt() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/parts" -o Dir::State::lists="$PWD/lists" \
        -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@"
}
apt update
apt --download-only source "simdjson=$version"
tar -xf simdjson_*.orig.tar.* -C source --strip-components=1
"$compiler" -std=c++17 -O2 -DNDEBUG -Isource/include -Isource/src -c source/src/simdjson.cpp -o simdjson.o
ar rcs libsimdjson.a simdjson.o
rm -rf lists cache parts source simdjson.o simdjson_*
