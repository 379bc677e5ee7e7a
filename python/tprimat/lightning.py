"""For Lightning's Trainer, also inside NeMo: Trainer(..., callbacks=[BenchmarkCallback()])."""

from __future__ import annotations

import importlib
import math
import os
import sys
from typing import TYPE_CHECKING, Any

from tprimat.benchmark import Benchmark, describe_optimizer, name_precision
from tprimat.machine import Facts, find_version
from tprimat.results import describe_error

REPLICATED = ("SingleDeviceStrategy", "DDPStrategy")  # every rank holds all weights and shares the batch
MICRO_BATCH = ("micro_batch_size", "batch_size")


def find_callback_class() -> type:
    """Lightning's Callback, of the package that the script uses: `lightning`, or `pytorch_lightning`."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    for name in sorted(names, key=lambda name: name not in sys.modules):
        try:
            found: type = importlib.import_module(name).Callback
            return found
        except ModuleNotFoundError:
            continue
    raise ImportError("neither lightning nor pytorch_lightning is installed")


if TYPE_CHECKING:
    class Callback:
        """Lightning's, which may not be installed where types are checked."""
else:
    Callback = find_callback_class()


def loss_of(outputs: Any) -> Any:
    """What training_step returned, divided by the batches of an accumulation (Lightning does it); None without one."""
    return outputs.get("loss") if isinstance(outputs, dict) else outputs


class BenchmarkCallback(Benchmark, Callback):
    """Writes one record for each optimizer step (StepRecorder says how and where), and a result file when the training
    ends. A step's time covers its data, its update and what the Trainer does around them, but no validation and no
    checkpoint. The loss is NeMo's `reduced_train_loss` where it is logged, else what training_step returned, as the
    mean over all ranks; the gradient norm is there where the script logs `grad_norm`."""

    paused = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        ranks = getattr(trainer, "world_size", 1)
        layout = describe_layout(trainer, ranks)
        optimizer = next(iter(getattr(trainer, "optimizers", None) or []), None)
        training = {**describe_training(trainer, layout), **describe_optimizer(optimizer)}
        training["sequence_length"] = self.length or ask_data(trainer, "seq_length", "sequence_length")
        whole = type(trainer.strategy).__name__ in REPLICATED
        facts = self.describe(pl_module, training, layout, whole, framework_version=find_lightning(),
                              precision=describe_precision(trainer))
        self.steps_done = trainer.global_step
        self.losses: list[Any] = []
        self.rate: float | None = None
        self.start(trainer.strategy.root_device, ranks, facts, self.framework or name_strategy(trainer))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.paused:
            self.started().begin()
        self.paused = False

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.rate = optimizer.param_groups[0]["lr"]

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.losses.append(loss_of(outputs))
        if trainer.global_step == self.steps_done:
            return  # in the middle of an accumulation
        self.steps_done = trainer.global_step
        record = self.started().stop_clock(self.steps_done)
        logged = trainer.callback_metrics
        tokens = self.started().tokens
        share = len(self.losses) / count_batches(trainer)  # an epoch may end in the middle of an accumulation
        self.write_step(record, loss=self.mean_loss(trainer, logged, share), learning_rate=self.rate,
                        grad_norm=logged.get("grad_norm"), tokens=tokens and round(tokens * min(1, share)))
        self.losses = []

    def mean_loss(self, trainer: Any, logged: Any, share: float) -> Any:
        if "reduced_train_loss" in logged:
            return logged["reduced_train_loss"]
        losses = [loss.detach() for loss in self.losses if loss is not None]
        return trainer.strategy.reduce(sum(losses) / share, reduce_op="mean") if losses else None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.paused = True

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.paused = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        limit = getattr(trainer, "max_steps", -1) or -1
        self.finish(stopped=limit <= 0 and bool(getattr(trainer, "should_stop", False)))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.interrupt(describe_error(exception))


def count_batches(trainer: Any) -> int:
    """Of Lightning's, in a whole step; 1 where the script accumulates by itself, and Lightning divides no loss."""
    return getattr(trainer, "accumulate_grad_batches", None) or 1


def find_lightning() -> str | None:
    return find_version("lightning") or find_version("pytorch-lightning")


def name_strategy(trainer: Any) -> str:
    """The framework below Lightning, where its strategy has one of ours."""
    name = type(trainer.strategy).__name__
    return "nemo" if "Megatron" in name else "deep" if "DeepSpeed" in name else "lightning"


def ask_data(trainer: Any, *names: str) -> int | None:
    """What the data module or the loader of the training batches states of them."""
    for holder in (getattr(trainer, "datamodule", None), getattr(trainer, "train_dataloader", None)):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def describe_layout(trainer: Any, ranks: int) -> Facts:
    strategy = trainer.strategy
    kinds = ("tensor_model", "pipeline_model", "context")
    if type(strategy).__name__ in REPLICATED:
        sizes: dict[str, int | None] = dict.fromkeys(kinds, 1)
    else:
        sizes = {kind: getattr(strategy, f"{kind}_parallel_size", None) for kind in kinds}
    inner = (sizes["tensor_model"] or 0) * (sizes["pipeline_model"] or 0) * (sizes["context"] or 1)
    data = ranks // inner if inner else None
    accumulation, micro = getattr(trainer, "accumulate_grad_batches", None), ask_data(trainer, *MICRO_BATCH)
    batch = ask_data(trainer, "global_batch_size")
    if batch and micro and data and batch % (micro * data) == 0:
        accumulation = batch // (micro * data)  # NeMo accumulates inside one batch of Lightning's
    return {**{f"{kind}_parallel_size": size for kind, size in sizes.items()}, "data_parallel_size": data,
            "gradient_accumulation_steps": accumulation,
            "zero_stage": 0 if type(strategy).__name__ in REPLICATED else None}


def describe_training(trainer: Any, layout: Facts) -> Facts:
    micro, limit = ask_data(trainer, *MICRO_BATCH), getattr(trainer, "max_steps", None)
    factors = [micro, layout["data_parallel_size"], layout["gradient_accumulation_steps"]]
    seed = os.environ.get("PL_GLOBAL_SEED", "")
    return {"max_steps": limit if limit and limit > 0 else None, "micro_batch_size": micro,
            "global_batch_size": math.prod(factors) if all(factors) else ask_data(trainer, "global_batch_size"),
            "clip_grad_norm": getattr(trainer, "gradient_clip_val", None),
            "seed": int(seed) if seed.isdigit() else None, "loaded_step": trainer.global_step or None}


def describe_precision(trainer: Any) -> str | None:
    word, torch = str(getattr(trainer, "precision", "")), sys.modules.get("torch")
    if word.startswith("transformer-engine"):
        return "fp8"
    if word.startswith("32") and torch is not None:
        return name_precision(torch.float32, trainer.strategy.root_device, torch)
    return {"bf16": "bf16", "16": "fp16"}.get(word.split("-")[0])
