#!/usr/bin/env python3
"""What PyTorch makes of the operations of a training step on this GPU, one by one.

  ops.py --model llama3.1_8b --batch 8192x1 [--device cuda|cpu] [--repeats 10]

The shapes and names are roofline.py's. Each operation runs in several forms (kernels, libraries); one line of JSON each,
with the median time of all its calls in a step per form, printed as soon as it is measured. Inputs are random and
take turns, so that none lies in a cache. What fails is said and left out.
"""

import argparse
import json
import statistics
import time

import torch
from torch.nn import functional

import peers
import roofline
import shapes

CACHE = 256 << 20  # bytes: more than the caches of any GPU


class Clock:
    def __init__(self, device, repeats):
        self.device, self.repeats, self.is_gpu = device, repeats, device.startswith("cuda")

    def once(self, call):
        if not self.is_gpu:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def median(self, calls):
        """Seconds of one of the calls, which do the same on different inputs."""
        for call in calls:
            self.once(call)
        return statistics.median(self.once(calls[i % len(calls)]) for i in range(max(self.repeats, len(calls))))

    def rand(self, *shape):
        return torch.randn(shape, device=self.device, dtype=torch.bfloat16)

    def sets(self, make, size):
        """So many sets of inputs that together they do not fit a cache; `size` bytes each."""
        return [make() for _ in range(max(1, min(8, int(CACHE // size) + 1 if self.is_gpu else 1)))]


def forms_of_products(clock):
    if not clock.is_gpu:
        return {"product": lambda: None}
    choose = torch.backends.cuda.preferred_blas_library
    return {"cuBLASLt": lambda: choose("cublaslt"), "cuBLAS": lambda: choose("cublas")}


def time_product(clock, tokens, inputs, outputs):
    """Seconds by operation and form."""
    size = 2 * (tokens * (inputs + outputs) + inputs * outputs)
    sets = clock.sets(lambda: (clock.rand(tokens, inputs), clock.rand(outputs, inputs), clock.rand(tokens, outputs)),
                      size)
    found = {"forward": {}, "backward, input": {}, "backward, weight": {}}
    for form, choose in forms_of_products(clock).items():
        choose()
        found["forward"][form] = clock.median([lambda x=x, w=w: x @ w.t() for x, w, _ in sets])
        found["backward, input"][form] = clock.median([lambda w=w, d=d: d @ w for _, w, d in sets])
        found["backward, weight"][form] = clock.median([lambda x=x, d=d: d.t() @ x for x, _, d in sets])
    return found


def products(clock, model, s):
    for name, inputs, outputs in (("attention.qkv", s.hidden, s.row), ("attention.out", s.query, s.hidden),
                                  (s.up_name, s.hidden, s.up), ("mlp.down", s.inner, s.hidden)):
        for part, forms in time_product(clock, s.tokens, inputs, outputs).items():
            yield f"{name} {part}", {form: seconds * s.layers for form, seconds in forms.items()}
    rows = s.logit_rows()
    for part, forms in time_product(clock, rows, s.hidden, s.vocabulary).items():
        yield f"head {part}", {form: seconds * (s.tokens // rows) for form, seconds in forms.items()}


def attention(clock, model, s):
    forward, backward = {}, {}
    for kernel in ("cudnn", "flash") if clock.is_gpu else ("math",):
        try:
            peers.choose_attention(kernel)
            grouped = peers.grouped_heads_work(model, clock.device)
            keys = model["num_key_value_heads"] if grouped else s.heads
            heads = [clock.rand(s.sequences, count, s.length, s.head_dim).requires_grad_()
                     for count in (s.heads, keys, keys)]

            def attend():
                return functional.scaled_dot_product_attention(*heads, is_causal=True,
                                                               enable_gqa=grouped and keys != s.heads)
            forward[kernel] = clock.median([attend] * 2) * s.layers
            y = attend()
            dy = torch.randn_like(y)
            backward[kernel] = clock.median([lambda: torch.autograd.grad(y, heads, dy, retain_graph=True)] * 2) * s.layers
        except RuntimeError as failure:
            yield "attention forward", {"failed": f"{kernel}: {failure}"[:300]}
    yield "attention forward", forward
    yield "attention backward", backward


def time_both_ways(clock, function, make, size):
    """Seconds forward and backward, with autograd and compiled."""
    forward, backward = {}, {}
    for form, run in (("eager", function), ("compile", torch.compile(function, dynamic=False))):
        sets = clock.sets(make, size)
        forward[form] = clock.median([lambda i=inputs: run(*i) for inputs in sets])
        outputs = [run(*inputs) for inputs in sets]
        wanted = [([y for y in (out if isinstance(out, tuple) else (out,))], [x for x in inputs if x.requires_grad])
                  for out, inputs in zip(outputs, sets)]
        gradients = [[torch.randn_like(y) for y in ys] for ys, _ in wanted]
        backward[form] = clock.median([lambda w=w, g=g: torch.autograd.grad(w[0], w[1], g, retain_graph=True)
                                       for w, g in zip(wanted, gradients)])
    return forward, backward


def named(name, times, calls):
    for way, forms in zip(("forward", "backward"), times):
        yield f"{name} {way}", {form: seconds * calls for form, seconds in forms.items()}


def rows(clock, model, s):
    def add_norm(x, branch, weight):
        total = x + branch
        return total, functional.rms_norm(total, (s.hidden,), weight, model["norm_eps"])

    def swiglu(up):
        gate, up = up.chunk(2, -1)
        return functional.silu(gate) * up

    def vector():
        return clock.rand(s.tokens, s.hidden).requires_grad_()
    if model["norm"] == "rms":
        times = time_both_ways(clock, add_norm, lambda: (vector(), vector(), clock.rand(s.hidden).requires_grad_()),
                               4 * s.tokens * s.hidden)
        yield from named("norm", times, 2 * s.layers + 1)
    if model["mlp"] == "swiglu":
        times = time_both_ways(clock, swiglu, lambda: (clock.rand(s.tokens, s.up).requires_grad_(),),
                               2 * s.tokens * s.up)
        yield from named("mlp activation", times, s.layers)


def loss(clock, model, s):
    count = s.logit_rows()
    targets = torch.randint(s.vocabulary, (count,), device=clock.device)
    logits = torch.randn((count, s.vocabulary), device=clock.device, requires_grad=True)

    def both(logits):
        return torch.autograd.grad(functional.cross_entropy(logits, targets), logits)
    yield "cross-entropy", {"eager": clock.median([lambda: both(logits)] * 2) * (s.tokens // count)}


def update(clock, model, s):
    """A part of the weights, and from it the time of all."""
    count = min(s.parameters, 1 << 29 if clock.is_gpu else 1 << 20)
    weight = clock.rand(count).requires_grad_()
    weight.grad = clock.rand(count)
    adamw = torch.optim.AdamW([weight], lr=1e-4, fused=True)
    yield "AdamW", {"fused, bf16 throughout": clock.median([adamw.step] * 2) * s.parameters / count}
    yield "norm of the gradients", {"bf16": clock.median([lambda: weight.grad.norm()] * 2) * s.parameters / count}


def ceilings(clock, model, s):
    """What this card achieves at best: rates per second, not times."""
    edge, count = (8192, 1 << 31) if clock.is_gpu else (256, 1 << 20)
    a, b = clock.rand(edge, edge), clock.rand(edge, edge)
    yield "peak of products", {"FLOP/s": 2.0 * edge ** 3 / clock.median([lambda: a @ b])}
    source, target = (torch.empty(count, dtype=torch.uint8, device=clock.device) for _ in range(2))
    source.random_()
    yield "bandwidth of a copy", {"bytes/s": 2.0 * count / clock.median([lambda: target.copy_(source)])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama3.1_8b")
    parser.add_argument("--batch", type=roofline.read_batch, default=(8192, 1))
    parser.add_argument("--shape", help="JSON of another model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    model = json.loads(options.shape) if options.shape else shapes.read_model(options.model)
    clock, sizes = Clock(options.device, options.repeats), roofline.Sizes(model, *options.batch)
    print(json.dumps({"versions": peers.versions()}), flush=True)
    for group in (ceilings, products, attention, rows, loss, update):
        try:
            for name, forms in group(clock, model, sizes):
                print(json.dumps({"operation": name, "seconds": forms}), flush=True)
        except Exception as failure:  # the next group may do better
            print(json.dumps({"group": group.__name__, "failed": f"{type(failure).__name__}: {failure}"[:400]}), flush=True)
        if clock.is_gpu:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
