#!/usr/bin/env python3
"""Trains the model of a specification in PyTorch on a GPU, once for each of several settings.

  peers.py CASE.json [--device cuda|cpu]

CASE.json: {"spec": a specification of `tprimat train`, "formats": "bf16" or "masters", "peer": "torch" or "hf",
"settings": [{...}, ...], "steps": timed ones, "warmup": steps}. For each setting one line of JSON is printed as soon as
it is measured: seconds of each step, peak of memory, last loss; or why it failed. What fails leaves the others alone.

  torch  the network of bench/peers/torch_step.py: fused query-key-value and gate-up products
  hf     LlamaForCausalLM, Qwen2ForCausalLM or GPT2LMHeadModel of Transformers

  formats     bf16: weights, gradients and AdamW's moments in bf16; masters: weights and gradients in bf16, AdamW over
              float32 copies of them
  attention   cudnn, flash or math: the only kernel that scaled_dot_product_attention may take
  compile     no, blocks (each block alone), whole (the network with its loss)
  checkpoint  0: all activations are kept; n: every n-th block's input alone
  loss        whole: all logits at once; chunked: 4096 tokens' at a time, computed again in backward (torch alone)

Always: fused AdamW, clipping to a norm of 1, tokens that lie ready, the loss read after each step.
"""

import argparse
import contextlib
import gc
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import torch_step  # noqa: E402

LOSS_TOKENS = 4096
BACKENDS = {"cudnn": "enable_cudnn_sdp", "flash": "enable_flash_sdp", "math": "enable_math_sdp",
            "efficient": "enable_mem_efficient_sdp"}


def choose_attention(kernel):
    for name, switch in BACKENDS.items():
        getattr(torch.backends.cuda, switch)(name == kernel)


def grouped_heads_work(model, device):
    """Whether the chosen kernel takes fewer heads of keys than of queries."""
    heads, keys, width = model["num_attention_heads"], model["num_key_value_heads"], model["head_dim"]
    if heads == keys:
        return True
    shapes = [(1, count, 256, width) for count in (heads, keys, keys)]
    q, k, v = (torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True) for shape in shapes)
    try:
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        y.backward(torch.randn_like(y))
    except RuntimeError:
        return False
    return True


class Attention(torch_step.Attention):
    """Where the kernel wants as many heads of keys as of queries, they are repeated."""
    repeats = False

    def forward(self, x, turn):
        qkv = self.qkv(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        if turn is not None:
            cosine, sine = turn
            q, k = (torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)
                    for a, b in (q.chunk(2, -1), k.chunk(2, -1)))
        grouped = self.heads != self.kv_heads
        if grouped and self.repeats:
            k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=1) for each in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped and not self.repeats)
        return self.out(y.transpose(1, 2).flatten(2))


class Network(torch_step.Network):
    """On a GPU, in bf16, with blocks that may be computed again and a loss that may come in pieces."""

    def __init__(self, model, length):
        super().__init__(model, length, chunked=False)
        for block in self.blocks:
            block.attention.__class__ = Attention
        half = model["head_dim"] // 2
        exponents = -torch.arange(half, dtype=torch.float32) / half
        angle = torch.outer(torch.arange(length, dtype=torch.float32), model.get("rope_theta", 1e4) ** exponents)
        self.turn = (angle.cos().bfloat16(), angle.sin().bfloat16()) if self.positions is None else None
        self.every, self.loss = 0, "whole"
        self.runners = list(self.blocks)

    def piece(self, x, targets):
        return functional.cross_entropy(self.head(x).float(), targets, reduction="sum")

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[:tokens.shape[1]]
        for number, block in enumerate(self.runners):
            again = self.every and number % self.every == 0
            x = checkpoint(block, x, self.turn, use_reentrant=False) if again else block(x, self.turn)
        x, targets = self.norm(x).flatten(0, 1), targets.flatten()
        if self.loss == "whole":
            return functional.cross_entropy(self.head(x).float(), targets)
        parts = zip(x.split(LOSS_TOKENS), targets.split(LOSS_TOKENS))
        return sum(checkpoint(self.piece, *part, use_reentrant=False) for part in parts) / targets.numel()


class TorchPeer:
    def __init__(self, spec):
        self.network = Network(spec["model"], spec["sequence_length"])
        self.blocks = list(self.network.blocks)

    def apply(self, setting):
        """Returns what is called with tokens and targets."""
        network, kind = self.network, setting.get("compile", "no")
        network.every, network.loss = setting.get("checkpoint", 0), setting.get("loss", "whole")
        network.runners = [torch.compile(block, dynamic=False) if kind == "blocks" else block for block in self.blocks]
        return torch.compile(network, dynamic=False) if kind == "whole" else network


