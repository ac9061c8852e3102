#!/bin/sh
# usage: [LINNET=build/linnet] tools/law_runs.sh TEXT DIR
# Makes the runs that tools/fit_law.sh fits the scaling law of `linnet plan` to: models of default runs' shapes
# (src/train/candidates.cpp) that read different amounts of TEXT (10 MB or more), one after another, on one thread. Runs that
# are in DIR already stay.
set -eu
[ $# = 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
text=$1 dir=$2
linnet=${LINNET:-build/linnet}
mkdir -p "$dir"
vocabulary=$dir/vocabulary.json
[ -f "$vocabulary" ] || "$linnet" tokenizer train --vocab-size 4096 -o "$vocabulary" --threads 1 --quiet "$text"

one() { # width layers heads ffn steps
    run=$dir/$1x$2-$5
    if grep -qs '"end"' "$run/log.jsonl"; then return; fi
    # As src/train/candidates.cpp has them.
    rate=$(awk -v w="$1" 'BEGIN { printf "%.1e", 6e-3 * (w > 128 ? 128 / w : 1) }')
    deviation=$(awk -v w="$1" 'BEGIN { printf "%.2g", 0.55 / sqrt(w) }')
    warmup=$(awk -v s="$5" 'BEGIN { w = int(s / 20); print (w < 10 ? 10 : w > 300 ? 300 : w) }')
    "$linnet" train --data "$text" --out "$run" --overwrite --steps "$5" --threads 1 --quiet \
        --set model.width="$1" --set model.layers="$2" --set model.heads="$3" --set model.ffn.width="$4" \
        --set model.context=128 --set model.init_std="$deviation" --set model.dropout=0 --set train.batch=16 \
        --set train.optimizer.lr="$rate" --set train.schedule.warmup="$warmup" --set train.validation_fraction=0.05 \
        --set train.eval_every="$5" --set train.checkpoint_every="$5" --set train.eval_batches=0 \
        --set train.sample_tokens=0 --set tokenizer.kind=file --set tokenizer.file="$vocabulary"
}
one 64 2 2 192 244
one 96 3 3 256 244
one 64 2 2 192 732
one 96 3 3 256 732
one 128 4 4 384 488
one 64 2 2 192 2441
one 96 3 3 256 1953
one 128 4 4 384 1465
one 128 3 4 384 2613
one 160 4 5 448 8599
