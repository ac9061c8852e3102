#!/bin/sh
# usage: make VARIANT=coverage test && tools/coverage.sh [BUILD_FOLDER]
# Lines of each file of src/ that the tests ran, in percent, the least covered first (gcov's own counts).
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage}
[ -d "$build/obj" ] || { echo "$build: expected a folder that make VARIANT=coverage test has filled, got none" >&2; exit 2; }

find "$build/obj/src" -name '*.gcda' | while read -r data; do gcov -n "$data" 2>/dev/null; done |
    awk -F"[':% ]+" '
        /^File/ { file = $2 }
        /^Lines executed/ && file ~ /^src\// {
            lines = $NF; ran = lines * $3 / 100
            if (!(file in total) || ran > best[file]) { best[file] = ran; total[file] = lines }   # headers: the best view
            file = ""
        }
        END {
            for (f in total) { printf "%6.1f %%  %5d lines  %s\n", 100 * best[f] / total[f], total[f], f; all += total[f]; hit += best[f] }
            printf "%6.1f %%  %5d lines  all of src/\n", all ? 100 * hit / all : 0, all
        }' | sort -n
