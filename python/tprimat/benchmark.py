"""What the callbacks share: their arguments, the step records, and the result file beside them."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

from tprimat.machine import Facts, known
from tprimat.model_facts import describe_model
from tprimat.results import ResultFile, check_framework, check_platform
from tprimat.steps import StepRecorder, is_first_rank

PRECISIONS = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


def name_precision(dtype: Any, device: Any, torch: Any) -> str | None:
    """tf32 where PyTorch may round the fp32 products of a GPU."""
    name = PRECISIONS.get(str(dtype))
    rounds = name == "fp32" and getattr(device, "type", None) == "cuda" and torch.backends.cuda.matmul.allow_tf32
    return "tf32" if rounds else name


def describe_optimizer(optimizer: Any) -> Facts:
    """Of the innermost one (accelerate and DeepSpeed wrap theirs): its class, peak rate and decay."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    groups = getattr(optimizer, "param_groups", None)
    if not groups:
        return {}
    decays = [group["weight_decay"] for group in groups if "weight_decay" in group]
    return known({"optimizer": type(optimizer).__name__.lower(),
                  "learning_rate": float(groups[0].get("initial_lr", groups[0].get("lr", 0.0))) or None,
                  "weight_decay": float(max(decays)) if decays else None})


class Benchmark:
    """The arguments of both callbacks. Only rank 0 writes; under `tprimat run` the suite writes the result."""

    def __init__(self, output_dir: str | os.PathLike[str] | None = None, platform: str = "auto",
                 model_name: str | None = None, parallel_strategy: str | None = None, framework: str | None = None,
                 dataset: str | None = None, warmup_steps: int | None = None, *, tokens_per_step: int | None = None,
                 sequence_length: int | None = None, path: str | os.PathLike[str] | None = None) -> None:
        """`output_dir`: the folder of the result and of steps.jsonl. `path` names another file for the steps, and its
        folder is the result's where there is no output_dir. Without both: ./output and ./steps.jsonl.
        `platform`: auto, or nvd, amd or cpu, which must then be what trains.
        `model_name`, `parallel_strategy`, `dataset`: names for people and file names; the model's is else its own type.
        `framework`: an id of docs/frameworks.md, where it is not the callback's own.
        `warmup_steps`: leave out this many steps; without it the end of the warm-up is detected.
        `tokens_per_step` counts all ranks; without it, batch x `sequence_length`, where that is known.
        """
        super().__init__()
        self.folder = pathlib.Path(output_dir) if output_dir is not None else None
        self.platform, self.framework = check_platform(platform), check_framework(framework)
        self.model_name, self.strategy, self.dataset, self.warmup = model_name, parallel_strategy, dataset, warmup_steps
        self.tokens, self.length, self.path = tokens_per_step, sequence_length, path
        self.recorder: StepRecorder | None = None
        self.file: ResultFile | None = None

    def start(self, device: Any, ranks: int, facts: Facts, framework: str) -> None:
        """Before the first step, on every rank."""
        self.interrupt("the next training began")  # nothing, unless one broke off
        settings = facts["training_config"]
        batch, length, tokens = settings.get("global_batch_size"), settings.get("sequence_length"), self.tokens
        if tokens is None and batch and length:
            tokens = batch * length
        path = self.path or (self.folder / "steps.jsonl" if self.folder else None)
        if is_first_rank() and path is not None:
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        if is_first_rank() and not os.environ.get("TPRIMAT_STEPS"):
            folder = self.folder or (pathlib.Path(self.path).parent if self.path else pathlib.Path("output"))
            self.file = ResultFile(folder, device, ranks, facts, framework, self.platform)
        self.recorder = StepRecorder(device, tokens, path)

    def describe(self, model: Any, training: Facts, layout: Facts, whole: bool, **facts: Any) -> Facts:
        """The facts of a result. `whole`: this rank holds all weights, so that it can count them."""
        strategy = known({"parallel_strategy": self.strategy})
        layout = known({"strategy_name": self.strategy, **layout})
        facts |= {"model_info": describe_model(model, self.model_name, whole), "dataset": self.dataset,
                  "training_config": known({**training, **strategy}), "parallelism_config": layout}
        if self.warmup is not None:
            facts["warmup"] = {"steps_excluded": max(1, self.warmup), "method": "fixed", "steady": True,
                               "reason": f"warmup_steps of the callback is {self.warmup}"}
        return facts

    def started(self) -> StepRecorder:
        """The recorder of the training that goes on."""
        assert self.recorder is not None, "the training has not begun"
        return self.recorder

    def write_step(self, record: dict[str, Any], **figures: Any) -> None:
        """Appends the record of a step that is over, and adds it to the result."""
        recorder = self.started()
        record = recorder.write(record, **figures)
        if self.file is None or recorder.file is None:
            return
        begin = time.perf_counter()
        self.file.add(record, os.path.abspath(recorder.file.name))
        recorder.last += time.perf_counter() - begin  # is no part of the next step

    def finish(self, stopped: bool = False) -> None:
        if self.file is not None:
            self.file.finish(stopped)
        self.file = None

    def interrupt(self, reason: str) -> None:
        if self.file is not None:
            self.file.interrupt(reason)
        self.file = None
