"""For the Trainer of Hugging Face Transformers: Trainer(..., callbacks=[BenchmarkCallback()])."""

from __future__ import annotations

import os
from typing import Any

import transformers

from tprimat.steps import StepRecorder


class BenchmarkCallback(transformers.TrainerCallback):
    """Writes one record for each step (StepRecorder says how and where). A step's time covers its data, its update and
    what the Trainer does around them, but no evaluation and no checkpoint. Its loss is known where every step is logged
    (logging_steps=1), because the Trainer logs a mean over the steps since it last did."""

    def __init__(self, tokens_per_step: int | None = None, path: str | os.PathLike[str] | None = None) -> None:
        """`tokens_per_step` counts all ranks; without it the tokens are the Trainer's own count, where
        include_num_input_tokens_seen is set."""
        self.tokens, self.path = tokens_per_step, path
        self.recorder: StepRecorder | None = None
        self.pending: dict[str, Any] | None = None  # a step that is over, but whose figures are not known yet
        self.figures: dict[str, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.recorder = StepRecorder(args.device, self.tokens, self.path)
        self.tokens_seen = state.num_input_tokens_seen

    def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any) -> None:
        self.write()
        self.figures = {"learning_rate": optimizer.param_groups[0]["lr"]} if optimizer is not None else {}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.pending = self.recorder.stop_clock(state.global_step)
        seen, self.tokens_seen = self.tokens_seen, state.num_input_tokens_seen
        if self.tokens is None and self.tokens_seen > seen:
            self.figures["tokens"] = int(self.tokens_seen - seen)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if self.pending is None or not logs or "loss" not in logs:
            return
        self.figures["grad_norm"] = logs.get("grad_norm")
        if args.logging_steps == 1:
            self.figures["loss"] = logs["loss"]
        self.write()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.recorder.begin()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.recorder.begin()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.write()

    def write(self) -> None:
        if self.pending is not None:
            self.recorder.write(self.pending, **self.figures)
        self.pending = None
