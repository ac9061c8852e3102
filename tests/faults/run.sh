#!/usr/bin/env bash
# Makes the n-th file operation, the n-th start of a thread and the n-th allocation of every command go wrong, and checks
# what is left: exit codes, the old or the new under every final name, and a second start that ends in the right bytes.
#
#   run.sh LINNET SHIM.so [EVERY [ROWS [KINDS [MOST]]]]
#     EVERY  tries every EVERY-th n only
#     ROWS   only commands whose names below match this pattern, such as 'convert*'
#     KINDS  only these, of: kill after EIO ENOSPC EINTR short zero (files), thread no-thread, memory no-memory
#     MOST   of the allocations of a command, which are thousands, so many are tried, evenly spread over those that come
#            from different places in the program; those of parsing the command line are tried in one row
set -u
linnet=$(realpath "$1") shim=$(realpath "$2") every=${3:-1} rows=${4:-*}
file_kinds='kill after EIO ENOSPC EINTR short zero' thread_kinds='thread no-thread' memory_kinds='memory no-memory'
kinds=${5:-$file_kinds $thread_kinds $memory_kinds} most=${6:-40}
place=$(mktemp -d "${TMPDIR:-/tmp}/linnet-faults-XXXXXX")
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1

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
own="--set tokenizer.kind=file --set tokenizer.file=t.json"
"$linnet" --quiet train config --data text --threads 1 --out base $own || exit 1
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
# An encoder, and what it is trained by.
encoder="--set model.kind=encoder --set tokenizer.kind=wordpiece --set tokenizer.vocab_size=300"
replaced="$encoder --set train.objective=replaced"
"$linnet" --quiet train config --data text --threads 1 --out encoder $encoder || exit 1
e=$PWD/encoder/model.gguf
echo "three four" > talk  # what every command has as stdin
to_folder="$linnet --quiet convert $m out"
to_llmc="$linnet --quiet convert $m out/x.bin --type f32"
to_llama2c="$linnet --quiet convert $PWD/c/m.bin out/x.bin"
to_peft="$linnet --quiet convert $PWD/a.gguf out --base $m"
whole=${tune/--lora 2 /}
cached="$linnet --quiet generate -m $m -n 2 --temp 0 --prompt-cache out/x.cache -p one.two"
echo "one two three" > few
echo "one [MASK] three" > masked
for i in 1 2 3 4; do echo '{"prompt": "one"}'; done > prompts
echo 'root ::= "t"+' > grammar
"$linnet" --quiet tokenize -m t.json --format ids few > ids || exit 1
nano="$linnet --quiet corpus -t t.json --threads 2 --format nanogpt --no-end-tokens -o out"
corpus="$linnet --quiet corpus -t t.json --threads 2 --shard-tokens 700 -o out"
# name @ what makes what is there before @ the command @ what makes it good again
table=(
    "train, fresh@@$run@$run --resume || $run --overwrite"
    "train, finished@$run@$run --resume@$run --resume"
    "train, put back@$run; mkdir out/.replaced; mv out/* out/.replaced; touch out/.replaced/complete@$run --resume@$run --resume && grep -q '\"event\":\"start\"' out/log.jsonl"
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
    "quantize, fresh@@$linnet --quiet --threads 2 quantize $m out/x.gguf --type q8_0@$linnet --quiet --threads 2 quantize $m out/x.gguf --type q8_0 --overwrite"
    "tokenizer train, fresh@@$linnet --quiet --threads 2 tokenizer train --vocab-size 270 -o out/x.json text@$linnet --quiet --threads 2 tokenizer train --vocab-size 270 --overwrite -o out/x.json text"
    "tokenizer convert, over another@mkdir out; echo old > out/x.gguf@$linnet --quiet tokenizer convert t.json out/x.gguf --overwrite@$linnet --quiet tokenizer convert t.json out/x.gguf --overwrite"
    "quantize, over another@mkdir out; echo old > out/x.gguf@$linnet --quiet --threads 2 quantize $m out/x.gguf --type q4_0 --overwrite@$linnet --quiet --threads 2 quantize $m out/x.gguf --type q4_0 --overwrite"
    "tokenizer train, over another@mkdir out; echo old > out/x.gguf@$linnet --quiet --threads 2 tokenizer train --kind char --overwrite -o out/x.gguf text@$linnet --quiet --threads 2 tokenizer train --kind char --overwrite -o out/x.gguf text"
    "tokenizer convert, fresh@@$linnet --quiet tokenizer convert t.json out/x.gguf@$linnet --quiet tokenizer convert t.json out/x.gguf --overwrite"
    "tokenize --html, fresh@@$linnet --quiet --threads 2 tokenize -m t.json --html out/x.html text@$linnet --quiet --threads 2 tokenize -m t.json --html out/x.html --overwrite text"
    "tokenize --html, over another@mkdir out; echo old > out/x.html@$linnet --quiet --threads 2 tokenize -m t.json --html out/x.html --overwrite text@$linnet --quiet --threads 2 tokenize -m t.json --html out/x.html --overwrite text"
    "train --save hf, fresh@@$run --save hf $own@$run --save hf $own --resume || $run --save hf $own --overwrite"
    "train an encoder, fresh@@$run $encoder@$run $encoder --resume || $run $encoder --overwrite"
    "train an encoder beside a generator, fresh@@$run $replaced@$run $replaced --resume || $run $replaced --overwrite"
    "finetune, fresh@@$whole@$whole --resume || $whole --overwrite"
    "merge, fresh@@$linnet --quiet --threads 2 merge -m $m --lora a.gguf -o out/x.gguf@$linnet --quiet --threads 2 merge -m $m --lora a.gguf -o out/x.gguf --overwrite"
    "merge, over another@mkdir out; echo old > out/x.gguf@$linnet --quiet --threads 2 merge -m $m --lora a.gguf -o out/x.gguf --overwrite@$linnet --quiet --threads 2 merge -m $m --lora a.gguf -o out/x.gguf --overwrite"
    "embed, fresh@@$linnet --quiet --threads 2 embed -m $e --truncate -f few -o out/x.npy@$linnet --quiet --threads 2 embed -m $e --truncate -f few -o out/x.npy --overwrite"
    "report, fresh@@$linnet --quiet report base/log.jsonl -o out/x.html@$linnet --quiet report base/log.jsonl -o out/x.html --overwrite"
    "report, over another@mkdir out; echo old > out/x.html@$linnet --quiet report base/log.jsonl -o out/x.html --overwrite@$linnet --quiet report base/log.jsonl -o out/x.html --overwrite"
    "inspect attention --html, fresh@@$linnet --quiet inspect attention -m $m -p one --html out/x.html@$linnet --quiet inspect attention -m $m -p one --html out/x.html --overwrite"
    "generate --prompt-cache, fresh@@$cached@$cached"
    "generate --prompt-cache, a longer prompt@$cached@$cached.three@$cached.three"
)
# Commands that only read: there is memory and there are threads that they may not get. name @ the command
readers=(
    "the command line@$linnet --version"
    "generate@$linnet --quiet generate -m $m -p one -n 8 --temp 0 --threads 2"
    "generate, many prompts@$linnet --quiet generate -m $m --batch-file prompts -n 4 --temp 0 --seed 1 --threads 2"
    "generate, guesses@$linnet --quiet generate -m $m -p one -n 8 --temp 0 --speculate --threads 2"
    "generate, a grammar@$linnet --quiet generate -m $m -p one -n 8 --temp 0 --grammar grammar"
    "chat@$linnet --quiet --threads 2 chat -m $m -n 4 --temp 0"
    "eval@$linnet --quiet eval -m $m --file text --threads 2 --windows 2"
    "tokenize@$linnet --quiet --threads 2 tokenize -m t.json text"
    "tokenize stdin@$linnet --quiet --threads 2 tokenize -m t.json -"
    "detokenize@$linnet --quiet detokenize -m t.json ids"
    "inspect@$linnet --quiet inspect $m"
    "embed@$linnet --quiet --threads 2 embed -m $e --truncate -f few"
    "predict@$linnet --quiet --threads 2 predict -m $e -f masked"
    "bench@$linnet --quiet --threads 2 bench -m $m -n 4"
    "bench tokenize@$linnet --quiet --threads 2 bench tokenize -m t.json few"
)

