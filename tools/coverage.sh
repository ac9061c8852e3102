#!/bin/sh
# usage: make coverage, or tools/coverage.sh [BUILD_FOLDER] after make VARIANT=coverage test
# Lines and branches of src/ that the tests ran, by file, the least covered first, and then by folder. A branch is a
# side of a condition; the ways out of a call by an exception, which the compiler counts too, are left out, and so are
# lines of closing brackets, where all that branches is the end of objects. A header counts as covered where any file
# that includes it covers it, a test too: of an inline function the linker takes whichever object comes first.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage}
[ -d "$build/obj" ] || { echo "$build: expected a folder that make VARIANT=coverage test has filled, got none" >&2; exit 2; }

table=$(mktemp)
trap 'rm -f "$table"' EXIT
# gcov's JSON, cut at every "{": a line of the source, then its branches, then the line's own numbers, and after all
# lines of a file its name.
find "$build/obj" -name '*.gcda' -exec gcov --relative-only --branch-probabilities --json-format --stdout {} + |
    awk 'BEGIN { RS = "{" }
        function close_branches(   i) {
            for (i = 1; i + 1 <= sides; i += 2)
                if (!throws[i] && !throws[i + 1]) { found[++n] = line " " i " " count[i]; found[++n] = line " " i + 1 " " count[i + 1] }
            sides = 0
        }
        # Which lines of the source are nothing but closing brackets.
        function find_closing(file,   text, number) {
            if (file in known) return
            known[file] = 1
            RS = "\n"
            while ((getline text < file) > 0) { number++; if (text ~ /^[ \t]*[]});,]+$/) closing[file " " number] = 1 }
            close(file)
            RS = "{"
        }
        /"fallthrough":/ {
            match($0, /"count": [0-9]+/); count[++sides] = substr($0, RSTART + 9, RLENGTH - 9)
            throws[sides] = /"throw": true/
        }
        /"line_number":/ {
            match($0, /"line_number": [0-9]+/); line = substr($0, RSTART + 15, RLENGTH - 15)
            match($0, /"count": [0-9]+, "line_number"/); ran[++lines] = line " " substr($0, RSTART + 9, RLENGTH - 24)
            close_branches()
        }
        /"file": "/ {
            match($0, /"file": "[^"]*/); file = substr($0, RSTART + 9, RLENGTH - 9)
            if (file ~ /^src\//) {
                find_closing(file)
                for (i = 1; i <= lines; i++) { split(ran[i], r, " "); l[file " " r[1]] += r[2] }
                for (i = 1; i <= n; i++) { split(found[i], r, " "); if (!(file " " r[1] in closing)) b[file " " r[1] " " r[2]] += r[3] }
            }
            lines = n = 0
        }
        END {
            for (k in l) { split(k, r, " "); all_lines[r[1]]++; if (l[k]) hit_lines[r[1]]++ }
            for (k in b) { split(k, r, " "); all_sides[r[1]]++; if (b[k]) hit_sides[r[1]]++ }
            for (f in all_lines) print f, hit_lines[f] + 0, all_lines[f], hit_sides[f] + 0, all_sides[f] + 0
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
