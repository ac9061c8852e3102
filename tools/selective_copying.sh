#!/bin/sh
# usage: tools/selective_copying.sh COUNT SEED [mixed]
# The task of selective copying (Gu & Dao 2023, section 4.1.1) as COUNT lines of JSON, a prompt and its completion each:
# 16 symbols scattered among 256 positions, and the symbols in their order. With "mixed" 1 to 16 symbols among at most 256
# positions, to learn from. The same lines for the same seed and the same awk.
set -eu
case "$#:${3:-mixed}" in
    2:mixed | 3:mixed) ;;
    *) sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
esac
awk -v count="$1" -v seed="$2" -v mixed="${3:-}" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; i++) {
        left = mixed ? 1 + int(rand() * 16) : 16
        positions = mixed ? left + int(rand() * (257 - left)) : 256
        prompt = answer = ""
        for (p = 0; p < positions; p++) {
            c = "."
            if (rand() * (positions - p) < left) {
                c = substr("abcdefghijklmnop", 1 + int(rand() * 16), 1)
                answer = answer c; left--
            }
            prompt = prompt c
        }
        printf "{\"prompt\":\"%s|\",\"completion\":\"%s\"}\n", prompt, answer
    }
}'
