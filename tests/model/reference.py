"""Makes reference.json: loss and every parameter's gradient of small models, by PyTorch in double.

  python3 tests/model/reference.py > tests/model/reference.json      (Debian: python3-torch)

A model is what the config says; weights are a formula of (parameter number, element), the same in test_reference.cpp, so
nothing but configs and results is stored.
"""
import json, math, torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
V, C, L, H, D, FF, T, B = 11, 8, 2, 4, 4, 12, 6, 2
gated = {'model.norm.kind': 'rms', 'model.position.kind': 'rope', 'model.attention.bias': False, 'model.ffn.bias': False,
         'model.ffn.gated': True, 'model.ffn.activation': 'silu', 'model.tie_embeddings': False, 'model.kv_heads': 2}
MODELS = {
    'gpt2': {},
    'llama': gated,
    'gemma2': gated | {'model.norm.placement': 'sandwich', 'model.position.halves': True, 'model.ffn.activation': 'gelu-tanh',
                       'model.tie_embeddings': True, 'model.attention.window': [3, 0], 'model.attention.softcap': 2.0,
                       'model.logits.softcap': 3.0, 'model.attention.scale': 0.7, 'model.embedding.scale': 8 ** 0.5},
    'mixture': gated | {'model.experts.count': 4, 'model.experts.used': 2, 'model.experts.width': 6, 'model.experts.shared': 5,
                        'model.experts.shared_gate': True, 'model.experts.leading_dense': 1, 'model.experts.scale': 1.5,
                        'model.experts.balance_loss': 0.3, 'model.experts.z_loss': 0.05},
    'deepnorm': {'model.norm.placement': 'deep'},
    'bloom': {'model.position.kind': 'none', 'model.attention.alibi': 8.0, 'model.embedding.norm': True},
    'cosine': {'model.position.kind': 'rope', 'model.norm.weight': False, 'model.attention.qk_norm': 'unit',
               'model.attention.scale': 1.5, 'model.attention.window': [2, 2], 'model.attention.globals': 1},
    'universal-t5': {'model.position.kind': 'none', 'model.attention.buckets': 6, 'model.attention.reach': 4, 'model.tie_layers': 1},
}