declare -A tried=()  # calls and faults, by what they are of
broken=0 commands=0
complain() {
    broken=$((broken + 1))
    echo "BROKEN: $name, $kind at $n of $total: $1"
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

afresh() { # what is there before the command
    rm -rf out .out*
    [ ! -e start ] || cp -r start out
}
shimmed() { # the command, with a fault if LINNET_FAULT has one; its exit code
    { timeout 60 env LD_PRELOAD=$shim $command < talk > said 2> err; } 2> /dev/null
}
check_exit() { # CODE
    case "$kind:$1" in
    kill:137 | after:137 | EINTR:0 | short:0 | EIO:[04] | ENOSPC:[04] | zero:[04]) ;;
    kill:0 | after:0) ;; # the order of operations in threads varies: this run had fewer
    thread:0 | no-thread:0 | memory:0 | no-memory:0) ;;
    memory:4 | no-memory:4)
        [ "$(wc -l < err)" = 1 ] && grep -qi "^linnet: error: .*memory" err ||
            complain "not one line that says it: $(head -c 300 err)" ;;
    *) complain "exit code $1: $(tail -1 err)" ;;
    esac
    [ "$1" != 0 ] || [ "$(state out)" = "$right" ] || complain "exit code 0 with other bytes"
    [ "$1" != 0 ] || [ "$answer" = any ] || cmp -s said "$answer" || complain "exit code 0 with another answer"
}
check_left() {
    index_is_true || complain "the index lies"
    for file in out/x.* $whole_by; do
        [ ! -e "$file" ] || [ "$(state out)" = "$right" ] || [ "$(state out)" = "$old" ] ||
            complain "half a file under its final name"
    done
    case "$name" in "corpus, over"*)
        [ "$(state out)" = "$right" ] || [ "$(state out)" = "$old" ] || complain "neither corpus is whole" ;;
    esac
    [ -n "$good" ] || return 0
    timeout 60 bash -c "$good" < talk > /dev/null 2> err || complain "it cannot be made good: $(tail -1 err)"
    [ "$(state out)" = "$right" ] || complain "made good, with other bytes"
}
fault() { # KIND at N, of what is counted as $of
    kind=$1 n=$2
    afresh
    tried[$of faults]=$((${tried[$of faults]:-0} + 1))
    LINNET_FAULT=$n:$kind shimmed
    check_exit $?
    check_left
}
wanted() {
    [[ " $kinds " == *" $1 "* ]]
}
# The command's allocations by their numbers: those from different places behind the parsing of the command line, evenly
# thinned.
places() {
    awk -v from="$parsing" -v most="$most" '$1 > from { at[count++] = $1 }
        END { step = count > most ? count / most : 1; for (i = 0; int(i) < count; i += step) print at[int(i)] }' ways
}
try_faults() { # of $command, as far as they are wanted
    afresh
    LINNET_FAULT_WAYS=ways LINNET_FAULT_COUNT=count shimmed || { cat err; exit 1; }
    local files threads requests at
    read -r files threads requests < count
    right=$(state out) old=$(state start)
    mv said answer
    case "$name" in # what holds times, or no answer
    bench* | corpus* | train* | finetune*) answer=any ;;
    *) answer=answer ;;
    esac
    tried[file operations]=$((${tried[file operations]:-0} + files))
    tried[threads]=$((${tried[threads]:-0} + threads))
    tried[allocations]=$((${tried[allocations]:-0} + requests))
    for kind in $file_kinds; do
        of="file operations" total=$files
        [ -z "$good" ] || ! wanted $kind ||
            for ((at = 1 + ${tried[$of faults]:-0} % every; at <= total; at += every)); do fault $kind $at; done
        # Always: the flush behind the last rename fails, and all final names stand already.
        [ -z "$good" ] || ! wanted $kind || [ $kind != EIO ] || [ "$every" = 1 ] || fault EIO "$total"
    done
    for kind in $thread_kinds; do
        of=threads total=$threads
        ! wanted $kind || for ((at = 1; at <= total; at += every)); do fault $kind $at; done
    done
    for kind in $memory_kinds; do
        of=allocations total=$requests
        ! wanted $kind || for at in $(places | awk -v every="$every" 'NR % every == 1 || every == 1'); do
            fault $kind "$at"
        done
    done
    [ -n "$good" ] && wanted EINTR || return 0
    afresh
    of="file operations" kind=EINTR n=all total=$files
    tried[$of faults]=$((${tried[$of faults]:-0} + 1))
    LINNET_FAULT=0:EINTR shimmed || complain "exit code $?: $(tail -1 err)"
    [ "$(state out)" = "$right" ] || complain "other bytes"
}

