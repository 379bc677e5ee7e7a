#!/usr/bin/env python3
"""Trains small models with the native trainer and, from the same weights on the same tokens, with PyTorch, and compares the two.

  compare_with_torch.py PROGRAM                     every case below; PROGRAM is the test program dump_training
  compare_with_torch.py PROGRAM --spec FILE         the training of FILE (as `tprimat run` writes it), step by step

TPRIMAT_PYTHON names the Python to use: one that has torch, and transformers if the models of Hugging Face are to be compared too.
Exit status: 0 all within tolerance, 1 not, 77 this Python has no torch.
"""

import argparse
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

SKIPPED = 77

LLAMA = {"name": "llama", "num_layers": 3, "hidden_size": 96, "ffn_hidden_size": 160, "num_attention_heads": 6,
         "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 331, "max_position_embeddings": 256, "tied_embeddings": False,
         "qkv_bias": False, "rope_theta": 500000.0, "norm_eps": 1e-5}
QWEN = {**LLAMA, "name": "qwen", "num_layers": 2, "num_attention_heads": 4, "head_dim": 32, "tied_embeddings": True, "qkv_bias": True,
        "rope_theta": 1e6, "norm_eps": 1e-6}
MISTRAL = {**LLAMA, "name": "mistral", "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 24, "rope_theta": 1e4,
           "sliding_window": 21}
TRAINING = {"sequence_length": 83, "micro_batch_size": 2, "global_batch_size": 6, "steps": 8, "seed": 7, "precision": "fp32"}
OPTIMIZER = {"learning_rate": 1e-3, "min_learning_rate": 1e-4, "warmup_steps": 3, "schedule": "cosine", "clip_grad_norm": 0.7}
CASES = [
    {**TRAINING, "model": LLAMA, "optimizer": OPTIMIZER},
    {**TRAINING, "model": QWEN, "sequence_length": 130, "micro_batch_size": 3, "optimizer": {**OPTIMIZER, "schedule": "linear"}},
    {**TRAINING, "model": MISTRAL, "sequence_length": 100, "optimizer": {**OPTIMIZER, "schedule": "constant", "clip_grad_norm": 0}},
]

# Largest differences allowed, all relative: of any step's loss; of any step's gradient norm; of any matrix or norm after the last step
# (norm of the difference over its own norm); of any bias likewise; of all weights together (over the distance that training moved them).
# Biases begin at 0, and softmax cancels what a key's bias adds to all scores alike, so that rounding is much of its gradient, which Adam
# scales up.
EXACT = {"loss": 1e-12, "grad_norm": 1e-11, "weights": 1e-10, "biases": 1e-10, "update": 1e-10, "learning_rate": 1e-14}
SINGLE = {"loss": 1e-5, "grad_norm": 1e-4, "weights": 1e-4, "biases": 1e-3, "update": 1e-4, "learning_rate": 1e-14}
BF16 = {"loss": 2e-3, "grad_norm": 5e-2, "weights": 3e-2, "biases": 0.5, "update": 5e-2, "learning_rate": 1e-14}


def find_torch():
    if importlib.util.find_spec("torch") and importlib.util.find_spec("numpy"):
        return True
    print(f"skipped: {sys.executable} has no torch and numpy\n"
          "  python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy transformers\n"
          "  TPRIMAT_PYTHON=/tmp/torch/bin/python ctest -L parity")
    return False


class Recording:
    """What the native trainer wrote down of one training."""

    def __init__(self, program, spec, engine):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "spec.json").write_text(json.dumps({**spec, "precision": "bf16" if engine == "bf16" else "fp32"}))
            arguments = [program, folder / "spec.json", folder, *(["double"] if engine == "double" else [])]
            subprocess.run(arguments, check=True)
            record = json.loads((folder / "training.json").read_text())
            self.spec, self.steps = record["spec"], record["steps"]
            self.decays = {w["name"] for w in record["weights"] if w["decays"]}
            self.initial = read_weights(folder / "initial.f64", record["weights"])
            self.final = read_weights(folder / "final.f64", record["weights"])
            tokens = torch.from_numpy(numpy.fromfile(folder / "tokens.i32", numpy.int32).astype(numpy.int64))
            self.samples = tokens.view(len(self.steps), self.spec["global_batch_size"], self.spec["sequence_length"] + 1)