class Model:
    def __init__(self, config):
        self.c, self.p, self.losses = config, {}, 0

    def get(self, key, default):
        return self.c.get('model.' + key, default)

    def make(self, name, *shape, mean=0.0):
        if self.get('tie_layers', 0) and name.startswith('blk.'):
            name = 'blk.0' + name[name.index('.', 4):]
        if name not in self.p:
            i = torch.arange(math.prod(shape), dtype=torch.float64)
            w = mean + 0.5 * torch.sin(1.0 + 0.7 * len(self.p) + 1.3 * i)
            self.p[name] = w.reshape(shape).requires_grad_()
        return self.p[name]

    def norm(self, name, x):
        if not self.get('norm.weight', True):
            return F.layer_norm(x, (C,), eps=1e-5)
        w = self.make(name + '.weight', C, mean=1.0)
        if self.get('norm.kind', 'layer') == 'rms':
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
        return F.layer_norm(x, (C,), w, self.make(name + '.bias', C), 1e-5)

    def linear(self, name, x, out, bias):
        w = self.make(name + '.weight', out, x.shape[-1])
        return F.linear(x, w, self.make(name + '.bias', out) if bias else None)

    def act(self, x):
        return F.silu(x) if self.get('ffn.activation', 'gelu-tanh') == 'silu' else F.gelu(x, approximate='tanh')

    def rope(self, x):  # pairs (2i, 2i+1), or (i, i + D/2), turn by t * 10000^(-2i/D)
        angle = torch.arange(T)[:, None] * 10000.0 ** (-2.0 * torch.arange(D // 2) / D)
        if self.get('position.halves', False):
            a, b = x[..., :D // 2], x[..., D // 2:]
            return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def score_bias(self):  # [H, T, T]
        distance = torch.arange(T)[:, None] - torch.arange(T)[None, :]
        bias = torch.zeros(H, T, T)
        if self.get('attention.alibi', 0):
            slopes = torch.tensor([2.0 ** (-self.get('attention.alibi', 0) * (h + 1) / H) for h in range(H)])
            bias = bias - slopes[:, None, None] * distance.abs()
        buckets, reach = self.get('attention.buckets', 0), self.get('attention.reach', 0)
        if buckets:
            exact = buckets // 2
            far = [min(exact + int(math.log(max(n, 1) / exact) / math.log(reach / exact) * (buckets - exact)), buckets - 1) for n in range(T)]
            bucket = torch.tensor([n if n < exact else far[n] for n in range(T)])
            bias = bias + self.make('attn_rel_b.weight', buckets, H)[bucket[distance.clamp(min=0)]].permute(2, 0, 1)
        return bias

    def attention(self, b, l, x):
        kv, bias = self.get('kv_heads', H), self.get('attention.bias', True)
        heads = lambda y, n: y.reshape(B, T, n, D).transpose(1, 2)
        q, k, v = (heads(self.linear(f'{b}.attn_{n}', x, m * D, bias), m) for n, m in (('q', H), ('k', kv), ('v', kv)))
        if self.get('attention.qk_norm', 'none') == 'unit':
            q, k = (y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-5) for y in (q, k))
        if self.get('position.kind', 'learned') == 'rope':
            q, k = self.rope(q), self.rope(k)
        k, v = k.repeat_interleave(H // kv, 1), v.repeat_interleave(H // kv, 1)
        s, cap = q @ k.transpose(-1, -2) * self.get('attention.scale', D ** -0.5), self.get('attention.softcap', 0)
        s = (cap * torch.tanh(s / cap) if cap else s) + self.bias
        window = self.get('attention.window', [0])[l % len(self.get('attention.window', [0]))]
        passed = torch.ones(T, T).tril(-window).bool() & (torch.arange(T) >= self.get('attention.globals', 0))
        unseen = torch.ones(T, T).triu(1).bool() | (passed if window else False)
        a = (s.masked_fill(unseen, -math.inf).softmax(-1) @ v).transpose(1, 2).flatten(-2)
        return self.linear(b + '.attn_output', a, C, bias)

    def feed_forward(self, b, l, x):
        if self.get('experts.count', 0) and l >= self.get('experts.leading_dense', 0):
            return self.mixture(b, x)
        bias = self.get('ffn.bias', True)
        if self.get('ffn.gated', False):
            y = self.act(self.linear(b + '.ffn_gate', x, FF, bias))
            y = y * self.linear(b + '.ffn_up', x, FF, bias)
        else:
            y = self.act(self.linear(b + '.ffn_up', x, FF, bias))
        return self.linear(b + '.ffn_down', y, C, bias)

    def mixture(self, b, x):
        E, K, W, S = (self.get('experts.' + n, 0) for n in ('count', 'used', 'width', 'shared'))
        scores = self.linear(b + '.ffn_gate_inp', x, E, False)
        p = scores.softmax(-1)
        top, choice = p.topk(K, -1)
        weights = top / top.sum(-1, keepdim=True) * self.get('experts.scale', 1)
        gate, up = (self.make(f'{b}.ffn_{n}_exps.weight', E, W, C) for n in ('gate', 'up'))
        down = self.make(b + '.ffn_down_exps.weight', E, C, W)
        each = torch.einsum('btew,ecw->btec', self.act(torch.einsum('btc,ewc->btew', x, gate)) * torch.einsum('btc,ewc->btew', x, up), down)
        y = (each.gather(2, choice[..., None].expand(B, T, K, C)) * weights[..., None]).sum(2)
        f = F.one_hot(choice, E).sum(2).double().mean((0, 1)) / K
        self.losses = self.losses + self.get('experts.balance_loss', 0) * E * (f * p.mean((0, 1))).sum() \
            + self.get('experts.z_loss', 0) * (scores.logsumexp(-1) ** 2).mean()
        shared = self.act(self.linear(b + '.ffn_gate_shexp', x, S, False))
        shared = self.linear(b + '.ffn_down_shexp', shared * self.linear(b + '.ffn_up_shexp', x, S, False), C, False)
        return y + shared * torch.sigmoid(self.linear(b + '.ffn_gate_inp_shexp', x, 1, False))

    def residual(self, name, x, branch):
        placement = self.get('norm.placement', 'pre')
        y = branch(x if placement == 'deep' else self.norm(name + '_norm', x))
        if placement == 'sandwich':
            y = self.norm(name + '_post_norm', y)
        return self.norm(name + '_norm', (2 * L) ** 0.25 * x + y) if placement == 'deep' else x + y

    def logits(self, ids):
        table = self.make('token_embd.weight', V, C)
        x = table[ids] * self.get('embedding.scale', 1)
        if self.get('embedding.norm', False):
            x = self.norm('token_embd_norm', x)
        if self.get('position.kind', 'learned') == 'learned':
            x = x + self.make('position_embd.weight', T, C)
        self.bias = self.score_bias()
        for l in range(L):
            b = f'blk.{l}'
            x = self.residual(b + '.attn', x, lambda y: self.attention(b, l, y))
            x = self.residual(b + '.ffn', x, lambda y: self.feed_forward(b, l, y))
        if self.get('norm.placement', 'pre') != 'deep':
            x = self.norm('output_norm', x)
        y = x @ (table if self.get('tie_embeddings', True) else self.make('output.weight', V, C)).T
        cap = self.get('logits.softcap', 0)
        return cap * torch.tanh(y / cap) if cap else y


def run(config):
    ids = torch.tensor([[(5 * s + 3 * t + t * t) % V for t in range(T + 1)] for s in range(B)])
    model = Model(config)
    loss = F.cross_entropy(model.logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) + model.losses
    loss.backward()
    gradients = {n: [float(f'{g:.10g}') for g in w.grad.flatten().tolist()] for n, w in model.p.items()}
    return {'config': config, 'loss': loss.item(), 'gradients': gradients}


print('{' + ',\n'.join(json.dumps(n) + ':' + json.dumps(run(c), separators=(',', ':')) for n, c in MODELS.items()) + '}')
