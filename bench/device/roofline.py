#!/usr/bin/env python3
"""The least time that one training step can take on a GPU, operation by operation, and the memory that it needs.

  roofline.py                                       Llama 3.1 8B on an H200: the tables of docs/gpu.md
  roofline.py --model qwen2.5_7b --batches 8192x1   another model of the catalogue; tokens x sequences
  roofline.py --json                                the same as JSON

An operation's floor is the larger of its FLOPs over the peak of matrix products and its bytes over the bandwidth of
memory. Bytes count every input once and every output once, as the trainer cuts a step into operations; they carry the
names that `tprimat train --profile` prints. FLOPs are those of matrix products. Peak and bandwidth are the hardware
catalogue's (src/core/spec/hardware.tsv). Nothing here is measured.
"""

import argparse
import dataclasses
import json

import shapes

HALF, FULL = 2, 4  # bytes of bf16 and fp32
LOGITS = 512 << 20  # that exist at a time on a GPU (k_max_logits_on_gpu, src/core/memory/rank_shape.h)
# Bytes that AdamW reads and writes per parameter, and that stay per parameter, by what is kept.
#   bf16     weights and moments in bf16, no masters (ops/adamw.h)
#   masters  weights in bf16, masters and moments in fp32 (ops/adamw.h)
# Both read gradients in fp32.
UPDATE = {"bf16": FULL + 3 * 2 * HALF, "masters": FULL + 3 * 2 * FULL + HALF}
STATES = {"bf16": {"weights": HALF, "gradients": FULL, "moments": 2 * HALF},
          "masters": {"weights": HALF, "gradients": FULL, "masters": FULL, "moments": 2 * FULL}}


@dataclasses.dataclass
class Operation:
    """All calls of one step together."""
    name: str
    calls: int
    flops: float
    bytes: float

    def times(self, machine):
        return self.flops / machine["flops"], self.bytes / machine["bandwidth"]

    def floor(self, machine):
        return max(self.times(machine))


