#!/usr/bin/env bash
# Makes the n-th file operation of every command that writes go wrong, for every n (or every EVERY-th), and checks what
# is left: exit codes, the old or the new under every final name, and a second start that ends in the right bytes.
#
#   run.sh LINNET SHIM.so [EVERY [ROWS]]     ROWS: only commands whose names below match this pattern, such as 'convert*'
set -u
linnet=$(realpath "$1") shim=$(realpath "$2") every=${3:-1} rows=${4:-*}
place=$(mktemp -d "${TMPDIR:-/tmp}/linnet-faults-XXXXXX")
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
export OMP_NUM_THREADS=2

for i in $(seq 200); do echo "one two three four five six seven eight nine ten"; done > text
{ cat text text; echo eleven; } > more
cat > config <<'JSON'
{"model": {"context": 32, "width": 16, "layers": 1, "heads": 2}, "tokenizer": {"kind": "char"},
 "train": {"batch": 4, "steps": 6, "eval_every": 3, "eval_batches": 1, "checkpoint_every": 2, "sample_tokens": 4,
           "optimizer": {"lr": 0.01}, "schedule": {"warmup": 2}}}
JSON
"$linnet" --quiet tokenizer train --vocab-size 270 -o t.json text || exit 1

run="$linnet --quiet train config --data text --threads 1 --out out"
# With a vocabulary that a Hugging Face folder can hold.
"$linnet" --quiet train config --data text --threads 1 --out base --set tokenizer.kind=file \
    --set tokenizer.file=t.json || exit 1
m=$PWD/base/model.gguf
tune="$linnet --quiet finetune -m $m --lora 2 --data text --threads 1 --set train.batch=4 --set train.sequence=32
      --set train.steps=4 --set train.eval_every=2 --set train.eval_batches=1 --set train.checkpoint_every=2
      --set train.sample_tokens=4 --out out"
tune=$(echo $tune)
$tune > /dev/null 2>&1 && mv out/adapter.gguf a.gguf && rm -r out || exit 1
# Two of llama2.c's checkpoints, each of one byte again and again; their vocabularies differ in the first token.
for name in c d; do
    mkdir $name
    printf '%b' '\x8\0\0\0\x10\0\0\0\x1\0\0\0\x2\0\0\0\x2\0\0\0\x8\0\0\0\x4\0\0\0' > $name/m.bin
    head -c 2976 /dev/zero | tr '\0' $name >> $name/m.bin
    { printf '%b' '\x1\x1\x1\x1'; for token in $name s t u v w x y; do printf '\0\0\0\0\x1\0\0\0%s' $token; done } > $name/tokenizer.bin
done
to_folder="$linnet --quiet convert $m out"
to_llmc="$linnet --quiet convert $m out/x.bin --type f32"
to_llama2c="$linnet --quiet convert $PWD/c/m.bin out/x.bin"
to_peft="$linnet --quiet convert $PWD/a.gguf out --base $m"
nano="$linnet --quiet corpus -t t.json --threads 2 --format nanogpt --no-end-tokens -o out"
corpus="$linnet --quiet corpus -t t.json --threads 2 --shard-tokens 700 -o out"
# name @ what makes what is there before @ the command @ what makes it good again
table=(
    "train, fresh@@$run@$run --resume || $run --overwrite"
    "train, finished@$run@$run --resume@$run --resume"
    "train, over another@$run --set train.optimizer.lr=0.02@$run --overwrite@$run --overwrite"
    "corpus, fresh@@$corpus text@$corpus --resume text"
    "corpus, over another@$corpus more@$corpus --overwrite text@$corpus --overwrite text"
    "corpus of one text, nanoGPT's, fresh@@$nano text@$nano --resume text"
    "finetune --lora, fresh@@$tune@$tune --resume || $tune --overwrite"
    "convert to a folder, fresh@@$to_folder@$to_folder --overwrite"
    "convert to a folder, over another@$to_folder --type f16 --max-part 0.01M@$to_folder --overwrite@$to_folder --overwrite"
    "convert to llama2.c, fresh@@$to_llama2c@$to_llama2c --overwrite"
    "convert to llama2.c, over another@$linnet --quiet convert d/m.bin out/x.bin@$to_llama2c --overwrite@$to_llama2c --overwrite"
    "convert to llm.c, fresh@@$to_llmc@$to_llmc --overwrite"
    "convert to llm.c, over another@$to_llmc; echo old > out/x.bin@$to_llmc --overwrite@$to_llmc --overwrite"
    "convert to PEFT, fresh@@$to_peft@$to_peft --overwrite"
    "convert to PEFT, over another@$to_peft; echo old > out/adapter_model.safetensors@$to_peft --overwrite@$to_peft --overwrite"
    "convert to GGUF, over another@mkdir out; echo old > out/x.gguf; $linnet --quiet convert $m hf@$linnet --quiet convert hf out/x.gguf --overwrite@$linnet --quiet convert hf out/x.gguf --overwrite"
    "quantize, fresh@@$linnet --quiet quantize $m out/x.gguf --type q8_0@$linnet --quiet quantize $m out/x.gguf --type q8_0 --overwrite"
    "tokenizer train, fresh@@$linnet --quiet tokenizer train --vocab-size 270 -o out/x.json text@$linnet --quiet tokenizer train --vocab-size 270 --overwrite -o out/x.json text"
    "tokenizer convert, over another@mkdir out; echo old > out/x.gguf@$linnet --quiet tokenizer convert t.json out/x.gguf --overwrite@$linnet --quiet tokenizer convert t.json out/x.gguf --overwrite"
    "tokenize --html, fresh@@$linnet --quiet tokenize -m t.json --html out/x.html text@$linnet --quiet tokenize -m t.json --html out/x.html --overwrite text"
)

