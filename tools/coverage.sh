#!/bin/sh
# usage: make coverage, or tools/coverage.sh [BUILD_FOLDER] after make VARIANT=coverage CXX=clang++ test
# Lines and branches of src/ that the tests ran, by file, the least covered first, and then by folder. A branch is a
# side of a condition of the source: of if, a loop, ?:, && and ||, and a case of a switch. One of a template counts
# once, as taken where any instance took it; conditions that are constant are left out. Needs llvm-profdata and llvm-cov
# (Debian: llvm) of the clang++ that built.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage-clang}
if [ -z "$(find "$build/profiles" -name '*.profraw' 2>/dev/null)" ]; then
    echo "$build: expected a folder where make VARIANT=coverage CXX=clang++ test has left profiles, got none" >&2
    exit 2
fi

table=$(mktemp)
trap 'rm -f "$table"' EXIT
# A process that a test kills while it writes leaves a profile that cannot be read: the others count.
llvm-profdata merge --failure-mode=all -o "$build/coverage.profdata" "$build"/profiles/*.profraw
# The sources as "LINE|COUNT|TEXT", after a line its conditions, those of every instance of a template.
llvm-cov show --instr-profile="$build/coverage.profdata" --show-branches=count --show-instantiations=false "$build/linnet" |
    awk -F'|' '
        /^[^ |]*:$/ { file = substr($0, 1, length($0) - 1); sub(/^.*\/src\//, "src/", file) }
        $1 ~ /^ *[0-9]+$/ && $2 ~ /[0-9]/ { lines[file]++; if ($2 !~ /^ *0$/) run[file]++ }
        match($0, /Branch \([0-9]+:[0-9]+\): \[True: [^,]*, False: /) && $1 ~ /^ *$/ {
            at = substr($0, RSTART + 8); sub(/\).*/, "", at)
            true = substr($0, RSTART, RLENGTH); sub(/^.*True: /, "", true); sub(/,.*/, "", true)
            false = substr($0, RSTART + RLENGTH); sub(/\].*/, "", false)
            side[file "|" at "|true"] += true != "0"
            side[file "|" at "|false"] += false != "0"
        }
        END {
            for (s in side) { split(s, part, "|"); sides[part[1]]++; if (side[s]) taken[part[1]]++ }
            for (f in lines) if (f ~ /^src\//) print f, run[f] + 0, lines[f], taken[f] + 0, sides[f] + 0
        }' >"$table"

# show KEY: the sums over what KEY (awk, of a file name in f) makes of the files.
show() {
    awk "function key(f) { $1 }"'
        { k = key($1); a[k] += $2; b[k] += $3; c[k] += $4; d[k] += $5 }
        function percent(part, whole) { return whole ? 100 * part / whole : 100 }
        END { for (k in a) printf "%6.1f %% of %5d  %6.1f %% of %5d  %s\n", percent(a[k], b[k]), b[k], percent(c[k], d[k]), d[k], k }
    ' "$table" | sort -n
}
echo "           lines         branches"
show 'return f'
echo
show 'sub("/[^/]*$", "/", f); return f'
show 'return "all of src/"'
