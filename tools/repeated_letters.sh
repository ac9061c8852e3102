#!/bin/sh
# usage: tools/repeated_letters.sh COUNT SEED
# COUNT lines of 5 to 22 random letters that stand there twice. Who reads one can tell its second half by looking where the
# letter before stood last: what an induction head does (Olsson et al. 2022). The same lines for the same seed and awk.
set -eu
[ $# = 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
awk -v count="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; i++) {
        line = ""
        for (left = 5 + int(rand() * 18); left > 0; left--)
            line = line substr("abcdefghijklmnopqrstuvwxyz", 1 + int(rand() * 26), 1)
        print line line
    }
}'
