"""Makes reference.json: loss and every parameter's gradient of small models, by PyTorch in double.

  python3 tests/model/reference.py > tests/model/reference.json      (Debian: python3-torch)

A model is what the config says; weights are a formula of (parameter number, element), the same in test_reference.cpp, so
nothing but configs and results is stored.
"""
import math, torch
import torch.nn.functional as F
from reference_model import C, ReferenceModel, V, print_all, recorded

L, H, D, FF, T, B = 2, 4, 4, 12, 6, 2
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
    'mamba': {'model.mixer': 'mamba', 'model.position.kind': 'none', 'model.ffn.kind': 'none', 'model.norm.kind': 'rms',
              'model.ssm.inner': 6, 'model.ssm.state': 3, 'model.ssm.rank': 2, 'model.ssm.conv': 3},
    'jamba': {'model.mixer': ['mamba', 'attention'], 'model.position.kind': 'none', 'model.norm.kind': 'rms', 'model.ssm.inner': 6,
              'model.ssm.state': 3, 'model.ssm.rank': 2, 'model.ssm.norms': 'weights'},
    'mamba2': {'model.mixer': 'mamba2', 'model.position.kind': 'none', 'model.ffn.kind': 'none', 'model.norm.kind': 'rms',
               'model.ssm.inner': 8, 'model.ssm.state': 3, 'model.ssm.heads': 4, 'model.ssm.groups': 2},
    'rwkv7': {'model.mixer': 'rwkv7', 'model.position.kind': 'none', 'model.ffn.kind': 'channel-mix', 'model.heads': 2,
              'model.rwkv.decay': 3, 'model.rwkv.rate': 2, 'model.rwkv.value': 2, 'model.rwkv.gate': 3},
    'rwkv6': {'model.mixer': 'rwkv6', 'model.position.kind': 'none', 'model.ffn.kind': 'channel-mix', 'model.ffn.gated': True,
              'model.heads': 2, 'model.rwkv.decay': 3, 'model.rwkv.mix': 2, 'model.residual.halve_every': 1},
    'lstm': {'model.mixer': 'lstm', 'model.position.kind': 'none', 'model.ffn.kind': 'none'},
    'linear-attention': {'model.mixer': 'linear-attention'},
    'lora': gated | {'lora': {'rank': 3, 'scale': 1.5}},
    'universal-t5': {'model.position.kind': 'none', 'model.attention.buckets': 6, 'model.attention.reach': 4, 'model.tie_layers': 1},
}


