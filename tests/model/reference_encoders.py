"""Makes reference_encoders.json: loss and every parameter's gradient of small encoders and encoder-decoders, by PyTorch in
double, as reference.py does for decoders.

  python3 tests/model/reference_encoders.py > tests/model/reference_encoders.json      (Debian: python3-torch)

Sequences have different lengths; each is computed by itself here, and all are packed into one batch there.
"""
import math, torch
import torch.nn.functional as F
from reference_model import C, ReferenceModel, V, print_all, recorded

L, H, D, FF, CONTEXT = 2, 2, 4, 12, 6
both = {'model.kind': 'encoder-decoder'}
MODELS = {
    'bert': {'model.kind': 'encoder', 'model.norm.placement': 'post', 'model.embedding.norm': True, 'model.embedding.norm_last': True,
             'model.segments': 2, 'model.head.transform': True, 'model.logits.bias': True},
    'bert-classes': {'model.kind': 'encoder', 'model.norm.placement': 'post', 'model.pooling': 'first', 'model.segments': 2,
                     'model.head.kind': 'classes', 'model.head.classes': 3, 'model.head.transform': True},
    'tagger': {'model.kind': 'encoder', 'model.position.kind': 'none', 'model.attention.alibi': 4.0, 'model.head.kind': 'tags',
               'model.head.classes': 4, 'model.label_smoothing': 0.2},
    'vit': {'model.kind': 'encoder', 'model.pooling': 'mean', 'model.head.kind': 'classes', 'model.head.classes': 5, 'model.image.width': 4,
            'model.image.height': 4, 'model.image.patch': 2, 'model.norm.bias': True},
    'longformer': {'model.kind': 'encoder', 'model.attention.window': [2, 3], 'model.attention.globals': 1},
    'linformer': {'model.kind': 'encoder', 'model.attention.projected': [3, 5]},
    'linformer-shared': both | {'model.position.kind': 'sinusoidal', 'model.attention.projected': [0, 3],
                                'model.attention.projected_share': 'key-value'},
    'linformer-layerwise': {'model.kind': 'encoder', 'model.attention.projected': 2, 'model.attention.projected_share': 'layerwise'},
    'vaswani': both | {'model.norm.placement': 'post', 'model.position.kind': 'sinusoidal', 'model.ffn.activation': 'relu',
                       'model.embedding.scale': 8 ** 0.5, 'model.label_smoothing': 0.1, 'model.decoder_layers': 1},
    't5': both | {'model.norm.kind': 'rms', 'model.position.kind': 'none', 'model.attention.buckets': 4, 'model.attention.reach': 4,
                  'model.attention.bias': False, 'model.attention.scale': 1.0, 'model.ffn.bias': False, 'model.ffn.gated': True,
                  'model.tie_embeddings': False, 'model.start_token': 0},
    'bahdanau': both | {'model.mixer': 'lstm', 'model.ffn.kind': 'none', 'model.position.kind': 'none', 'model.attention.score': 'additive'},
    'luong': both | {'model.mixer': ['lstm', 'attention'], 'model.position.kind': 'sinusoidal', 'model.attention.score': 'general'},
    'swin': {'model.kind': 'encoder', 'model.layers': 3, 'model.head_width': 4, 'model.position.kind': 'none', 'model.head.kind': 'classes',
             'model.head.classes': 5, 'model.image.width': 8, 'model.image.height': 8, 'model.image.patch': 2, 'model.image.window': 2,
             'model.image.shift': [0, 1, 0], 'model.image.merge': [0, 0, 1]},
}


