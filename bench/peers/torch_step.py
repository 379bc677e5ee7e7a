#!/usr/bin/env python3
"""Trains the model of a specification in PyTorch and prints the seconds of each step as JSON: the peer of `tprimat train --spec`.

The same shape, batch, optimizer and clipping, on random tokens that lie ready. Written as PyTorch is written for speed: fused RMSNorm,
scaled_dot_product_attention, fused AdamW; weights are float32, and with bf16 the products run under autocast.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        hidden, self.width, self.heads, self.kv_heads = m["hidden_size"], m["head_dim"], m["num_attention_heads"], m["num_key_value_heads"]
        self.attention_norm = nn.RMSNorm(hidden, m["norm_eps"])
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv_heads) * self.width, bias=m["qkv_bias"])
        self.out = nn.Linear(self.heads * self.width, hidden, bias=False)
        self.mlp_norm = nn.RMSNorm(hidden, m["norm_eps"])
        self.gate_up = nn.Linear(hidden, 2 * m["ffn_hidden_size"], bias=False)
        self.down = nn.Linear(m["ffn_hidden_size"], hidden, bias=False)

    def forward(self, x, cosine, sine):
        x = x + self.attend(self.attention_norm(x), cosine, sine)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def attend(self, x, cosine, sine):
        qkv = self.qkv(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        q, k = (torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1) for a, b in (q.chunk(2, -1), k.chunk(2, -1)))
        y = functional.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True,
                                                    enable_gqa=self.heads != self.kv_heads)
        return self.out(y.transpose(1, 2).flatten(2))


class Network(nn.Module):
    def __init__(self, m, length):
        super().__init__()
        self.embedding = nn.Embedding(m["vocab_size"], m["hidden_size"])
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["num_layers"]))
        self.norm = nn.RMSNorm(m["hidden_size"], m["norm_eps"])
        self.head = nn.Linear(m["hidden_size"], m["vocab_size"], bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        if m["tied_embeddings"]:
            self.head.weight = self.embedding.weight
        half = m["head_dim"] // 2
        angle = torch.outer(torch.arange(length), m["rope_theta"] ** (-torch.arange(half) / half))
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


def make_optimizer(network, o):
    decayed = [p for p in network.parameters() if p.dim() == 2]
    others = [p for p in network.parameters() if p.dim() != 2]
    groups = [{"params": decayed, "weight_decay": o["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"], fused=True)


def train(spec, compiled):
    torch.manual_seed(spec["seed"])
    network = Network(spec["model"], spec["sequence_length"])
    optimizer = make_optimizer(network, spec["optimizer"])
    model = torch.compile(network) if compiled else network
    rows, micro = spec["global_batch_size"], spec["micro_batch_size"]
    samples = torch.randint(spec["model"]["vocab_size"], (rows, spec["sequence_length"] + 1))
    seconds = []
    for _ in range(spec["steps"]):
        start = time.perf_counter()
        total = 0.0
        for batch in samples.split(micro):
            with torch.autocast("cpu", torch.bfloat16, enabled=spec["precision"] == "bf16"):
                loss = model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) * (micro / rows)
            loss.backward()
            total += loss.item()
        if spec["optimizer"]["clip_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(network.parameters(), spec["optimizer"]["clip_grad_norm"], foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "loss": total, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    with open(options.spec, encoding="utf-8") as file:
        print(json.dumps(train(json.load(file), options.compile)))
