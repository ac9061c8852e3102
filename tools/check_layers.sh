#!/bin/sh
# usage: [CXX=g++] tools/check_layers.sh
# Fails where a file of src/ includes, directly or through others, a folder that stands above its own; where a folder
# has no README.md or more than 4000 lines of its own; where a source file is longer than 600 lines; where an include is
# not written from src/; where two headers define a type of one name in one namespace.
set -eu
cd "$(dirname "$0")/.."

# From the ground up. A folder inside another is a row of its own.
rooms="base tensor kernels/simd kernels/types kernels/blocks kernels/bf16 kernels ops ops/attention graph formats
    text text/unicode text/split text/encode text/files text/train text/inspect text/chat
    data data/labelled model/config model/trace model model/look model/engine model/quantize model/huggingface model/convert model/encode train/optimize train/report train/task train/step train train/forecast generate/sampling generate/grammar generate chat commands commands/bench commands/generate commands/chat commands/inspect commands/examine commands/tokenize commands/help"
longest=600
largest=4000
compiler=${CXX:-g++}  # may be several words: ccache g++
$compiler --version >/dev/null
failed=$(mktemp)
read_by=$(mktemp -d)
trap 'rm -rf "$failed" "$read_by"' EXIT
complain() { echo "$1" >&2; echo x >>"$failed"; }

rooms=$(echo $rooms)
for folder in $(find src -mindepth 1 -type d | sort); do
    room=${folder#src/}
    case " $rooms " in *" $room "*) ;; *) complain "$folder/: expected one of the folders $rooms" ;; esac
    [ -f "$folder/README.md" ] || complain "$folder/README.md: expected the folder's one-screen description, got nothing"
    lines=$(find "$folder" -maxdepth 1 \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' \) -exec cat {} + | wc -l)
    [ "$lines" -le $largest ] || complain "$folder/: expected at most $largest lines of its own, got $lines"
done

find src tests tools -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.sh' \) -exec wc -l {} + |
    awk -v longest=$longest '$2 != "total" && $1 > longest { print $2 ": expected at most " longest " lines, got " $1 }' |
    while read -r line; do complain "$line"; done

grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' src | grep -vE '"([a-z_0-9]+/)+[A-Za-z_0-9.]+"' |
    while read -r line; do complain "$line: expected an include written from src/"; done

# Two types of one name, each seen by files of its own, break the one-definition rule, and no compiler says so.
find src -type f -name '*.h' -exec awk '
    FNR == 1 { depth = 0; space[0] = "" }
    /^(inline )?namespace .*\{$/ { space[depth + 1] = space[depth] "::" ($(NF - 1) == "namespace" ? "" : $(NF - 1)); depth++ }
    /^}  \/\/ namespace/ { depth-- }
    /^(struct|class|union|enum) / && !/^[^{]*;$/ && space[depth] !~ /::$/ {  # not in a namespace without a name
        name = $0
        sub(/^(struct|class|union|enum class|enum) (alignas\([^)]*\) |\[\[[a-z_]+\]\] )?/, "", name)
        if (!match(name, /^[A-Za-z_0-9]+/) || substr(name, RLENGTH + 1, 1) == "<") next
        name = space[depth] "::" substr(name, 1, RLENGTH)
        if (name in defined && defined[name] != FILENAME)
            print FILENAME ": expected a name of its own, got " substr(name, 3) ", which " defined[name] " has"
        defined[name] = FILENAME
    }' {} + | sort | while read -r line; do complain "$line"; done

# The preprocessor's own answer to what each file reads. -MG: headers of another machine's compiler (arm_neon.h).
# Each process writes a file of its own: in one pipe their lines would mix.
# shellcheck disable=SC2016
find src -type f \( -name '*.cpp' -o -name '*.h' \) -print0 |
    xargs -0 -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh -c '
        { $0 -std=c++20 -Isrc -fopenmp -MM -MG -MT "$2:" -x c++ "$2" 2>/dev/null | tr -d "\\\\\n"; echo; } >"$1/$$"
        ' "$compiler" "$read_by"
cat "$read_by"/* |
    awk -v rooms="$rooms" '
        BEGIN { n = split(rooms, list, " "); for (i = 1; i <= n; i++) row[list[i]] = i; row["main.cpp"] = n + 1 }
        function folder_of(path) { sub(/^src\//, "", path); sub(/\/[^\/]*$/, "", path); return path }
        {
            file = $1; sub(/:+$/, "", file); from = folder_of(file)
            for (i = 2; i <= NF; i++)
                if ($i ~ /^src\// && row[folder_of($i)] > row[from])
                    print file ": expected nothing above src/" from ", got " $i
        }' | sort -u | while read -r line; do complain "$line"; done

[ ! -s "$failed" ]