class Model(ReferenceModel):
    def act(self, x):
        return torch.relu(x) if self.get('ffn.activation', 'gelu-tanh') == 'relu' else F.gelu(x, approximate='tanh')

    def bucket(self, d, causal):  # T5's, of d = key - query
        n, first, buckets, reach = -d, 0, self.get('attention.buckets', 0), self.get('attention.reach', 0)
        if not causal:
            buckets //= 2
            if d > 0:
                n, first = d, buckets
        exact, n = buckets // 2, max(n, 0)
        if n < exact:
            return first + n
        return first + min(exact + int(math.log(n / exact) / math.log(reach / exact) * (buckets - exact)), buckets - 1)

    def attend(self, name, x, seen, causal, own, table):
        t, s = x.shape[0], seen.shape[0]
        bias = self.get('attention.bias', True)
        heads = lambda y: y.reshape(-1, H, D).transpose(0, 1)
        score = self.get('attention.score', 'scaled')
        q, k, v = (heads(y if n == 'k' and score == 'general' else self.linear(f'{name}_{n}', y, H * D, bias))
                   for n, y in (('q', x), ('k', seen), ('v', seen)))
        if own and not causal and self.projected(name):
            k, v = self.shortened(name, k, v)
            s = k.shape[1]
        if score == 'additive':
            scores = (torch.tanh(q[:, :, None] + k[:, None]) * self.make(name + '_score.weight', H * D).reshape(H, 1, 1, D)).sum(-1)
        else:
            scores = q @ k.transpose(-1, -2) * self.get('attention.scale', D ** -0.5)
        if own and table is not None:
            scores = scores + torch.stack([torch.stack([table[self.bucket(j - i, causal)] for j in range(s)]) for i in range(t)]).permute(2, 0, 1)
        if own and self.get('attention.alibi', 0):
            slopes = torch.tensor([2.0 ** (-self.get('attention.alibi', 0) * (h + 1) / H) for h in range(H)])
            scores = scores - slopes[:, None, None] * (torch.arange(t)[:, None] - torch.arange(s)[None, :]).abs()
        if causal:
            scores = scores.masked_fill(torch.ones(t, s).triu(1).bool(), -math.inf)
        windows = self.get('attention.window', [])
        if windows and own:
            i, j, first = torch.arange(t)[:, None], torch.arange(s)[None, :], self.get('attention.globals', 0)
            layer = int(name.split('.')[-2])  # blk.LAYER.attn
            scores = scores.masked_fill(((i - j).abs() >= windows[layer]) & (i >= first) & (j >= first), -math.inf)
        return self.linear(name + '_output', (scores.softmax(-1) @ v).transpose(0, 1).flatten(-2), C, bias)

    def projected(self, name):
        wanted, layer = self.get('attention.projected', 0), int(name.split('.')[-2])  # blk.LAYER.attn
        return wanted[layer] if isinstance(wanted, list) else wanted

    def shortened(self, name, k, v):  # sums over positions; of zeros beyond the text's end; no more of them than positions
        rows, t, share = self.projected(name), k.shape[1], self.get('attention.projected_share', 'headwise')
        kv = 'attn_kv_proj' if share == 'layerwise' else name + '_kv_proj'
        make = lambda n: self.make(n + '.weight', rows, CONTEXT)
        e, f = (make(name + '_k_proj'), make(name + '_v_proj')) if share == 'headwise' else (make(kv), make(kv))
        padded = lambda x: F.pad(x, (0, 0, 0, CONTEXT - t))
        return (e @ padded(k))[:, :t], (f @ padded(v))[:, :t]

    def biased(self, name, x, mean):
        bias = self.make(name + '.bias', C, mean=mean)
        return F.linear(x, self.make(name + '.weight', C, C), bias)

    def lstm(self, b, x):
        gates = torch.cat([self.biased(f'{b}.lstm_{n}', x, m) for n, m in (('input', 0), ('forget', 1), ('cell', 0), ('output', 0))], -1)
        state, zero = self.make(b + '.lstm_state.weight', 4 * C, C), torch.zeros(1, 1, C)
        return torch.lstm(gates[None], (zero, zero), [torch.eye(4 * C), state], False, 1, 0.0, True, False, True)[0][0]

    def mix(self, b, l, x, causal, table):
        kinds = self.get('mixer', 'attention')
        kind = kinds[l] if isinstance(kinds, list) else kinds
        if self.get('image.window', 0):
            return self.windows(b + '.attn', l, x)
        if kind == 'attention':
            return self.attend(b + '.attn', x, x, causal, True, table)
        return self.lstm(b, x) if causal else self.lstm(b, x) + self.lstm(b + '.back', x.flip(0)).flip(0)

    def windows(self, name, l, x):  # in windows of a picture, rolled by the shift; what was not beside is masked
        M, shift, side = self.get('image.window', 0), self.get('image.shift', 0)[l], math.isqrt(x.shape[0])
        table = self.make(name + '_window_b.weight', (2 * M - 1) ** 2, H)
        shift = 0 if M == side else shift
        cut = lambda y: y.reshape(side // M, M, side // M, M, -1).permute(0, 2, 1, 3, 4).reshape(-1, M * M, y.shape[-1])
        part = lambda i: (0 if i < side - M else 1 if i < side - shift else 2) if shift else 0
        label = cut(torch.tensor([[3 * part(y) + part(z) for z in range(side)] for y in range(side)])[..., None])[..., 0]
        xs = cut(torch.roll(x.reshape(side, side, -1), (-shift, -shift), (0, 1)))
        place = [(i // M, i % M) for i in range(M * M)]
        bias = torch.stack([torch.stack([table[(yi - yj + M - 1) * (2 * M - 1) + xi - xj + M - 1] for yj, xj in place]) for yi, xi in place])
        heads = lambda y: y.reshape(y.shape[0], M * M, H, D).transpose(1, 2)
        q, k, v = (heads(self.linear(f'{name}_{n}', xs, H * D, True)) for n in 'qkv')
        scores = q @ k.transpose(-1, -2) * D ** -0.5 + bias.permute(2, 0, 1)
        scores = scores.masked_fill((label[:, :, None] != label[:, None, :])[:, None], -math.inf)
        y = self.linear(name + '_output', (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2), x.shape[-1], True)
        y = y.reshape(side // M, side // M, M, M, -1).permute(0, 2, 1, 3, 4).reshape(side, side, -1)
        return torch.roll(y, (shift, shift), (0, 1)).flatten(0, 1)

    def merged(self, b, x):
        side = math.isqrt(x.shape[0])
        g = x.reshape(side, side, -1)
        x = torch.cat([g[0::2, 0::2], g[1::2, 0::2], g[0::2, 1::2], g[1::2, 1::2]], -1).flatten(0, 1)
        return self.linear(b + '.merge', self.norm(b + '.merge_norm', x), x.shape[-1] // 2, False)

    def feed_forward(self, b, x):
        bias = self.get('ffn.bias', True)
        if self.get('ffn.gated', False):
            y = self.act(self.linear(b + '.ffn_gate', x, FF, bias))
            y = y * self.linear(b + '.ffn_up', x, FF, bias)
        else:
            y = self.act(self.linear(b + '.ffn_up', x, FF, bias))
        return self.linear(b + '.ffn_down', y, x.shape[-1], bias)

    def residual(self, name, x, branch):
        if self.get('norm.placement', 'pre') == 'post':
            return self.norm(name + '_norm', x + branch(x))
        return x + branch(self.norm(name + '_norm', x))

    def stack(self, side, x, layers, causal, encoded=None, segments=None):
        x = x * self.get('embedding.scale', 1)
        if segments is not None:
            x = x + self.make('token_types.weight', 2, C)[segments]
        normed = lambda y: self.norm(side + 'token_embd_norm', y) if self.get('embedding.norm', False) else y
        if not self.get('embedding.norm_last', False):
            x = normed(x)
        kind, t = self.get('position.kind', 'learned'), x.shape[0]
        if kind == 'learned':
            x = x + self.make(side + 'position_embd.weight', self.get('context', CONTEXT), C)[:t]
        if kind == 'sinusoidal':
            angle = torch.arange(t)[:, None] * 10000.0 ** (-2.0 * torch.arange(C // 2) / C)
            x = x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
        if self.get('embedding.norm_last', False):
            x = normed(x)
        table = self.make(side + 'attn_rel_b.weight', self.get('attention.buckets', 0), H) if self.get('attention.buckets', 0) else None
        for l in range(layers):
            b = f'{side}blk.{l}'
            x = self.merged(b, x) if self.get('image.merge', [0] * L)[l] else x
            x = self.residual(b + '.attn', x, lambda y: self.mix(b, l, y, causal, table))
            if encoded is not None:
                x = self.residual(b + '.cross_attn', x, lambda y: self.attend(b + '.cross_attn', y, encoded, False, False, None))
            if self.get('ffn.kind', 'mlp') != 'none':
                x = self.residual(b + '.ffn', x, lambda y: self.feed_forward(b, y))
        return x if self.get('norm.placement', 'pre') == 'post' else self.norm(side + 'output_norm', x)

    def words(self, x):  # logits
        w = self.p['token_embd.weight'] if self.get('tie_embeddings', True) else self.make('output.weight', V, C)
        return F.linear(x, w, self.make('output.bias', V) if self.get('logits.bias', False) else None)

    def told(self, x, wanted):  # an encoder's logits
        kind = self.get('head.kind', 'tokens')
        if kind == 'classes':
            y = x.mean(0, keepdim=True) if self.get('pooling', 'mean') == 'mean' else x[:1]
        else:
            y = x[wanted]
        if kind == 'tokens':
            if self.get('head.transform', False):
                y = self.norm('output_transform_norm', self.act(self.linear('output_transform', y, C, True)))
            return self.words(y)
        if self.get('head.transform', False):
            y = torch.tanh(self.linear('cls', y, C, True))
        return self.linear('cls.output', y, self.get('head.classes', 0), True)


def ids_of(s, length):
    return torch.tensor([(5 * s + 3 * t + t * t) % V for t in range(length)])


def run(config):
    model, losses = Model(config), []
    for s, length in enumerate((6, 4)):
        ids = ids_of(s, length + 1)
        if model.get('kind', '') == 'encoder-decoder':
            table = model.make('token_embd.weight', V, C)
            source = torch.tensor([(7 * s + 2 * t + 1) % V for t in range(length - 1)])
            encoded = model.stack('enc.', table[source], L, False)
            x = model.stack('dec.', table[ids[:-1]], model.get('decoder_layers', L), True, encoded)
            logits, targets = model.words(x), ids[1:]
        elif model.get('image.patch', 0):
            pixels = model.get('image.width', 0) * model.get('image.height', 0)
            patches = torch.sin(0.37 * (pixels * s + torch.arange(float(pixels)))).reshape(-1, model.get('image.patch', 0) ** 2)
            model.c.setdefault('model.context', len(patches))
            x = model.stack('', model.linear('patch_embd', patches, C, True), model.get('layers', L), False)
            logits, targets = model.told(x, None), torch.tensor([3 - s])
        else:
            table = model.make('token_embd.weight', V, C)
            segments = (torch.arange(length) > 2).long() if model.get('segments', 0) else None
            x = model.stack('', table[ids[:-1]], L, False, segments=segments)
            wanted = torch.tensor([1, length - 1])
            classes = {'tokens': V, 'classes': 3, 'tags': 4}[model.get('head.kind', 'tokens')]
            targets = torch.tensor([2 - s]) if model.get('head.kind', '') == 'classes' else ids[wanted + 1] % classes
            logits = model.told(x, wanted)
        losses.append(F.cross_entropy(logits, targets, reduction='none', label_smoothing=model.get('label_smoothing', 0.0)))
    config = {k: v for k, v in config.items() if k != 'model.context'}
    return recorded(model, config, torch.cat(losses).mean())


print_all(MODELS, lambda config: run(dict(config)))
