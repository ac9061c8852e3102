"""What reference.py and reference_encoders.py have in common: weights by a formula, norms, linear layers, what is recorded."""
import json, math, torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
V, C = 11, 8  # vocabulary, width


class ReferenceModel:
    def __init__(self, config):
        self.c, self.p = config, {}

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
        n = x.shape[-1]
        if not self.get('norm.weight', True):
            return F.layer_norm(x, (n,), eps=1e-5)
        w = self.make(name + '.weight', n, mean=1.0)
        if self.get('norm.kind', 'layer') == 'rms':
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
        return F.layer_norm(x, (n,), w, self.make(name + '.bias', n), 1e-5)

    def linear(self, name, x, out, bias):
        w = self.make(name + '.weight', out, x.shape[-1])
        y = F.linear(x, w, self.make(name + '.bias', out) if bias else None)
        if 'lora' not in self.c:
            return y
        rank, scale = self.c['lora']['rank'], self.c['lora']['scale']
        a = self.make(name + '.weight.lora_a', rank, x.shape[-1])
        return y + scale * F.linear(F.linear(x, a), self.make(name + '.weight.lora_b', out, rank))


def recorded(model, config, loss):
    loss.backward()
    gradients = {n: [float(f'{g:.10g}') for g in (w * 0 if w.grad is None else w.grad).flatten().tolist()] for n, w in model.p.items()}
    return {'config': config, 'loss': loss.item(), 'gradients': gradients}


def print_all(models, run):
    print('{' + ',\n'.join(json.dumps(n) + ':' + json.dumps(run(c), separators=(',', ':')) for n, c in models.items()) + '}')
