"""The experiment: one training, complete, as the suite writes it (train_spec.json)."""

from __future__ import annotations

import json
import math
import os
import pathlib
from types import SimpleNamespace
from typing import Any


def load_experiment(path: str | pathlib.Path) -> Any:
    """The file's keys as attributes: experiment.optimizer.learning_rate."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    experiment = json.loads(text, object_hook=lambda keys: SimpleNamespace(**keys))
    experiment.accumulation = experiment.global_batch_size // (
        experiment.micro_batch_size * experiment.parallel.data_parallel_size)
    return experiment


def learning_rate_at(optimizer: Any, step: int, steps: int) -> float:
    """The rate of step 1..steps, as the native trainer and Megatron-LM's log have it (see docs/training.md)."""
    peak, low, warmup = optimizer.learning_rate, optimizer.min_learning_rate, optimizer.warmup_steps
    if warmup > 0 and step <= warmup:
        return peak * step / warmup
    if optimizer.schedule == "constant":
        return peak
    done = min(1.0, (step - warmup) / (steps - warmup)) if steps > warmup else 1.0
    left = 1 - done if optimizer.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return low + (peak - low) * left


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))
