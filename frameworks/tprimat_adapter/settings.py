"""Effective settings: what a framework's own objects hold before the first step, one line `setting KEY VALUE` each.

Nothing here reads the experiment, so a framework that goes its own way shows (docs/frameworks.md lists the keys).
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from tprimat_adapter.experiment import rank, world_size

PRECISIONS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
ROUNDING = 1e-13  # relative: rates that differ by less are one; a decay of a million steps starts with more
SHAPES = {"linear": lambda done: 1 - done, "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2}

Settings = dict[str, Any]


def print_settings(settings: Settings) -> None:
    """By rank 0. Settings that are not known (None) are left out."""
    if rank() != 0:
        return
    for key, value in settings.items():
        if value is not None:
            print(f"setting {key} {str(value).lower() if isinstance(value, bool) else value}", flush=True)


def describe_optimizer(optimizer: Any) -> Settings:
    """Of the innermost optimizer: accelerate and DeepSpeed wrap theirs. The decay is that of the weights that decay."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    group = optimizer.param_groups[0]
    return {"optimizer": type(optimizer).__name__.lower(), "beta1": group["betas"][0], "beta2": group["betas"][1],
            "epsilon": group["eps"], "weight_decay": max(each["weight_decay"] for each in optimizer.param_groups)}


def describe_schedule(schedule: torch.optim.lr_scheduler.LambdaLR, steps: int) -> Settings:
    """From the rates of steps 1..steps, not from what the schedule was told: the first is the optimizer's by now, the
    others those that the schedule will set."""
    peak, factor = schedule.base_lrs[0], schedule.lr_lambdas[0]
    rates = [schedule.optimizer.param_groups[0]["lr"], *(peak * factor(done) for done in range(1, steps))]
    shown = sorted({1, (steps + 1) // 2, steps})
    return {"learning_rate": peak, **recognise_shape(rates, peak),
            **{f"learning_rate_at_{step}": rates[step - 1] for step in shown}}


def recognise_shape(rates: list[float], peak: float) -> Settings:
    """Warm-up, shape and end of a schedule; what the rates leave open (two shapes that agree) is left out."""
    at_peak = [math.isclose(rate, peak, rel_tol=ROUNDING) for rate in rates]
    warmup = at_peak.index(True) + 1 if True in at_peak else 0
    if all(at_peak[warmup:]):  # a warm-up of one step is none
        return {"schedule": "constant" if at_peak[warmup:] else None, "warmup_steps": warmup if warmup > 1 else None}
    fitting = [name for name, left in SHAPES.items() if fits(rates[warmup:], peak, left)]
    schedule = "other" if not fitting else fitting[0] if len(fitting) == 1 else None
    return {"schedule": schedule, "warmup_steps": warmup, "min_learning_rate": rates[-1]}


def fits(rates: list[float], peak: float, left: Callable[[float], float]) -> bool:
    """Whether the rates fall from the peak to the last of them as `left` says: the share left when a share is done."""
    low = rates[-1]
    return all(math.isclose(rate, low + (peak - low) * left((index + 1) / len(rates)), rel_tol=1e-9)
               for index, rate in enumerate(rates))


def describe_batch(micro_batch_size: int, accumulation: int, data_parallel_size: int) -> Settings:
    """Ranks that do not share the batch would share the model: the adapters' frameworks have none of those."""
    kinds = ("tensor_model", "pipeline_model", "context") if world_size() == data_parallel_size else ()
    layout = {f"{kind}_parallel_size": 1 for kind in kinds}
    return {"micro_batch_size": micro_batch_size, "gradient_accumulation_steps": accumulation,
            "global_batch_size": micro_batch_size * accumulation * data_parallel_size,
            "num_gpus": world_size(), "data_parallel_size": data_parallel_size, **layout}


def describe_model(model: torch.nn.Module) -> Settings:
    """`parameters` counts each weight once, also where ranks share it (DeepSpeed's ZeRO-3 keeps the count aside)."""
    implementation = model.config._attn_implementation
    whole_blocks = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    selective = implementation.endswith("_recomputed")
    return {"parameters": sum(getattr(weight, "ds_numel", weight.numel()) for weight in model.parameters()),
            "recompute": "full" if whole_blocks else "selective" if selective else "none",
            "seed": torch.initial_seed()}


def describe_products(dtype: torch.dtype, device: torch.device) -> Settings:
    """The format in which products run, and the threads where the processor runs them."""
    rounded = dtype == torch.float32 and device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32
    return {"precision": "tf32" if rounded else PRECISIONS[dtype],
            "threads": torch.get_num_threads() if device.type == "cpu" else None}
