"""For Lightning's Trainer, also below NeMo: Trainer(..., callbacks=[BenchmarkCallback()])."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from tprimat.steps import StepRecorder


def find_callback_class() -> type:
    """Lightning's Callback, of the package that the script uses: `lightning`, or `pytorch_lightning`."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    for name in sorted(names, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ModuleNotFoundError:
            continue
    raise ImportError("neither lightning nor pytorch_lightning is installed")


def loss_of(outputs: Any) -> Any:
    """What training_step returned, divided by the batches of an accumulation (Lightning does it); None without one."""
    return outputs.get("loss") if isinstance(outputs, dict) else outputs


class BenchmarkCallback(find_callback_class()):
    """Writes one record for each optimizer step (StepRecorder says how and where). A step's time covers its data, its
    update and what the Trainer does around them, but no validation and no checkpoint. The loss is NeMo's
    `reduced_train_loss` where it is logged, else what training_step returned, as the mean over all ranks; the gradient
    norm is there where the script logs `grad_norm`."""

    def __init__(self, tokens_per_step: int | None = None, path: str | os.PathLike[str] | None = None) -> None:
        """`tokens_per_step` counts all ranks."""
        super().__init__()
        self.tokens, self.path = tokens_per_step, path
        self.recorder: StepRecorder | None = None
        self.paused = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.recorder = StepRecorder(trainer.strategy.root_device, self.tokens, self.path)
        self.steps_done = trainer.global_step
        self.losses: list[Any] = []
        self.rate: float | None = None

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.paused:
            self.recorder.begin()
        self.paused = False

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.rate = optimizer.param_groups[0]["lr"]

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.losses.append(loss_of(outputs))
        if trainer.global_step == self.steps_done:
            return  # in the middle of an accumulation
        self.steps_done = trainer.global_step
        record = self.recorder.stop_clock(self.steps_done)
        logged = trainer.callback_metrics
        self.recorder.write(record, loss=self.mean_loss(trainer, logged), learning_rate=self.rate,
                            grad_norm=logged.get("grad_norm"))
        self.losses = []

    def mean_loss(self, trainer: Any, logged: Any) -> Any:
        if "reduced_train_loss" in logged:
            return logged["reduced_train_loss"]
        losses = [loss.detach() for loss in self.losses if loss is not None]
        return trainer.strategy.reduce(sum(losses), reduce_op="mean") if losses else None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.paused = True

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.paused = True
