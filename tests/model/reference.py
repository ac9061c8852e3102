"""Makes reference.json: loss and every parameter's gradient of two small models, by PyTorch in double.

  python3 tests/model/reference.py > tests/model/reference.json      (Debian: python3-torch)

Weights are a formula of (parameter number, element), the same in test_reference.cpp, so nothing but results is stored.
"""
import json, math, torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
V, C, L, H, D, FF, T = 11, 8, 2, 4, 4, 12, 6


def weights(number, shape, mean):
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (mean + 0.5 * torch.sin(1.0 + 0.7 * number + 1.3 * i)).reshape(shape).requires_grad_()


class Parameters(dict):
    def make(self, name, *shape, mean=0.0):
        self[name] = weights(len(self), shape, mean)
        return self[name]


def heads(x, n):
    return x.reshape(x.shape[0], x.shape[1], n, D).transpose(1, 2)


def rope(x):  # pairs (2i, 2i+1) turn by t * 10000^(-2i/D)
    t = torch.arange(x.shape[2], dtype=torch.float64)[:, None]
    angle = t * 10000.0 ** (-2.0 * torch.arange(D // 2) / D)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1).flatten(-2)


def model(kind, ids):
    p, llama = Parameters(), kind == 'llama'
    kv = 2 if llama else H
    table = p.make('token_embd.weight', V, C)
    x = table[ids]
    if not llama:
        x = x + p.make('position_embd.weight', T, C)[:ids.shape[1]]

    def norm(name, x):
        w = p.make(name + '.weight', C, mean=1.0)
        if llama:
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
        return F.layer_norm(x, (C,), w, p.make(name + '.bias', C), 1e-5)

    def linear(name, x, out):
        w = p.make(name + '.weight', out, x.shape[-1])
        return F.linear(x, w, None if llama else p.make(name + '.bias', out))

    for l in range(L):
        b = f'blk.{l}.'
        y = norm(b + 'attn_norm', x)
        q, k, v = heads(linear(b + 'attn_q', y, H * D), H), heads(linear(b + 'attn_k', y, kv * D), kv), heads(linear(b + 'attn_v', y, kv * D), kv)
        if llama:
            q, k = rope(q), rope(k)
        k, v = k.repeat_interleave(H // kv, 1), v.repeat_interleave(H // kv, 1)
        s = (q @ k.transpose(-1, -2) / math.sqrt(D)).masked_fill(torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool(), -math.inf)
        a = (s.softmax(-1) @ v).transpose(1, 2).flatten(-2)
        x = x + linear(b + 'attn_output', a, C)
        y = norm(b + 'ffn_norm', x)
        if llama:
            y = F.silu(linear(b + 'ffn_gate', y, FF)) * linear(b + 'ffn_up', y, FF)
        else:
            y = F.gelu(linear(b + 'ffn_up', y, FF), approximate='tanh')
        x = x + linear(b + 'ffn_down', y, C)
    x = norm('output_norm', x)
    head = p.make('output.weight', V, C) if llama else table
    return x @ head.T, p


def run(kind):
    ids = torch.tensor([[(5 * s + 3 * t + t * t) % V for t in range(T + 1)] for s in range(2)])
    logits, p = model(kind, ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    return {'loss': loss.item(), 'gradients': {n: [float(f'{g:.10g}') for g in w.grad.flatten().tolist()] for n, w in p.items()}}


print(json.dumps({kind: run(kind) for kind in ('gpt2', 'llama')}, separators=(',', ':')))
