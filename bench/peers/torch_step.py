#!/usr/bin/env python3
"""Trains the model of a specification in PyTorch and prints each step's seconds as JSON: the peer of `tprimat train`.
As there, each step is also a line of the file that TPRIMAT_STEPS names.

  torch_step.py SPEC [--compile] [--bf16 autocast|weights] [--loss whole|chunked]

The same shape, batch, optimizer and clipping, on random tokens that lie ready. Written as PyTorch is written for speed:
fused query-key-value and gate-up products, scaled_dot_product_attention (its flash kernel for CPUs), fused AdamW,
cross entropy over flattened logits in float32, gradients set to none, denormal numbers flushed to zero.

bf16 comes in two forms that do the same work, with weights and moments in float32:
  autocast  weights are float32; products run in bf16 under autocast, the residual stream stays float32
  weights   weights, activations and gradients are bf16; AdamW updates float32 masters, which are copied back
--loss chunked never holds all logits (linear_cross_entropy of PyTorch 2.13): less memory, another speed.
"""

import argparse
import contextlib
import json
import os
import time

import torch
from torch import nn
from torch.nn import functional


def make_norm(m):
    kind = nn.RMSNorm if m["norm"] == "rms" else nn.LayerNorm
    return kind(m["hidden_size"], m["norm_eps"])


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.width, self.heads, self.kv_heads = m["head_dim"], m["num_attention_heads"], m["num_key_value_heads"]
        self.qkv = nn.Linear(m["hidden_size"], (self.heads + 2 * self.kv_heads) * self.width,
                             bias=m["qkv_bias"] or m["linear_bias"])
        self.out = nn.Linear(self.heads * self.width, m["hidden_size"], bias=m["linear_bias"])

    def forward(self, x, turn):
        qkv = self.qkv(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        if turn is not None:
            cosine, sine = (part.to(q.dtype) for part in turn)
            q, k = (torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)
                    for a, b in (q.chunk(2, -1), k.chunk(2, -1)))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return self.out(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.gated = m["mlp"] == "swiglu"
        inner = m["ffn_hidden_size"]
        self.up = nn.Linear(m["hidden_size"], 2 * inner if self.gated else inner, bias=m["linear_bias"])
        self.down = nn.Linear(inner, m["hidden_size"], bias=m["linear_bias"])

    def forward(self, x):
        if not self.gated:
            return self.down(functional.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, -1)
        return self.down(functional.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.attention_norm, self.attention = make_norm(m), Attention(m)
        self.mlp_norm, self.mlp = make_norm(m), Mlp(m)

    def forward(self, x, turn):
        x = x + self.attention(self.attention_norm(x), turn)
        return x + self.mlp(self.mlp_norm(x))


class Network(nn.Module):
    def __init__(self, m, length, chunked):
        super().__init__()
        self.embedding = nn.Embedding(m["vocab_size"], m["hidden_size"])
        has_positions = m["position"] == "learned"
        self.positions = nn.Embedding(m["max_position_embeddings"], m["hidden_size"]) if has_positions else None
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["num_layers"]))
        self.norm = make_norm(m)
        self.head = nn.Linear(m["hidden_size"], m["vocab_size"], bias=False)
        self.options = nn.LinearCrossEntropyOptions() if chunked else None
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        if m["tied_embeddings"]:
            self.head.weight = self.embedding.weight
        half = m["head_dim"] // 2
        angle = torch.outer(torch.arange(length), m["rope_theta"] ** (-torch.arange(half) / half))
        self.turn = (angle.cos(), angle.sin()) if self.positions is None else None

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x, self.turn)
        x, targets = self.norm(x).flatten(0, 1), targets.flatten()
        if self.options:
            return functional.linear_cross_entropy(x, self.head.weight.to(x.dtype), targets, options=self.options)
        return functional.cross_entropy(self.head(x).float(), targets)


class Update:
    """Clipping and AdamW over float32 weights: the network's own, or masters of its bf16 ones."""

    def __init__(self, network, o):
        self.weights, self.clip = list(network.parameters()), o["clip_grad_norm"]
        self.has_masters = self.weights[0].dtype != torch.float32
        self.masters = [w.detach().float().requires_grad_() for w in self.weights] if self.has_masters else self.weights
        groups = [{"params": [w for w in self.masters if w.dim() == 2], "weight_decay": o["weight_decay"]},
                  {"params": [w for w in self.masters if w.dim() != 2], "weight_decay": 0.0}]
        self.adamw = torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                                       fused=True)

    def __call__(self):
        if self.has_masters:
            for master, weight in zip(self.masters, self.weights):
                master.grad, weight.grad = weight.grad.float(), None
        if self.clip:
            nn.utils.clip_grad_norm_(self.masters, self.clip, foreach=True)
        self.adamw.step()
        self.adamw.zero_grad(set_to_none=True)
        if self.has_masters:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.masters)


def train(spec, options):
    torch.manual_seed(spec["seed"])
    torch.set_flush_denormal(True)
    network = Network(spec["model"], spec["sequence_length"], options.loss == "chunked")
    uses_bf16 = spec["precision"] == "bf16"
    if uses_bf16 and options.bf16 == "weights":
        network.bfloat16()
    update = Update(network, spec["optimizer"])
    model = torch.compile(network, dynamic=False) if options.compile else network
    casts = uses_bf16 and options.bf16 == "autocast"
    rows, micro = spec["global_batch_size"], spec["micro_batch_size"]
    samples = torch.randint(spec["model"]["vocab_size"], (rows, spec["sequence_length"] + 1))
    seconds = []
    kept = open(os.environ.get("TPRIMAT_STEPS", os.devnull), "a", encoding="utf-8", buffering=1)
    for _ in range(spec["steps"]):
        start, total = time.perf_counter(), 0.0
        for batch in samples.split(micro):
            with torch.autocast("cpu", torch.bfloat16) if casts else contextlib.nullcontext():
                loss = model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) * (micro / rows)
            loss.backward()
            total += loss.item()
        update()
        seconds.append(time.perf_counter() - start)
        kept.write(json.dumps({"time_seconds": seconds[-1]}) + "\n")
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "loss": total, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", choices=("autocast", "weights"), default="autocast")
    parser.add_argument("--loss", choices=("whole", "chunked"), default="whole")
    arguments = parser.parse_args()
    with open(arguments.spec, encoding="utf-8") as file:
        print(json.dumps(train(json.load(file), arguments)))