LINNET_FAULT_COUNT=count LD_PRELOAD=$shim "$linnet" --version > /dev/null
read -r _ _ parsing < count
for row in "${table[@]}"; do
    IFS=@ read -r name before command good <<< "$row"
    # shellcheck disable=SC2053  # a pattern
    [[ $name == $rows ]] || continue
    commands=$((commands + 1))
    rm -rf out start .out*; [ -n "$before" ] && eval "$before" < talk > /dev/null 2>&1
    [ -e out ] && cp -r out start
    whole_by=  # a name that only a whole folder has
    case "$name" in
    "convert to a folder"*) whole_by=out/config.json ;;
    "convert to PEFT"*) whole_by=out/adapter_config.json ;;
    esac
    try_faults
done
rm -rf out start
good='' whole_by=''
for row in "${readers[@]}"; do
    IFS=@ read -r name command <<< "$row"
    # shellcheck disable=SC2053
    [[ $name == $rows ]] || continue
    commands=$((commands + 1))
    if [ "$name" = "the command line" ]; then parsing=0 try_faults; else try_faults; fi
done
for of in "file operations" threads allocations; do
    echo "$((${tried[$of]:-0})) $of, $((${tried[$of faults]:-0})) faults"
done
echo "of $commands commands; $broken not survived"
[ $broken = 0 ]
