"""For the Trainer of Hugging Face Transformers: Trainer(..., callbacks=[BenchmarkCallback()])."""

from __future__ import annotations

import fractions
import functools
import math
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    class TrainerCallback:
        """That of Transformers, which may not be installed where types are checked."""
else:
    from transformers import TrainerCallback

from tprimat.benchmark import Benchmark, describe_optimizer, name_precision
from tprimat.machine import Facts, known
from tprimat.routers import LoadCounter, measure_load


class BenchmarkCallback(Benchmark, TrainerCallback):
    """Writes one record for each step (StepRecorder says how and where), and a result file when the training ends. A
    step's time covers its data, its update and what the Trainer does around them, but no evaluation and no checkpoint.
    Its loss is known where every step is logged (logging_steps=1), because the Trainer logs a mean over the steps since
    it last did. A loss that is not finite is logged as it is: logging_nan_inf_filter, which replaces it by the mean of
    earlier ones or by 0, is off during a step, except with fp16. Of a mixture of experts whose routers are those of
    Transformers 5, a step tells the experts' load. Without `tokens_per_step` and `sequence_length` the tokens are the
    Trainer's own count, where include_num_input_tokens_seen is set."""

    pending: dict[str, Any] | None = None  # a step that is over, but whose figures are not known yet
    filter: tuple[Any, bool] | None = None  # during a step: the arguments, and their own logging_nan_inf_filter
    counter: LoadCounter | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None,
                       lr_scheduler: Any = None, **kwargs: Any) -> None:
        layout = describe_layout(args, model)
        training = {**describe_training(args, state, layout), **describe_optimizer(optimizer),
                    **describe_schedule(args, lr_scheduler), "recompute": describe_recompute(model),
                    "sequence_length": self.length}
        facts = self.describe(model, training, layout, not getattr(args, "fsdp", None),
                              framework_version=getattr(sys.modules["transformers"], "__version__", None),
                              precision=describe_precision(args, model))
        self.figures: dict[str, Any] = {}
        self.pending, self.tokens_seen, self.last_logged = None, state.num_input_tokens_seen, state.global_step
        self.start(args.device, count_devices(args), facts, self.framework or "tran")
        self.watch_routers(None if getattr(args, "torch_compile", False) else model)  # a compiled model calls no hooks

    def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any) -> None:
        self.write()
        self.batches = 0  # of the step's accumulation that are over
        self.figures = {"learning_rate": optimizer.param_groups[0]["lr"]} if optimizer is not None else {}
        self.restore_filter()  # of a training that broke off
        self.filter = (args, getattr(args, "logging_nan_inf_filter", False))
        args.logging_nan_inf_filter = self.filter[1] and skips_updates(args)

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.batches += 1

    def on_step_end(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **kwargs: Any) -> None:
        self.restore_filter()  # an evaluation heeds it too
        self.pending = self.started().stop_clock(state.global_step)
        self.read_load()
        seen, self.tokens_seen = self.tokens_seen, state.num_input_tokens_seen
        whole = self.started().tokens
        if whole is None and self.tokens_seen > seen:
            self.figures["tokens"] = int(self.tokens_seen - seen)
        elif whole is not None:
            self.figures["tokens"] = round(whole * measure_share(args, self.batches + 1, train_dataloader))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if self.pending is None or not logs:
            return
        if "loss" not in logs:
            if not math.isfinite(logs.get("train_loss", 0.0)):  # of the whole training, at its end
                self.figures["loss"] = math.nan
            return
        self.figures["grad_norm"] = logs.get("grad_norm")
        if state.global_step == self.last_logged + 1:
            self.figures["loss"] = read_loss(args, logs)
        elif not math.isfinite(logs["loss"]):
            self.figures["loss"] = math.nan  # of several steps, and the weights that follow from them are none either
        self.last_logged = state.global_step
        self.write()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.started().begin()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.started().begin()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.write()
        self.watch_routers(None)
        self.finish(stopped=state.global_step < state.max_steps)

    def watch_routers(self, model: Any) -> None:
        if self.counter is not None:
            self.counter.remove()  # of an earlier training
        self.counter = LoadCounter(model)

    def read_load(self) -> None:
        """Of all ranks. The experts of Transformers take every token."""
        start = time.perf_counter()
        load = measure_load(self.counter.take()) if self.counter is not None else None
        if load is not None:
            self.figures.update(expert_load=float(load), dropped_share=0.0)
        self.started().last += time.perf_counter() - start  # is no part of the next step

    def restore_filter(self) -> None:
        if self.filter is not None:
            self.filter[0].logging_nan_inf_filter = self.filter[1]
        self.filter = None

    def write(self) -> None:
        if self.pending is not None:
            self.write_step(self.pending, **self.figures)
        self.pending = None


