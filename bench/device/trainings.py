"""What is trained: models, shapes of a step, number formats; and the environment of PyTorch."""

import dataclasses
import json
import os
import pathlib
import re

import programs
import shapes

OPTIMIZER = {"learning_rate": 3e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
             "clip_grad_norm": 1.0, "schedule": "constant"}
WARMUP = 3  # ours: allocation, choice of kernels, recording; PyTorch's: likewise


@dataclasses.dataclass
class Cell:
    """What is compared: a model, tokens x sequences of a step, and the number formats of both sides."""
    model: str
    length: int
    sequences: int
    formats: str  # "bf16": weights and moments, no masters; "masters": masters and moments in float32

    def name(self):
        return f"{self.model}:{self.length}x{self.sequences}:{self.formats}"

    def file_name(self):
        return self.name().replace(":", "_")

    def tokens(self):
        return self.length * self.sequences


FORMATS = {"masters": {}, "bf16": {"optimizer": {"moments": "bf16", "master_weights": False}}}
# 18 bytes a parameter with masters are too many for 7 and 8 billion on 141 GB.
CELLS = [Cell("llama3.1_8b", 8192, 1, "bf16"), Cell("llama3.1_8b", 2048, 4, "bf16")]
KNOWN_FORMATS = {"llama3.1_8b": "bf16", "qwen2.5_7b": "bf16"}


def name_of(saved):
    """Of a cell in the results."""
    return Cell(saved["model"], saved["sequence_length"], saved["sequences"], saved["formats"]).name()


def parse_cell(text):
    """MODEL:LENGTHxSEQUENCES[:FORMATS]"""
    model, batch, *formats = text.split(":")
    length, sequences = batch.split("x")
    return Cell(model, int(length), int(sequences), formats[0] if formats else KNOWN_FORMATS.get(model, "masters"))


def merge(base, extra):
    return {**base, **{key: merge(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict)
                       else value for key, value in extra.items()}}


def make_spec(cell, options):
    model = options.shapes.get(cell.model) or shapes.read_model(cell.model)
    spec = {"model": model, "optimizer": OPTIMIZER, "sequence_length": cell.length,
            "micro_batch_size": cell.sequences, "global_batch_size": cell.sequences, "seed": 42, "precision": "bf16",
            "deterministic": False,  # as PyTorch is: sums may change their order from one run to the next
            "steps": WARMUP + options.steps}
    return merge(spec, FORMATS[cell.formats])


def out_of_memory(text):
    return re.search(r"of memory and .* left|does not fit into memory|out of memory", text or "") is not None


def torch_environment():
    """Compiled kernels stay, so that only the first process waits for them."""
    cache = programs.HERE.parents[1] / "build" / "inductor"
    return {"TORCHINDUCTOR_CACHE_DIR": os.environ.get("TORCHINDUCTOR_CACHE_DIR", str(cache)),
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "TOKENIZERS_PARALLELISM": "false"}