def read_weights(path, table):
    values = torch.from_numpy(numpy.fromfile(path, numpy.float64))
    pieces = values.split([w["rows"] * w["cols"] for w in table])
    return {w["name"]: piece.view(w["rows"], w["cols"]) for w, piece in zip(table, pieces, strict=True)}


def relative(ours, theirs):
    return abs(ours - theirs) / abs(theirs)


def weight_differences(recording, theirs):
    """Of the worst matrix or norm and the worst bias, relative to its size; of all together, relative to how far training moved them."""
    found = {"weights": 0.0, "biases": 0.0}
    difference = moved = 0.0
    for name, value in theirs.items():
        value = value.double()
        squares = float((recording.final[name] - value).square().sum())
        kind = "biases" if name.endswith(".bias") else "weights"
        found[kind] = max(found[kind], math.sqrt(squares) / float(value.norm()))
        difference += squares
        moved += float((value - recording.initial[name]).square().sum())
    return {**found, "update": math.sqrt(difference / moved)}


def compare(recording, make_twin, dtype, exact_clip=False):
    """Repeats the training with a twin; returns the largest differences and both records."""
    twin = make_twin(recording.spec, recording.initial, dtype)
    steps = torch_twin.train(twin, recording.spec, recording.decays, recording.samples, exact_clip)
    differences = {key: max(relative(ours[key], theirs[key]) for ours, theirs in zip(recording.steps, steps, strict=True))
                   for key in ("loss", "grad_norm", "learning_rate")}
    return {**differences, **weight_differences(recording, twin.export())}, steps


def pairings():
    """Engine, its rival's name, rival, number format, tolerances, exact clipping."""
    plain = torch_twin.PlainTwin
    yield "double", "plain", plain, torch.float64, EXACT, True
    yield "fp32", "plain", plain, torch.float64, SINGLE, False
    yield "fp32", "plain", plain, torch.float32, SINGLE, False
    if importlib.util.find_spec("transformers"):
        from hugging_face_twin import HuggingFaceTwin
        yield "fp32", "transformers", HuggingFaceTwin, torch.float64, SINGLE, False
    yield "bf16", "plain", plain, torch.float64, BF16, False


def judge(spec, program):
    """Prints a table of one case's differences; returns whether all are within tolerance."""
    recordings = {engine: Recording(program, spec, engine) for engine in ("double", "fp32", "bf16")}
    good = True
    print(f"\n{spec['model']['name']:8}{'PyTorch':24}" + "".join(f"{key:>15}" for key in EXACT))
    for engine, name, twin, dtype, tolerance, exact_clip in pairings():
        found, _ = compare(recordings[engine], twin, dtype, exact_clip)
        broken = [f"{key} above {limit:.0e}" for key, limit in tolerance.items() if not found[key] <= limit]
        good &= not broken
        figures = "".join(f"{found[key]:15.1e}" for key in tolerance)
        print(f"{engine:8}{name + ' ' + str(dtype)[6:]:24}{figures}  {', '.join(broken) or 'ok'}", flush=True)
    return good


def show_steps(spec, program):
    recording = Recording(program, spec, spec["precision"])
    found, steps = compare(recording, torch_twin.PlainTwin, torch.float32)
    print(f"{'step':>4}{'loss':>12}{'torch':>12}{'grad norm':>12}{'torch':>12}{'rate':>12}")
    for number, (ours, theirs) in enumerate(zip(recording.steps, steps), 1):
        print(f"{number:4}{ours['loss']:12.6f}{theirs['loss']:12.6f}{ours['grad_norm']:12.5f}{theirs['grad_norm']:12.5f}"
              f"{ours['learning_rate']:12.4e}")
    print("largest differences: " + ", ".join(f"{key} {value:.1e}" for key, value in found.items()))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--spec", type=pathlib.Path)
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}")
    if options.spec:
        return show_steps(json.loads(options.spec.read_text()), options.program)
    return all([judge(spec, options.program) for spec in CASES])


if __name__ == "__main__":
    use_chosen_python()
    if not find_torch():
        sys.exit(SKIPPED)
    import numpy
    import torch
    import torch_twin
    sys.exit(0 if main() else 1)
