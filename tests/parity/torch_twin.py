"""The native trainer's models and its training, written anew in plain PyTorch from the papers' formulas."""

import math

import torch
from torch.nn import functional


class PlainTwin:
    """A decoder-only Transformer (RMSNorm, RoPE, grouped-query attention, SwiGLU) over weights with the native trainer's names."""

    def __init__(self, spec, weights, dtype):
        self.model, self.dtype = spec["model"], dtype
        self.weights = {name: value.to(dtype, copy=True).requires_grad_() for name, value in weights.items()}

    def parameters(self):
        return list(self.weights.items())

    def export(self):
        return {name: value.detach() for name, value in self.weights.items()}

    def loss(self, samples):
        """Mean cross-entropy of the next token, in nats. samples: sequences x (SL+1)."""
        inputs, targets = samples[:, :-1], samples[:, 1:]
        x = self.weights["embedding.weight"][inputs]
        for layer in range(self.model["num_layers"]):
            prefix = f"layers.{layer}."
            x = x + self.attention(self.norm(x, prefix + "attention_norm"), prefix + "attention.")
            x = x + self.mlp(self.norm(x, prefix + "mlp_norm"), prefix + "mlp.")
        head = self.weights["embedding.weight" if self.model["tied_embeddings"] else "head.weight"]
        logits = self.norm(x, "final_norm") @ head.T
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def norm(self, x, name):
        variance = (x * x).mean(-1, keepdim=True)
        return x / torch.sqrt(variance + self.model["norm_eps"]) * self.weights[name + ".weight"].flatten()

    def mlp(self, x, prefix):
        gate, up = (x @ self.weights[prefix + "gate_up.weight"].T).chunk(2, -1)
        return (gate * torch.sigmoid(gate) * up) @ self.weights[prefix + "down.weight"].T

    def attention(self, x, prefix):
        m = self.model
        heads, kv_heads, width = m["num_attention_heads"], m["num_key_value_heads"], m["head_dim"]
        qkv = x @ self.weights[prefix + "qkv.weight"].T
        if m["qkv_bias"]:
            qkv = qkv + self.weights[prefix + "qkv.bias"].flatten()
        qkv = qkv.unflatten(-1, (-1, width)).transpose(1, 2)  # batch, head, position, channel
        q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(width)
        y = torch.softmax(scores.masked_fill(~self.visible(x.shape[1]), -math.inf), -1) @ v
        return y.transpose(1, 2).flatten(2) @ self.weights[prefix + "out.weight"].T

    def rotate(self, x):
        """RoPE as multiplication by e^(i t theta^(-2j/d)): the two halves of a head are real and imaginary parts."""
        half = x.shape[-1] // 2
        frequency = self.model["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequency
        turn = torch.polar(torch.ones_like(angle), angle).to(x.dtype.to_complex())
        rotated = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * turn
        return torch.cat([rotated.real, rotated.imag], -1)

    def visible(self, length):
        distance = torch.arange(length)[:, None] - torch.arange(length)  # query minus key
        return (distance >= 0) & (distance < self.model.get("sliding_window", length))


def learning_rate(optimizer, step, steps):
    peak, floor, warmup = optimizer["learning_rate"], optimizer["min_learning_rate"], optimizer["warmup_steps"]
    if step <= warmup:
        return peak * step / warmup
    progress = (step - warmup) / (steps - warmup)
    share = {"constant": 1.0, "linear": 1 - progress, "cosine": 0.5 * (1 + math.cos(math.pi * progress))}
    return peak if optimizer["schedule"] == "constant" else floor + (peak - floor) * share[optimizer["schedule"]]


def clip(parameters, limit, exact):
    """torch's own clipping divides by norm + 1e-6; `exact` divides by the norm, as the native trainer does."""
    limit = limit or math.inf
    if not exact:
        return float(torch.nn.utils.clip_grad_norm_(parameters, limit))
    norm = float(torch.nn.utils.get_total_norm([p.grad for p in parameters]))
    if norm > limit:
        for p in parameters:
            p.grad.mul_(limit / norm)
    return norm


def train(twin, spec, decays, samples, exact_clip=False):
    """Trains on samples (steps x GBS x (SL+1)); decays: names with weight decay. Returns each step's figures, like the native trainer."""
    o = spec["optimizer"]
    groups = [{"params": [p for name, p in twin.parameters() if (name in decays) == decayed],
               "weight_decay": o["weight_decay"] if decayed else 0.0} for decayed in (True, False)]
    parameters = [p for group in groups for p in group["params"]]
    optimizer = torch.optim.AdamW(groups, betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
    records = []
    for step, batch in enumerate(samples, 1):
        micro_batches = batch.split(spec["micro_batch_size"])
        optimizer.zero_grad()
        total = 0.0
        for micro in micro_batches:
            loss = twin.loss(micro) / len(micro_batches)
            loss.backward()
            total += float(loss.detach())
        rate = learning_rate(o, step, spec["steps"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        norm = clip(parameters, o["clip_grad_norm"], exact_clip)
        optimizer.step()
        records.append({"loss": total, "grad_norm": norm, "learning_rate": rate})
    return records
