#include "commands/commands.h"

namespace linnet {
namespace {

constexpr Command table[] = {
    {"generate", "continue a text with a model",
     "linnet generate -p \"ROMEO:\" -n 200 --seed 7\n"
     "echo \"Once upon a time\" | linnet generate -m stories260k.gguf --temp 0",
     add_generate},
    {"chat", "talk with a model that was trained to answer",
     "linnet chat -m model.gguf --system \"You are brief.\"\n"
     "echo \"Why is the sky blue?\" | linnet chat -m model.gguf",
     add_chat},
    {"corpus", "tokenize texts into shards for training",
     "linnet corpus -t gpt-2.gguf -o shards texts/ more.jsonl.zst\n"
     "zcat web.txt.gz | linnet corpus -t tokenizer.json -o shards --separator '\\n\\n' -",
     add_corpus},
    {"train", "train a tokenizer and a model on a text",
     "linnet train --data my.txt --out my-model\n"
     "linnet train models/shakespeare.json --data play.txt --out play --set train.steps=500",
     add_train},
    {"plan", "say which models fit a text and a time, and how good each would be",
     "linnet plan --data my.txt --time 2h\n"
     "linnet plan --data shards --time 30m --json",
     add_plan},
    {"finetune", "train a model further, whole or by an adapter",
     "linnet finetune -m model.gguf --data my.txt --out tuned\n"
     "linnet finetune -m model-q8_0.gguf --lora 16 --data talks.jsonl --out tuned --time 30m\n"
     "linnet generate -m model-q8_0.gguf --lora tuned -p \"Once\"",
     add_finetune},
    {"merge", "make adapters part of a model's weights",
     "linnet merge -m model.gguf --lora tuned/adapter.gguf -o merged.gguf\n"
     "linnet merge -m model-q8_0.gguf --lora a.gguf=0.5 --lora b.gguf -o merged.gguf --type f16",
     add_merge},
    {"report", "compare several training runs on one page", "linnet report my-model other-model -o runs.html",
     add_report},
    {"eval", "measure how well a model predicts a text",
     "linnet eval -m my-model/model.gguf --file held-out.txt", add_eval},
    {"embed", "turn texts into vectors with an encoder",
     "linnet embed -m bert.gguf -p \"A cat sat on the mat.\"\n"
     "linnet embed -m nomic-bert.gguf -f lines.txt -o vectors.npy",
     add_embed},
    {"predict", "fill masks, classify texts and pictures, tag words; with probabilities",
     "linnet predict -m bert.gguf -p \"The cat [MASK] on the mat.\" --top 3\n"
     "linnet predict -m clothes.gguf -f shirt.png",
     add_predict},
    {"quantize", "write a model with smaller weights",
     "linnet quantize my-model/model.gguf small.gguf --type q4_k_m\n"
     "linnet quantize model.gguf small.gguf --type q8_0 --check held-out.txt",
     add_quantize},
    {"convert", "write a model in another format",
     "linnet convert my-model my-folder\n"
     "linnet convert Llama-3.2-1B model.gguf --type bf16\n"
     "linnet convert stories260K.bin stories.gguf",
     add_convert},
    // Before tokenize: of two names equally near to a mistyped one the first is suggested, and "dtokenize" is
    // this.
    {"detokenize", "turn lines of token ids back into texts", "linnet tokenize my.txt | linnet detokenize",
     add_detokenize},
    {"tokenize", "turn texts into tokens",
     "linnet tokenize -t tokenizer.json my.txt\n"
     "linnet tokenize --format pieces my.txt\n"
     "linnet tokenize -t model.gguf --html tokens.html my.txt",
     add_tokenize},
    {"tokenizer", "train, convert and compare tokenizers",
     "linnet tokenizer train --vocab-size 8000 -o tokenizer.json my.txt", nullptr},
    {"tokenizer train", "make a vocabulary from texts",
     "linnet tokenizer train --vocab-size 16000 -o tokenizer.json a.txt b.txt", add_tokenizer_train},
    {"tokenizer convert", "write a tokenizer in another format",
     "linnet tokenizer convert model.gguf tokenizer.json", add_tokenizer_convert},
    {"tokenizer verify", "compare two tokenizers on texts", "linnet tokenizer verify a.json b.gguf my.txt",
     add_tokenizer_verify},
    {"inspect", "show what is in a model file", "linnet inspect my-model/model.gguf", add_inspect},
    {"inspect logits", "print the logits after a text, one per line, or the largest",
     "linnet inspect logits -p \"ROMEO:\" --top 5", add_inspect_logits},
    {"inspect attention", "show where each attention head looks, as numbers or as a page",
     "linnet inspect attention -p \"ROMEO: and JULIET: and\"\n"
     "linnet inspect attention -m model.gguf -f text.txt --html attention.html",
     add_inspect_attention},
    {"inspect graph", "print the plan that runs a model, or run it and check every value",
     "linnet inspect graph -m model.gguf\n"
     "linnet inspect graph -m model.gguf --check -p \"Once upon a time\"",
     add_inspect_graph},
    {"bench", "measure a model's speed: reading a prompt (prefill), writing tokens (decoding)",
     "linnet bench -m model.gguf -p 512 -n 128", add_bench},
    {"bench train", "measure the speed of training steps",
     "linnet bench train models/gpt2-124m.json --set train.batch=4", add_bench_train},
    {"bench tokenize", "measure the speed of a tokenizer on a text",
     "linnet bench tokenize -t model.gguf my.txt", add_bench_tokenize},
    {"bench machine", "measure this machine's peaks: arithmetic and memory", "linnet bench machine --json",
     add_bench_machine},
    {"completion", "print the completion script of a shell",
     "linnet completion bash >~/.local/share/bash-completion/completions/linnet\n"
     "linnet completion zsh >~/.zfunc/_linnet\n"
     "linnet completion fish >~/.config/fish/completions/linnet.fish",
     add_completion},
    {"manual", "print a manual page", "linnet manual train | man -l -", add_manual},
};

}  // namespace

std::span<const Command> commands() {
    return table;
}

}  // namespace linnet