class Sizes:
    def __init__(self, model, length, sequences):
        self.length, self.sequences, self.tokens = length, sequences, length * sequences
        self.layers, self.hidden, self.inner = model["num_layers"], model["hidden_size"], model["ffn_hidden_size"]
        self.heads, self.vocabulary = model["num_attention_heads"], model["vocab_size"]
        self.query = self.heads * model["head_dim"]
        self.key = model["num_key_value_heads"] * model["head_dim"]
        self.row = self.query + 2 * self.key
        self.up = self.inner * (2 if model["mlp"] == "swiglu" else 1)
        self.up_name = "mlp.gate_up" if model["mlp"] == "swiglu" else "mlp.up"
        self.fuses_gelu = model["mlp"] != "swiglu"  # in the products around it: its inputs and outputs stay
        self.turns = model["position"] == "rope"
        self.means = 1 if model["norm"] == "rms" else 2  # per row, kept by a norm
        self.head_dim = model["head_dim"]
        self.parameters = shapes.count_parameters(model)
        # Weights of products, whose gradients need no clearing.
        layer = self.hidden * (self.row + self.query + self.up + self.inner)
        self.written_first = layer * self.layers + self.hidden * self.vocabulary

    def logit_rows(self, most=LOGITS):
        """The largest divisor of the tokens whose logits fit."""
        rows = max(1, min(most // self.vocabulary, self.tokens))
        while self.tokens % rows:
            rows -= 1
        return rows


def products(s):
    """Forward, gradient of the input, and gradient of the weight in fp32, which the only micro-batch writes."""
    for name, inputs, outputs in (("attention.qkv", s.hidden, s.row), ("attention.out", s.query, s.hidden),
                                  (s.up_name, s.hidden, s.up), ("mlp.down", s.inner, s.hidden)):
        flops = 2.0 * s.tokens * inputs * outputs * s.layers
        moved = (s.tokens * (inputs + outputs) + inputs * outputs) * HALF * s.layers
        written = (s.tokens * (inputs + outputs) * HALF + inputs * outputs * FULL) * s.layers
        visited = s.tokens * s.inner * HALF * s.layers if s.fuses_gelu else 0  # beside what the product has
        yield Operation(f"{name} forward", s.layers, flops, moved + (visited if name == "mlp.up" else 0))
        yield Operation(f"{name} backward, input", s.layers, flops, moved + (visited if name == "mlp.down" else 0))
        yield Operation(f"{name} backward, weight", s.layers, flops, written)


def head(s):
    """In pieces of the tokens; logits are fp32, their gradients bf16. The first piece writes the weight's gradient."""
    pieces = s.tokens // s.logit_rows()
    flops, logits = 2.0 * s.tokens * s.hidden * s.vocabulary, s.tokens * s.vocabulary
    weight, rows = s.hidden * s.vocabulary, s.tokens * s.hidden * HALF
    yield Operation("head forward", pieces, flops, rows + weight * HALF * pieces + logits * FULL)
    yield Operation("cross-entropy", pieces, 0, logits * (FULL + HALF))
    yield Operation("head backward, input", pieces, flops, logits * HALF + weight * HALF * pieces + rows)
    yield Operation("head backward, weight", pieces, flops, logits * HALF + rows + weight * FULL * (2 * pieces - 1))


def attention(s):
    """Each token sees half of the sequence. Backward computes the scores again: five products to forward's two."""
    flops = 4.0 * s.query * s.length / 2 * s.tokens * s.layers
    sums = s.tokens * s.heads * FULL
    yield Operation("attention forward", s.layers, flops, (s.tokens * (s.row + s.query) * HALF + sums) * s.layers)
    yield Operation("attention backward", s.layers, flops * 2.5,
                    (s.tokens * 2 * (s.row + s.query) * HALF + sums) * s.layers)


def rows(s):
    """What visits rows of activations."""
    stream, norms = s.tokens * s.hidden * HALF, 2 * s.layers + 1
    yield Operation("norm forward", norms, 0, stream * (2 + 4 * (norms - 1)))  # all but the first add a branch
    yield Operation("norm backward", norms, 0, stream * 4 * norms)
    if s.turns:
        yield Operation("rotary positions", 2 * s.layers, 0, s.tokens * (s.query + s.key) * 2 * HALF * 2 * s.layers)
    if not s.fuses_gelu:
        yield Operation("mlp activation forward", s.layers, 0, s.tokens * (s.up + s.inner) * HALF * s.layers)
        yield Operation("mlp activation backward", s.layers, 0, s.tokens * (2 * s.up + s.inner) * HALF * s.layers)
    yield Operation("embedding forward", 1, 0, 2 * stream)
    yield Operation("embedding backward", 1, 0, stream + s.tokens * s.hidden * 2 * FULL)


def weights(s, formats):
    yield Operation("AdamW", 1, 0, s.parameters * UPDATE[formats])
    yield Operation("norm of the gradients", 1, 0, s.parameters * FULL)
    yield Operation("clearing gradients", 1, 0, (s.parameters - s.written_first) * FULL)


def operations(s, formats="bf16"):
    return [*products(s), *head(s), *attention(s), *rows(s), *weights(s, formats)]


def model_flops(s):
    """Forward and backward once, as formula causal/1 counts them: attention's scores are not counted twice."""
    return sum(each.flops * (2 / 2.5 if each.name == "attention backward" else 1) for each in operations(s))


def block_memory(s, recompute):
    """Bytes of one layer's activations: those kept for backward, those that all layers share."""
    stream, n = s.tokens * s.hidden * HALF, s.tokens
    cheap = 2 * stream + n * s.inner * HALF  # outputs of the norms, inner rows of the MLP
    rest = stream + 2 * s.means * n * FULL + n * (s.row + s.query + s.up) * HALF + n * s.heads * FULL
    shared = {"none": 0, "selective": cheap, "full": cheap + rest}[recompute]
    return cheap + rest - shared, shared


def memory(s, recompute="none", formats="bf16", max_logits=LOGITS):
    """What the trainer reserves before the first step, in bytes; as src/core/memory plans it."""
    stream, n = s.tokens * s.hidden * HALF, s.tokens
    kept, shared = block_memory(s, recompute)
    final = stream if recompute == "selective" else 0  # the last norm's output, computed again
    parts = {name: s.parameters * each for name, each in STATES[formats].items()}
    parts["activations"] = (kept + stream) * s.layers + 3 * stream + s.means * n * FULL - final
    angles = s.length * (s.head_dim // 2) * FULL * 2 if s.turns else 0
    parts["workspace"] = (shared + final + angles + n * (s.row + s.query + s.up + s.inner) * HALF + 5 * stream
                          + 3 * n * FULL)
    parts["logits"] = s.logit_rows(max_logits) * (s.vocabulary + 1) * FULL
    return parts


def cells(values):
    return "| " + " | ".join(values) + " |"


def time_table(s, machine):
    lines = [cells(["operation", "calls", "TFLOP", "GB", "FLOPs, ms", "bytes, ms", "floor, ms", "measured, ms"]),
             "|---|" + "---:|" * 7]
    found = operations(s)
    for each in found:
        by_flops, by_bytes = each.times(machine)
        lines.append(cells([each.name, str(each.calls), f"{each.flops / 1e12:.2f}" if each.flops else "",
                            f"{each.bytes / 1e9:.2f}", f"{by_flops * 1e3:.2f}" if each.flops else "",
                            f"{by_bytes * 1e3:.2f}", f"{each.floor(machine) * 1e3:.2f}", ""]))
    by_flops, by_bytes = (sum(each.times(machine)[i] for each in found) for i in (0, 1))
    floor = sum(each.floor(machine) for each in found)
    lines.append(cells(["**all**", "", f"**{sum(each.flops for each in found) / 1e12:.2f}**",
                        f"**{sum(each.bytes for each in found) / 1e9:.2f}**", f"**{by_flops * 1e3:.2f}**",
                        f"**{by_bytes * 1e3:.2f}**", f"**{floor * 1e3:.2f}**", ""]))
    return lines


def conclusion(s, machine):
    floor = sum(each.floor(machine) for each in operations(s))
    slower = sum(max(each.flops / machine["achieved_flops"], each.times(machine)[1]) for each in operations(s))
    used = model_flops(s) / machine["flops"]
    return (f"Floor {floor * 1e3:.1f} ms: {s.tokens / floor:.0f} tokens/s, an MFU (`causal`) of {used / floor:.1%}. "
            f"With products at the catalogue's best measured rate of this part, "
            f"{machine['achieved_flops'] / 1e12:g} TFLOP/s: {slower * 1e3:.1f} ms, {s.tokens / slower:.0f} tokens/s, "
            f"MFU {used / slower:.1%}.")


def memory_table(s, machine):
    kinds = ("none", "selective", "full")
    columns = [memory(s, kind) for kind in kinds]
    lines = [cells(["GB", *(f"recompute {kind}" for kind in kinds), "measured"]), "|---|" + "---:|" * 4]
    for name in columns[0]:
        lines.append(cells([name, *(f"{column[name] / 1e9:.2f}" for column in columns), ""]))
    totals = [sum(column.values()) for column in columns]
    lines.append(cells(["**all**", *(f"**{total / 1e9:.2f}**" for total in totals), ""]))
    lines.append(cells([f"left of {machine['memory'] / 1e9:g}",
                        *(f"{(machine['memory'] - total) / 1e9:.2f}" for total in totals), ""]))
    return lines


def render(model, machine, batches):
    """Markdown."""
    lines = []
    for length, sequences in batches:
        s = Sizes(model, length, sequences)
        lines += [f"**SL {length} × MBS {sequences}** ({s.tokens} tokens, {s.parameters} parameters)", "",
                  *time_table(s, machine), "", conclusion(s, machine), ""]
    s = Sizes(model, *batches[0])
    lines += [f"**Memory, {s.tokens} tokens a micro-batch**, weights and moments in bf16, gradients in fp32", "",
              *memory_table(s, machine)]
    return "\n".join(lines) + "\n"


def as_json(model, machine, batches):
    found = []
    for length, sequences in batches:
        s = Sizes(model, length, sequences)
        found.append({"sequence_length": length, "micro_batch_size": sequences, "model_flops": model_flops(s),
                      "floor_seconds": sum(each.floor(machine) for each in operations(s)),
                      "operations": [{**dataclasses.asdict(each), "floor_seconds": each.floor(machine)}
                                     for each in operations(s)],
                      "memory_bytes": {kind: memory(s, kind) for kind in ("none", "selective", "full")}})
    return {"model": model["name"], "machine": machine, "steps": found}


def read_batch(text):
    length, sequences = text.split("x")
    return int(length), int(sequences)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama3.1_8b")
    parser.add_argument("--machine", default="H200-SXM-141GB")
    parser.add_argument("--batches", nargs="+", type=read_batch, default=[(8192, 1), (2048, 4)])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model, machine = shapes.read_model(options.model), shapes.read_machine(options.machine)
    if options.json:
        print(json.dumps(as_json(model, machine, options.batches), indent=1))
    else:
        print(render(model, machine, options.batches), end="")


if __name__ == "__main__":
    main()