class Model(ReferenceModel):
    def __init__(self, config):
        super().__init__(config)
        self.losses = 0

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

    def mixer(self, b, l, x):
        kinds = self.get('mixer', 'attention')
        kind = kinds[l % len(kinds)] if isinstance(kinds, list) else kinds
        return self.attention(b, l, x) if kind == 'attention' else getattr(self, kind.replace('-', '_'))(b, l, x)

    def biased(self, name, bias, x, out, mean=0.0):
        bias = self.make(bias, out, mean=mean)
        return F.linear(x, self.make(name + '.weight', out, x.shape[-1]), bias)

    def convolved(self, name, x):  # causal, depthwise
        K, c = self.get('ssm.conv', 4), x.shape[-1]
        w, bias = self.make(name + '.weight', c, K), self.make(name + '.bias', c)
        return F.silu(F.conv1d(F.pad(x.transpose(1, 2), (K - 1, 0)), w[:, None], bias, groups=c).transpose(1, 2))

    def mamba(self, b, l, x):
        inner, N, rank = (self.get('ssm.' + n, 0) for n in ('inner', 'state', 'rank'))
        def norm(name, y):
            if self.get('ssm.norms', 'none') == 'none':
                return y
            return y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-5) * self.make(name + '.weight', y.shape[-1], mean=1.0)
        u, gate = self.linear(b + '.ssm_in_x', x, inner, False), self.linear(b + '.ssm_in_z', x, inner, False)
        u = self.convolved(b + '.ssm_conv1d', u)
        dt, B_, C_ = (norm(f'{b}.ssm_{n}_norm', self.linear(f'{b}.ssm_x_{n}', u, s, False)) for n, s in (('dt', rank), ('b', N), ('c', N)))
        w = self.make(b + '.ssm_dt.weight', inner, rank)
        dt = F.softplus(F.linear(dt, w, self.make(b + '.ssm_dt.bias', inner, mean=-6.907)))
        a, skip = self.make(b + '.ssm_a', inner, N, mean=-1.0), self.make(b + '.ssm_d', inner, mean=1.0)
        h, ys = torch.zeros(B, inner, N), []
        for t in range(T):
            h = torch.exp(dt[:, t, :, None] * a) * h + (dt[:, t] * u[:, t])[..., None] * B_[:, t, None]
            ys.append((h * C_[:, t, None]).sum(-1) + skip * u[:, t])
        return self.linear(b + '.ssm_out', torch.stack(ys, 1) * F.silu(gate), C, False)

    def mamba2(self, b, l, x):
        inner, N, heads, groups = (self.get('ssm.' + n, 0) for n in ('inner', 'state', 'heads', 'groups'))
        gate = self.linear(b + '.ssm_in_z', x, inner, False)
        u = self.convolved(b + '.ssm_conv1d_x', self.linear(b + '.ssm_in_x', x, inner, False))
        B_, C_ = (self.convolved(f'{b}.ssm_conv1d_{n}', self.linear(f'{b}.ssm_in_{n}', x, groups * N, False))
                  .reshape(B, T, groups, N).repeat_interleave(heads // groups, 2) for n in 'bc')
        dt = F.softplus(self.biased(b + '.ssm_in_dt', b + '.ssm_dt.bias', x, heads, -6.907))
        decay = torch.exp(dt * self.make(b + '.ssm_a', heads, mean=-1.0))
        v = u.reshape(B, T, heads, -1)
        h, ys = torch.zeros(B, heads, N, inner // heads), []
        for t in range(T):
            h = decay[:, t, :, None, None] * h + B_[:, t, :, :, None] * (v * dt[..., None])[:, t, :, None]
            ys.append((C_[:, t, :, :, None] * h).sum(2))
        y = torch.stack(ys, 1) + v * self.make(b + '.ssm_d', heads, mean=1.0)[:, None]
        y = (y.flatten(2) * F.silu(gate)).reshape(B, T, groups, -1)
        y = (y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-5)).flatten(2) * self.make(b + '.ssm_norm.weight', inner, mean=1.0)
        return self.linear(b + '.ssm_out', y, C, False)

    def lstm(self, b, l, x):
        i, f, g, o = (self.biased(f'{b}.lstm_{n}', f'{b}.lstm_{n}.bias', x, C, m) for n, m in (('input', 0), ('forget', 1), ('cell', 0), ('output', 0)))
        state = self.make(b + '.lstm_state.weight', 4 * C, C)
        zero, gates = torch.zeros(1, B, C), torch.cat([i, f, g, o], -1)
        return torch.lstm(gates, (zero, zero), [torch.eye(4 * C), state], False, 1, 0.0, True, False, True)[0]

    def linear_attention(self, b, l, x):  # its quadratic form
        q, k, v = (self.linear(f'{b}.attn_{n}', x, H * D, False).reshape(B, T, H, D).transpose(1, 2) for n in 'qkv')
        a = ((F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-1, -2)).tril()
        y = a @ v / (a.sum(-1, keepdim=True) + 1e-6)
        return self.linear(b + '.attn_output', y.transpose(1, 2).flatten(-2), C, False)

    def shifted(self, x):
        return F.pad(x, (0, 0, 1, 0))[:, :-1] - x

    def heads_norm(self, b, y):
        w, bias = self.make(b + '.time_mix_ln.weight', C, mean=1.0), self.make(b + '.time_mix_ln.bias', C)
        return F.layer_norm(y, y.shape[-1:], eps=64e-5).flatten(2) * w + bias

    def rwkv7(self, b, l, x):
        heads, past = self.get('heads', H), self.shifted(x)
        split = lambda y: y.reshape(B, T, heads, -1)
        xr, xw, xk, xv, xa, xg = (x + past * self.make(f'{b}.time_mix_lerp_{n}.weight', C, mean=1.0) for n in 'rwkvag')
        product = lambda n, y, out: self.linear(f'{b}.time_mix_{n}', y, out, False)
        r, k, v = product('receptance', xr, C), product('key', xk, C), product('value', xv, C)
        def thin(n, y, act, mean=0.0):
            bias = self.make(f'{b}.time_mix_{n}0.weight', C, mean=mean)
            return product(n + '2', act(product(n + '1', y, self.get('rwkv.' + {'w': 'decay', 'a': 'rate', 'v': 'value'}[n], 0))), C) + bias
        w = torch.exp(-math.exp(-0.5) * torch.sigmoid(thin('w', xw, torch.tanh, -6.5)))
        if l == 0:
            self.first, rank = v, self.get('rwkv.rate', 0)  # and parameters that nothing reads
            self.make(b + '.time_mix_v0.weight', C), self.make(b + '.time_mix_v1.weight', rank, C), self.make(b + '.time_mix_v2.weight', C, rank)
        else:
            v = v + (self.first - v) * torch.sigmoid(thin('v', xv, lambda y: y))
        a = torch.sigmoid(thin('a', xa, lambda y: y))
        g = product('g2', torch.sigmoid(product('g1', xg, self.get('rwkv.gate', 0))), C)
        kk = split(k * self.make(b + '.time_mix_k_k.weight', C, mean=1.0))
        kk = kk / torch.sqrt((kk * kk).sum(-1, keepdim=True))
        k = k + (k * a - k) * self.make(b + '.time_mix_k_a.weight', C, mean=1.0)
        r, w, k, v, a = (split(y) for y in (r, w, k, v, a))
        S, ys = torch.zeros(B, heads, C // heads, C // heads), []  # keys, values
        for t in range(T):
            removed = (S * -kk[:, t, :, :, None]).sum(2, keepdim=True)
            S = S * w[:, t, :, :, None] + (kk * a)[:, t, :, :, None] * removed + k[:, t, :, :, None] * v[:, t, :, None]
            ys.append((S * r[:, t, :, :, None]).sum(2))
        y = self.heads_norm(b, torch.stack(ys, 1))
        y = y + (v * (r * k * self.make(b + '.time_mix_r_k.weight', C).reshape(heads, -1)).sum(-1, keepdim=True)).flatten(2)
        return product('output', y * g, C)

    def rwkv6(self, b, l, x):
        heads, past = self.get('heads', H), self.shifted(x)
        product = lambda n, y, out: self.linear(f'{b}.time_mix_{n}', y, out, False)
        both = x + past * self.make(b + '.time_mix_lerp_x.weight', C, mean=1.0)
        def seen(n):
            share = self.make(f'{b}.time_mix_lerp_{n}.weight', C, mean=1.0)
            return x + past * (share + product('w2_' + n, torch.tanh(product('w1_' + n, both, self.get('rwkv.mix', 0))), C))
        xw, xk, xv, xr, xg = (seen(n) for n in 'wkvrg')
        r, k, v, g = product('receptance', xr, C), product('key', xk, C), product('value', xv, C), product('gate', xg, C)
        w = torch.tanh(product('decay_w1', xw, self.get('rwkv.decay', 0)))
        w = torch.exp(-torch.exp(self.biased(b + '.time_mix_decay_w2', b + '.time_mix_decay.weight', w, C, -6.0)))
        r, k, v, w = (y.reshape(B, T, heads, -1) for y in (r, k, v, w))
        u = self.make(b + '.time_mix_first.weight', C).reshape(heads, -1)
        S, ys = torch.zeros(B, heads, C // heads, C // heads), []  # keys, values
        for t in range(T):
            kv = k[:, t, :, :, None] * v[:, t, :, None]
            ys.append(((S + u[..., None] * kv) * r[:, t, :, :, None]).sum(2))
            S = S * w[:, t, :, :, None] + kv
        return product('output', self.heads_norm(b, torch.stack(ys, 1)) * F.silu(g), C)

    def channel_mix(self, b, x):
        past = self.shifted(x)
        key = self.linear(b + '.channel_mix_key', x + past * self.make(b + '.channel_mix_lerp_k.weight', C, mean=1.0), FF, False)
        y = self.linear(b + '.channel_mix_value', F.relu(key) ** 2, C, False)
        if not self.get('ffn.gated', False):
            return y
        r = x + past * self.make(b + '.channel_mix_lerp_r.weight', C, mean=1.0)
        return torch.sigmoid(self.linear(b + '.channel_mix_receptance', r, C, False)) * y

    def feed_forward(self, b, l, x):
        if self.get('ffn.kind', 'mlp') == 'channel-mix':
            return self.channel_mix(b, x)
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
            x = self.residual(b + '.attn', x, lambda y: self.mixer(b, l, y))
            if self.get('ffn.kind', 'mlp') == 'none':
                continue
            x = self.residual(b + '.ffn', x, lambda y: self.feed_forward(b, l, y))
            x = x * 0.5 if self.get('residual.halve_every', 0) else x
        if self.get('norm.placement', 'pre') != 'deep':
            x = self.norm('output_norm', x)
        y = x @ (table if self.get('tie_embeddings', True) else self.make('output.weight', V, C)).T
        cap = self.get('logits.softcap', 0)
        return cap * torch.tanh(y / cap) if cap else y


def run(config):
    ids = torch.tensor([[(5 * s + 3 * t + t * t) % V for t in range(T + 1)] for s in range(B)])
    model = Model(config)
    loss = F.cross_entropy(model.logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) + model.losses
    return recorded(model, config, loss)


print_all(MODELS, run)