tried=0 faults=0 broken=0 commands=0
complain() {
    broken=$((broken + 1))
    echo "BROKEN: $name, $kind at operation $n of $total: $1"
}
# What counts of a folder: models, the newest two checkpoints, shards, files; not logs, which hold times, nor how far one
# was, nor what waits to be cleared away: under a hidden name, or an old checkpoint that could not be removed (the next
# one to be saved tries again).
state() {
    [ -d "$1" ] || return 0
    (cd "$1" && kept=() && for old in $(ls -d checkpoints/step-* 2> /dev/null | sort | head -n -2); do
        kept+=(! -path "./$old/*")
    done && find . -type f ! -name log.jsonl ! -name report.html ! -name manifest.json ! -name progress.json \
        ! -path '*/.*' "${kept[@]}" | sort | xargs -r sha256sum)
}
index_is_true() { # a corpus's index speaks of shards that are there, with those bytes
    [ ! -e out/index.json ] || "$linnet" --quiet train config --data out --out none --dry-run --verify > /dev/null 2>&1
}
for row in "${table[@]}"; do
    IFS=@ read -r name before command good <<< "$row"
    # shellcheck disable=SC2053  # a pattern
    [[ $name == $rows ]] || continue
    commands=$((commands + 1))
    rm -rf out start .out*; [ -n "$before" ] && eval "$before" > /dev/null 2>&1
    [ -e out ] && cp -r out start
    LINNET_FAULT_COUNT=count LD_PRELOAD=$shim $command > /dev/null 2> err || { cat err; exit 1; }
    total=$(cat count); right=$(state out); old=$(state start)
    tried=$((tried + total))
    whole_by=  # a name that only a whole folder has
    case "$name" in
    "convert to a folder"*) whole_by=out/config.json ;;
    "convert to PEFT"*) whole_by=out/adapter_config.json ;;
    esac
    for kind in kill after EIO ENOSPC EINTR short zero; do
        for ((n = 1 + faults % every; n <= total; n += every)); do
            rm -rf out .out*; [ -e start ] && cp -r start out
            faults=$((faults + 1))
            { LINNET_FAULT=$n:$kind LD_PRELOAD=$shim timeout 60 $command > /dev/null 2> err; } 2> /dev/null
            code=$?
            case "$kind:$code" in
            kill:137 | after:137 | EINTR:0 | short:0 | EIO:[04] | ENOSPC:[04] | zero:[04]) ;;
            kill:0 | after:0) ;; # the order of operations in threads varies: this run had fewer
            *) complain "exit code $code: $(tail -1 err)" ;;
            esac
            [ $code = 0 ] && [ "$(state out)" != "$right" ] && complain "exit code 0 with other bytes"
            index_is_true || complain "the index lies"
            for file in out/x.* $whole_by; do
                [ ! -e "$file" ] || [ "$(state out)" = "$right" ] || [ "$(state out)" = "$old" ] ||
                    complain "half a file under its final name"
            done
            case "$name" in "corpus, over"*)
                [ "$(state out)" = "$right" ] || [ "$(state out)" = "$old" ] || complain "neither corpus is whole" ;;
            esac
            timeout 60 bash -c "$good" > /dev/null 2> err || complain "it cannot be made good: $(tail -1 err)"
            [ "$(state out)" = "$right" ] || complain "made good, with other bytes"
        done
    done
    rm -rf out .out*; [ -e start ] && cp -r start out
    faults=$((faults + 1)) kind=EINTR n=all
    LINNET_FAULT=0:EINTR LD_PRELOAD=$shim timeout 60 $command > /dev/null 2> err || complain "exit code $?: $(tail -1 err)"
    [ "$(state out)" = "$right" ] || complain "other bytes"
done
echo "$tried file operations of $commands commands, $faults faults (kill, after, EIO, ENOSPC, EINTR, short, zero), $broken not survived"
[ $broken = 0 ]