def skips_updates(args: Any) -> bool:
    """Whether a loss that is not finite may be followed by finite ones. Without the filter the Trainer's sum would stay
    NaN then."""
    return bool(getattr(args, "fp16", False))


def read_loss(args: Any, logs: dict[str, Any]) -> float | None:
    """NaN where the filter put 0 in its place; None where it may have changed a part of the loss."""
    loss: float = logs["loss"]
    norm = logs.get("grad_norm")
    if not (skips_updates(args) and getattr(args, "logging_nan_inf_filter", False)):
        return loss
    if norm is None or math.isfinite(norm):
        return loss
    if loss == 0:
        return math.nan
    return loss if args.gradient_accumulation_steps * count_devices(args) == 1 else None


def measure_share(args: Any, batches: int, loader: Any) -> fractions.Fraction:
    """How much of a whole step this one is: at the end of an epoch batches or rows may be missing. Several processes
    fill up their last batch."""
    rows = getattr(loader, "remainder", -1) if getattr(loader, "end_of_dataloader", False) else -1
    size = getattr(loader, "total_batch_size", None)
    last = fractions.Fraction(rows, size) if args.world_size == 1 and size and 0 < rows < size else 1
    return (batches - 1 + last) / fractions.Fraction(max(batches, args.gradient_accumulation_steps))


def count_devices(args: Any) -> int:
    """Processes, or the GPUs over which a single one spreads its batch."""
    return int(args.world_size) * max(1, getattr(args, "n_gpu", 1))


def describe_training(args: Any, state: Any, layout: Facts) -> Facts:
    micro = (getattr(state, "train_batch_size", None) or args.train_batch_size) // max(1, getattr(args, "n_gpu", 1))
    data = layout.get("data_parallel_size")
    return {"max_steps": state.max_steps, "micro_batch_size": micro, "learning_rate": args.learning_rate,
            "global_batch_size": micro * args.gradient_accumulation_steps * data if data else None,
            "weight_decay": args.weight_decay, "clip_grad_norm": args.max_grad_norm, "seed": args.seed,
            "loaded_step": state.global_step or None}


def describe_layout(args: Any, model: Any) -> Facts:
    """The ranks that do not share a sequence or the weights of a layer share the batch."""
    chosen = getattr(args, "parallelism_config", None)
    tensor = getattr(chosen, "tp_size", None) or getattr(model, "tp_size", None) or 1
    context = (getattr(chosen, "cp_size", None) or 1) * (getattr(chosen, "sp_size", None) or 1)
    return {"tensor_model_parallel_size": tensor, "pipeline_model_parallel_size": 1, "context_parallel_size": context,
            "data_parallel_size": count_devices(args) // (tensor * context),
            "gradient_accumulation_steps": args.gradient_accumulation_steps, "zero_stage": find_zero_stage(args)}


def find_zero_stage(args: Any) -> int | None:
    """DeepSpeed's own, FSDP's counterpart; 0 where every rank holds everything."""
    plugin, sharding = getattr(args, "deepspeed_plugin", None), str(getattr(args, "fsdp", None) or "").lower()
    if plugin is not None:
        return getattr(plugin, "zero_stage", None)
    if "full_shard" in sharding or "shard_grad_op" in sharding:
        return 3 if "full_shard" in sharding else 2
    return None if sharding else 0


def describe_schedule(args: Any, scheduler: Any) -> Facts:
    """Of a schedule that Transformers made; of a script's own nothing is known."""
    scheduler = getattr(scheduler, "scheduler", scheduler)  # accelerate wraps it
    rates = getattr(scheduler, "lr_lambdas", [None])[0]
    if not isinstance(rates, functools.partial) or rates.func.__module__ != "transformers.optimization":
        return {}
    kind = args.lr_scheduler_type
    warmup = rates.keywords.get("num_warmup_steps")
    return known({"schedule": str(getattr(kind, "value", kind)), "warmup_steps": warmup})


def describe_precision(args: Any, model: Any) -> str | None:
    if getattr(args, "bf16", False) or getattr(args, "fp16", False):
        return "bf16" if args.bf16 else "fp16"
    return name_precision(getattr(model, "dtype", None), args.device, sys.modules.get("torch"))


def describe_recompute(model: Any) -> str | None:
    if not hasattr(model, "modules"):
        return None
    return "full" if any(getattr(each, "gradient_checkpointing", False) for each in model.modules()) else "none"


BenchmarkCallbackTran = BenchmarkCallback  # the older scripts' name
