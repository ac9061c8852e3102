"""Logits of a Hugging Face folder, by PyTorch in double from nothing but its config.json and its safetensors.

  python3 tests/model/convert/folder_logits.py FOLDER ID ...      (Debian: python3-torch)

Prints the logits after the last id as a JSON array. Knows the model types "llama" and "gpt2", as the Transformers
library defines them; test_folder_logits.cpp trains one of each, and keeps what this printed in folder_logits.json.
"""
import json, struct, sys, torch
import torch.nn.functional as F

folder, ids = sys.argv[1], [int(x) for x in sys.argv[2:]]
config = json.load(open(folder + '/config.json'))
raw = open(folder + '/model.safetensors', 'rb').read()
size = struct.unpack('<Q', raw[:8])[0]
weights = {}
for name, t in json.loads(raw[8:8 + size]).items():
    if name == '__metadata__':
        continue
    assert t['dtype'] == 'F32', t['dtype']
    begin, end = (8 + size + x for x in t['data_offsets'])
    weights[name] = torch.frombuffer(bytearray(raw[begin:end]), dtype=torch.float32).reshape(t['shape']).double()


def causal(q, k, v):  # [H T D]
    T, D = q.shape[1:]
    scores = q @ k.transpose(1, 2) / D ** 0.5
    mask = torch.ones(T, T, dtype=torch.bool).triu(1)
    return scores.masked_fill(mask, float('-inf')).softmax(-1) @ v


def heads(x, n):  # [T H·D] -> [H T D]
    return x.reshape(x.shape[0], n, -1).transpose(0, 1)


def joined(x):
    return x.transpose(0, 1).reshape(x.shape[1], -1)


def rotate(x, theta):  # the halves of a head are the two parts of its complex numbers
    T, D = x.shape[1:]
    angle = torch.outer(torch.arange(T).double(), theta ** (-torch.arange(0, D, 2).double() / D))
    a, b = x[..., :D // 2], x[..., D // 2:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def llama(w, c):
    def norm(x, name):
        return x / (x.square().mean(-1, keepdim=True) + c['rms_norm_eps']).sqrt() * w[name]

    theta = c.get('rope_theta') or c['rope_parameters']['rope_theta']
    n, kv = c['num_attention_heads'], c['num_key_value_heads']
    x = w['model.embed_tokens.weight'][ids]
    for i in range(c['num_hidden_layers']):
        b = f'model.layers.{i}.'
        y = norm(x, b + 'input_layernorm.weight')
        q, k, v = (heads(y @ w[b + f'self_attn.{p}_proj.weight'].T, h) for p, h in (('q', n), ('k', kv), ('v', kv)))
        k, v = (t.repeat_interleave(n // kv, 0) for t in (rotate(k, theta), v))
        x = x + joined(causal(rotate(q, theta), k, v)) @ w[b + 'self_attn.o_proj.weight'].T
        y = norm(x, b + 'post_attention_layernorm.weight')
        y = F.silu(y @ w[b + 'mlp.gate_proj.weight'].T) * (y @ w[b + 'mlp.up_proj.weight'].T)
        x = x + y @ w[b + 'mlp.down_proj.weight'].T
    head = w.get('lm_head.weight', w['model.embed_tokens.weight'])
    return norm(x[-1], 'model.norm.weight') @ head.T


def gpt2(w, c):
    w = {k.removeprefix('transformer.'): v for k, v in w.items()}

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + '.weight'], w[name + '.bias'], c['layer_norm_epsilon'])

    def conv(x, name):  # Conv1D keeps its weight as [in, out]
        return x @ w[name + '.weight'] + w[name + '.bias']

    x = w['wte.weight'][ids] + w['wpe.weight'][:len(ids)]
    for i in range(c['n_layer']):
        b = f'h.{i}.'
        q, k, v = (heads(t, c['n_head']) for t in conv(norm(x, b + 'ln_1'), b + 'attn.c_attn').chunk(3, -1))
        x = x + conv(joined(causal(q, k, v)), b + 'attn.c_proj')
        x = x + conv(F.gelu(conv(norm(x, b + 'ln_2'), b + 'mlp.c_fc'), approximate='tanh'), b + 'mlp.c_proj')
    return norm(x[-1], 'ln_f') @ w['wte.weight'].T


print(json.dumps([round(x, 7) for x in {'llama': llama, 'gpt2': gpt2}[config['model_type']](weights, config).tolist()]))
