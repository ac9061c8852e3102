"""Small random models of the families in models/architectures, written from GGUF's specification alone, and what
llama.cpp makes of them.

    python3 tests/model/families.py DIR                     writes the files DIR/VARIANT.gguf
    python3 tests/model/families.py DIR --record LPEER      the same, then prints families.json: for every file the
                                                            logits after TEXT as `LPEER logits FILE TEXT` prints them

test_families.cpp holds linnet to the recorded numbers.
"""
import json
import os
import random
import struct
import subprocess
import sys

TEXT = "Shall I compare thee to a summer's day? Thou art more lovely and more temperate"
LAYERS, WIDTH, FFN, HEADS, CONTEXT = 5, 32, 48, 4, 128
U32, F32, STR, ARR, I32 = 4, 6, 8, 9, 5


def byte_tokens():
    """GPT-2's alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(others))]


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        return struct.pack("<IQ", v[0], len(v[1])) + b"".join(value(v[0], x) for x in v[1])
    return struct.pack({U32: "<I", I32: "<i", F32: "<f"}[kind], v)


def write(path, keys, tensors, seed):
    """`tensors`: (name, shape, outermost first; mean, deviation)."""
    tokens = byte_tokens() + ["th", "<end>"]
    keys = keys + [("tokenizer.ggml.model", STR, "gpt2"), ("tokenizer.ggml.pre", STR, "gpt-2"),
                   ("tokenizer.ggml.tokens", ARR, (STR, tokens)),
                   ("tokenizer.ggml.token_type", ARR, (I32, [1] * 257 + [3])),
                   ("tokenizer.ggml.merges", ARR, (STR, ["t h"])),
                   ("tokenizer.ggml.bos_token_id", U32, 257), ("tokenizer.ggml.eos_token_id", U32, 257)]
    tensors = [("token_embd.weight", (len(tokens), WIDTH), 0, 1), *tensors]
    tensors = [(n, tuple(len(tokens) if d == "vocabulary" else d for d in s), m, d) for n, s, m, d in tensors]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, kind, v in keys:
        out += text(key) + struct.pack("<I", kind) + value(kind, v)
    rng, data = random.Random(seed), b""
    for name, shape, mean, deviation in tensors:
        count = 1
        for d in shape:
            count *= d
        out += text(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", 0, len(data))
        data += struct.pack(f"<{count}f", *(mean + deviation * rng.uniform(-1.7, 1.7) for _ in range(count)))
        data += b"\0" * (-len(data) % 32)
    out += b"\0" * (-len(out) % 32)
    with open(path, "wb") as f:
        f.write(out + data)


def model(arch, norm="rms", gated=True, tied=False, q_bias=False, o_bias=False, ffn_bias=False, kv=2, head=None,
          theta=10000.0, fused=False, keys=()):
    d = head or WIDTH // HEADS
    kvs = kv if isinstance(kv, list) else [kv] * LAYERS
    layer_norm = norm == "layer"
    out = [("general.architecture", STR, arch)]

    def key(name, kind, v):
        out.append((f"{arch}.{name}", kind, v))
    key("context_length", U32, CONTEXT)
    key("embedding_length", U32, WIDTH)
    key("feed_forward_length", U32, FFN)
    key("block_count", U32, LAYERS)
    key("attention.head_count", U32, HEADS)
    key("attention.layer_norm_epsilon" if layer_norm else "attention.layer_norm_rms_epsilon", F32, 1e-5)
    if arch != "gpt2":
        key("attention.head_count_kv", *((ARR, (U32, kv)) if isinstance(kv, list) else (U32, kv)))
        key("rope.freq_base", F32, theta)
        key("rope.dimension_count", U32, d)
    if head:
        key("attention.key_length", U32, d)
        key("attention.value_length", U32, d)
    for k in keys:
        key(*k)
    tensors = []

    def vector(name, size, mean=0.0):
        tensors.append((name, (size,), mean, 0.3))

    def linear(name, rows, columns, bias):
        tensors.append((name + ".weight", (rows, columns), 0, 1.5 / columns ** 0.5))
        if bias:
            vector(name + ".bias", rows)

    def norm_of(name):
        vector(name + ".weight", WIDTH, 1.0)
        if layer_norm:
            vector(name + ".bias", WIDTH)
    if arch == "gpt2":
        tensors.append(("position_embd.weight", (CONTEXT, WIDTH), 0, 1))
    for i in range(LAYERS):
        b = f"blk.{i}."
        norm_of(b + "attn_norm")
        if fused:
            linear(b + "attn_qkv", (HEADS + 2 * kvs[i]) * d, WIDTH, q_bias)
        else:
            linear(b + "attn_q", HEADS * d, WIDTH, q_bias)
            linear(b + "attn_k", kvs[i] * d, WIDTH, q_bias)
            linear(b + "attn_v", kvs[i] * d, WIDTH, q_bias)
        linear(b + "attn_output", WIDTH, HEADS * d, o_bias)
        norm_of(b + "ffn_norm")
        if gated:
            linear(b + "ffn_gate", FFN, WIDTH, ffn_bias)
        linear(b + "ffn_up", FFN, WIDTH, ffn_bias)
        linear(b + "ffn_down", WIDTH, FFN, ffn_bias)
    norm_of("output_norm")
    if not tied:
        tensors.append(("output.weight", ("vocabulary", WIDTH), 0, 0.3))
    return out, tensors


GPT2 = dict(norm="layer", gated=False, q_bias=True, o_bias=True, ffn_bias=True, kv=HEADS, fused=True)
STARCODER2 = dict(norm="layer", gated=False, q_bias=True, o_bias=True, ffn_bias=True, theta=100000.0)
VARIANTS = {
    "gpt2-tied": lambda: model("gpt2", tied=True, **GPT2),
    "gpt2-untied": lambda: model("gpt2", **GPT2),
    "llama-grouped": lambda: model("llama"),
    "llama-tied-multi-query": lambda: model("llama", tied=True, kv=1, theta=500000.0),
    "llama-wide-heads": lambda: model("llama", head=64),
    "llama-biases": lambda: model("llama", q_bias=True, o_bias=True),
    "llama-qkv-biases": lambda: model("llama", q_bias=True),
    "llama-all-biases": lambda: model("llama", q_bias=True, o_bias=True, ffn_bias=True),
    "deci-kv-heads-by-layer": lambda: model("deci", kv=[2, 1, 4, 2, 2]),
    "deci-alike": lambda: model("deci", kv=1),
    "mistral": lambda: model("llama", keys=[("attention.sliding_window", U32, 16)]),
    "qwen2-tied": lambda: model("qwen2", tied=True, q_bias=True, theta=1000000.0),
    "qwen2-untied": lambda: model("qwen2", q_bias=True, kv=1),
    "starcoder2-tied": lambda: model("starcoder2", tied=True, **STARCODER2),
    "starcoder2-untied": lambda: model("starcoder2", kv=4, **STARCODER2),
    "smollm3-tied": lambda: model("smollm3", tied=True, theta=2000000.0),
    "smollm3-untied": lambda: model("smollm3"),
}


def main():
    folder = sys.argv[1]
    for seed, (name, make) in enumerate(VARIANTS.items()):
        write(os.path.join(folder, name + ".gguf"), *make(), seed)
    if sys.argv[2:3] != ["--record"]:
        return
    recorded = {"text": TEXT, "logits": {}}
    for name in VARIANTS:
        command = [sys.argv[3], "logits", os.path.join(folder, name + ".gguf"), TEXT]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        recorded["logits"][name] = [round(float(x), 4) for x in lines]
    print(json.dumps(recorded))


main()
