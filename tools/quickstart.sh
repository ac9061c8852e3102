#!/bin/sh
# usage: tools/quickstart.sh
# From a fresh clone to a model that writes: installs what the build needs and the machine lacks (apt, dnf, pacman or
# Homebrew; sudo where you are not root), builds, and lets the built-in model write a scene. Run it as often as you like.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
give_up() { say "quickstart: $*"; exit 1; }

case "${1:-}" in
    "") ;;
    -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
esac

compiler=${CXX:-g++}  # or several words: ccache g++

# One small program that needs everything the build needs: it answers "is anything missing?" better than any list.
can_build() {
    command -v make >/dev/null 2>&1 && command -v "${compiler%% *}" >/dev/null 2>&1 || return 1
    dir=$(mktemp -d)
    cat >"$dir/probe.cpp" <<'PROBE'
#include <CLI/CLI.hpp>
#include <doctest/doctest.h>
#include <histedit.h>
#include <nlohmann/json.hpp>
#include <png.h>
#include <span>
#include <utf8proc.h>
#include <zlib.h>
#include <simdjson.h>
#include <zstd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
int main() {
    char version[64];
    return pcre2_config(PCRE2_CONFIG_VERSION, version) < 0 || !utf8proc_version() || !zlibVersion() || !png_access_version_number() ||
           !ZSTD_versionNumber() || !simdjson::get_active_implementation() || !el_init;
}
PROBE
    if [ "$(uname -s)" = Darwin ]; then
        brew=$(brew --prefix 2>/dev/null || echo /usr/local)
        flags="-Xpreprocessor -fopenmp -I$brew/include" folders=-L$brew/lib
    else
        flags=-fopenmp folders=
    fi
    # As in the Makefile: OpenMP's pragmas are compiled, its library is not linked.
    # shellcheck disable=SC2086
    if { $compiler -std=c++20 $flags -DDOCTEST_CONFIG_DISABLE -c -o "$dir/probe.o" "$dir/probe.cpp" &&
        $compiler $folders -o "$dir/probe" "$dir/probe.o" -lpcre2-8 -lutf8proc -lpng -lz -lzstd -lsimdjson -ledit; } \
        >"$dir/log" 2>&1; then
        rm -rf "$dir"
        return 0
    fi
    missing=$(sed -n 's/.*fatal error: \([^:]*\):.*/\1/p; s/.*cannot find -l\([^:]*\).*/lib\1/p' "$dir/log" | head -n 1)
    rm -rf "$dir"
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        say "quickstart: sudo $*"
        sudo "$@"
    else
        give_up "cannot install packages: you are not root and there is no sudo. As root, run: $*"
    fi
}

install_packages() {
    if command -v apt-get >/dev/null 2>&1; then
        packages="g++ make libcli11-dev nlohmann-json3-dev doctest-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev libsimdjson-dev libedit-dev libpng-dev"
        say "quickstart: installing with apt: $packages"
        # shellcheck disable=SC2086
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $packages >&2
    elif command -v dnf >/dev/null 2>&1; then
        packages="gcc-c++ make cli11-devel json-devel doctest-devel pcre2-devel utf8proc-devel zlib-devel libzstd-devel simdjson-devel libedit-devel libpng-devel"
        say "quickstart: installing with dnf: $packages"
        # shellcheck disable=SC2086
        as_root dnf -y -q install $packages >&2
    elif command -v pacman >/dev/null 2>&1; then
        packages="gcc make cli11 nlohmann-json doctest pcre2 libutf8proc zlib zstd simdjson libedit libpng"
        say "quickstart: installing with pacman: $packages"
        # shellcheck disable=SC2086
        as_root pacman -Sy --needed --noconfirm $packages >&2
    elif command -v brew >/dev/null 2>&1; then
        packages="cli11 nlohmann-json doctest pcre2 utf8proc zstd simdjson libpng"
        say "quickstart: installing with Homebrew: $packages"
        # shellcheck disable=SC2086
        brew install $packages >&2
    else
        give_up "found none of apt-get, dnf, pacman and brew; please install a C++20 compiler, make, CLI11," \
            "nlohmann-json, doctest, PCRE2, utf8proc, zlib, zstd, simdjson, libedit and libpng, and run this again"
    fi
}

missing=
if can_build; then
    say "quickstart: everything that the build needs is here"
else
    install_packages || give_up "the package manager could not install what the build needs (see above; is there a network?)"
    can_build || give_up "packages were installed, but $compiler still cannot build against ${missing:-them}" \
        "(a compiler for C++20 is needed: g++ 12 or clang 14, or newer)"
fi

say "quickstart: building build/linnet (a minute or two the first time)"
make CXX="$compiler" >&2 || give_up "the build failed (see above)"
program=$(make -s CXX="$compiler" print-program)

say "quickstart: the built-in model writes a scene"
say ""
"$program" generate --prompt "ROMEO:" --echo --tokens 300 --ctx-shift --temp 0.8
say ""
say "quickstart: done. What next:"
say "    $program generate --help               other prompts, lengths, seeds"
say "    $program train --data YOUR.txt --out RUN    a model of your own text"
say "    make test                                  the tests"
