#!/bin/sh
# usage: tools/guess_tokens.sh MODEL TRAIN TEST
# How many of TEST's tokens are guessed without a model: always the commonest token of TRAIN, and the one that comes most
# often in TRAIN behind the token before (the commonest where that never came). For comparison with the accuracy that
# `linnet eval` gives of an encoder that fills masks. MODEL is whose vocabulary counts; LINNET: the program (build/linnet).
set -eu
[ $# = 3 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
linnet=${LINNET:-build/linnet}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$linnet" tokenize -t "$1" "$2" > "$work/train"
"$linnet" tokenize -t "$1" "$3" > "$work/test"
# Of equally common ones the smallest id, so that the order in which awk walks a table says nothing.
tr -s ' \n' '\n\n' < "$work/train" > "$work/ids"
tr -s ' \n' '\n\n' < "$work/test" | awk '
    NR == FNR { if (FNR > 1) pair[before " " $1]++; single[$1]++; before = $1; next }
    FNR == 1 {
        for (id in single)
            if (single[id] > single[common] || (single[id] == single[common] && id + 0 < common + 0)) common = id
        for (p in pair) {
            split(p, of, " ")
            if (pair[p] > most[of[1]] || (pair[p] == most[of[1]] && of[2] + 0 < next_of[of[1]] + 0)) {
                most[of[1]] = pair[p]; next_of[of[1]] = of[2]
            }
        }
        before = $1; next
    }
    { n++; unigram += $1 == common; bigram += $1 == (before in next_of ? next_of[before] : common); before = $1 }
    END {
        if (!n) { print "guess_tokens: no tokens in the second text" > "/dev/stderr"; exit 1 }
        printf "unigram %.4f  bigram %.4f  tokens %d\n", unigram / n, bigram / n, n
    }' "$work/ids" -