def hf_config(model, length):
    import transformers
    common = {"vocab_size": model["vocab_size"], "use_cache": False, "attn_implementation": "sdpa",
              "tie_word_embeddings": model["tied_embeddings"]}
    if model["mlp"] == "gelu":
        return transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_embd=model["hidden_size"], n_layer=model["num_layers"], n_head=model["num_attention_heads"],
            n_inner=model["ffn_hidden_size"], n_positions=model["max_position_embeddings"], resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, **common)
    names = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    common |= {name: model[name] for name in names}
    common |= {"num_hidden_layers": model["num_layers"], "intermediate_size": model["ffn_hidden_size"],
               "rms_norm_eps": model["norm_eps"], "rope_theta": model["rope_theta"],
               "max_position_embeddings": max(length, model["max_position_embeddings"])}
    if model["qkv_bias"]:
        return transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**common)
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(**common)


class HfPeer:
    def __init__(self, spec):
        kind, config = hf_config(spec["model"], spec["sequence_length"])
        self.network = kind(config).train()
        self.plain = None

    def apply(self, setting):
        if setting.get("checkpoint", 0):
            self.network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        elif self.network.is_gradient_checkpointing:
            self.network.gradient_checkpointing_disable()

        def loss_of(tokens, targets):
            return self.network(input_ids=tokens, labels=targets, shift_labels=targets).loss
        return torch.compile(loss_of, dynamic=False) if setting.get("compile", "no") == "whole" else loss_of


class PlainUpdate:
    """AdamW over the bf16 weights themselves, with moments in bf16."""

    def __init__(self, network, optimizer):
        self.weights, self.clip = list(network.parameters()), optimizer["clip_grad_norm"]
        groups = [{"params": [w for w in self.weights if w.dim() == 2], "weight_decay": optimizer["weight_decay"]},
                  {"params": [w for w in self.weights if w.dim() != 2], "weight_decay": 0.0}]
        self.adamw = torch.optim.AdamW(groups, lr=optimizer["learning_rate"], fused=True, eps=optimizer["epsilon"],
                                       betas=(optimizer["beta1"], optimizer["beta2"]))

    def __call__(self):
        if self.clip:
            nn.utils.clip_grad_norm_(self.weights, self.clip, foreach=True)
        self.adamw.step()
        self.adamw.zero_grad(set_to_none=True)


class Card:
    """The device, or the processor in its place where the script itself is tried."""

    def __init__(self, name):
        self.device, self.is_gpu = torch.device(name), name.startswith("cuda")

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def forget(self):
        gc.collect()
        torch._dynamo.reset()
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peaks(self):
        if not self.is_gpu:
            return {}
        return {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}


def build(case, card):
    torch.manual_seed(case["spec"]["seed"])
    torch.set_default_dtype(torch.bfloat16)
    with card.device:
        peer = {"torch": TorchPeer, "hf": HfPeer}[case["peer"]](case["spec"])
    torch.set_default_dtype(torch.float32)
    update = torch_step.Update if case["formats"] == "masters" else PlainUpdate
    return peer, update(peer.network, case["spec"]["optimizer"])


def train(case, setting, parts, card):
    peer, update = parts
    choose_attention(setting.get("attention", "flash"))
    Attention.repeats = not grouped_heads_work(case["spec"]["model"], card.device)
    loss_of, spec = peer.apply(setting), case["spec"]
    micro, rows = spec["micro_batch_size"], spec["global_batch_size"]
    generator = torch.Generator().manual_seed(spec["seed"])
    samples = torch.randint(spec["model"]["vocab_size"], (rows, spec["sequence_length"] + 1), generator=generator)
    batches = [(each[:, :-1].contiguous(), each[:, 1:].contiguous())
               for each in samples.to(card.device).split(micro)]
    seconds, total = [], 0.0
    for _ in range(case["warmup"] + case["steps"]):
        card.wait()
        start = time.perf_counter()
        losses = []
        for tokens, targets in batches:
            loss = loss_of(tokens, targets) * (micro / rows)
            loss.backward()
            losses.append(loss.detach())
        update()
        total = float(sum(losses))
        card.wait()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds[case["warmup"]:], "warmup_seconds": seconds[:case["warmup"]], "loss": total}


def report(setting, outcome):
    print(json.dumps({"setting": setting, **outcome}), flush=True)


def measure(case, card):
    parts = build(case, card)
    for setting in case["settings"]:
        card.forget()
        try:
            outcome = train(case, setting, parts, card)
        except torch.OutOfMemoryError:
            outcome = {"failed": "out of memory"}
        except Exception as failure:  # whatever a peer's setting does, the next one is tried
            outcome = {"failed": f"{type(failure).__name__}: {failure}"[:400]}
        with contextlib.suppress(AttributeError):
            parts[0].network.zero_grad(set_to_none=True)
        report(setting, {**outcome, **card.peaks()})


def versions():
    found = {"torch": torch.__version__, "cuda": torch.version.cuda}
    with contextlib.suppress(ImportError):
        import transformers
        found["transformers"] = transformers.__version__
    if torch.cuda.is_available():
        found |= {"gpu": torch.cuda.get_device_name(), "cudnn": torch.backends.cudnn.version()}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    print(json.dumps({"versions": versions()}), flush=True)
    case = json.loads(options.case.read_text(encoding="utf-8"))
    try:
        measure(case, Card(options.device))
    except torch.OutOfMemoryError:
        sys.exit("weights and states of this model do not fit")


if __name__ == "__main__":
    main()
