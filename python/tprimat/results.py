"""A training's result file, which a callback writes by itself beside the step records (docs/python.md).

The file holds facts and raw series. The figures that follow from them (warm-up, statistics, tokens/s, MFU) are the
program's to derive: where it is found it fills them in at the end, elsewhere whenever it reads the file.
"""

from __future__ import annotations

import atexit
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from tprimat.config import FRAMEWORKS, PLATFORMS, name_framework, name_platform
from tprimat.errors import MissingComponent
from tprimat.machine import Facts, describe_device, describe_environment, find_platform, known, read_peak_memory_gb
from tprimat.program import find_program

SECONDS_BETWEEN_SAVES = 30.0
SERIES = {"loss_values": "loss", "learning_rates": "learning_rate", "grad_norms": "grad_norm",
          "memory_values": "memory_allocated_gb"}
EXPERT_SERIES = {"load_values": "expert_load", "dropped_values": "dropped_share", "aux_loss_values": "aux_loss",
                 "z_loss_values": "z_loss"}
GPU_MEMORY = "torch.cuda.max_memory_allocated and max_memory_reserved, the highest of all ranks"
CPU_MEMORY = "the peak resident memory of the process (VmHWM)"
NOT_DERIVED = "not determined yet: tprimat determines it when it reads this file"

OPEN: dict[pathlib.Path, ResultFile] = {}  # of trainings that have not ended


def note(text: str) -> None:
    print(f"tprimat: {text}", file=sys.stderr, flush=True)


def write_whole(path: pathlib.Path, text: str) -> None:
    """The file is there whole or not at all, whenever the process is killed."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp's files are their owner's alone
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def check_platform(name: str) -> str:
    chosen = name_platform(name)
    if chosen not in (*PLATFORMS, "auto"):
        raise ValueError(f"platform is '{name}'; it must be auto, {', '.join(PLATFORMS)}")
    return chosen


def check_framework(name: str | None) -> str | None:
    chosen = name_framework(name) if name else None
    if chosen not in (*FRAMEWORKS, None):
        raise ValueError(f"framework is '{name}'; it must be one of {', '.join(FRAMEWORKS)}")
    return chosen


def file_word(text: str) -> str:
    """A model's name must not choose the folder."""
    return re.sub(r"[^A-Za-z0-9.\-_]", "_", text)


def format_utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_json(value: Any) -> Any:
    """Without NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class ResultFile:
    """The result of one training, on the rank that writes: add() each step's record, then finish() or interrupt().

    `facts` are keys of a result (schema/result.schema.json): model_info, training_config, precision ... `framework` is
    an id, or another name that the file shows as its format. A process that ends before finish() leaves `interrupted`.
    """

    def __init__(self, folder: pathlib.Path, device: Any, ranks: int, facts: Facts, framework: str,
                 platform: str = "auto") -> None:
        found = find_platform(device)
        if platform != "auto" and platform != found:
            raise ValueError(f"platform is '{platform}', but the training runs on {found or 'another kind of device'}: "
                             "leave out platform")
        self.facts = {"framework": framework if framework in FRAMEWORKS else None, "platform": found, **facts}
        self.facts["gpu_info"] = describe_device(device, ranks)
        self.facts["environment"] = describe_environment(device)
        self.format, self.ranks = framework, ranks
        self.records: list[dict[str, Any]] = []
        self.steps_file: str | None = None
        self.start, self.last_save, self.pause = time.time(), -math.inf, SECONDS_BETWEEN_SAVES
        name = f"train_{found or 'unknown'}_{framework}_{facts['model_info']['name']}"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder.absolute() / f"{file_word(name)}.json"  # the script may change its folder
        self.saved = False
        self.max_steps = facts["training_config"].get("max_steps")
        self.process = os.getpid()
        if (older := OPEN.pop(self.path, None)) is not None:
            atexit.unregister(older.leave)  # a training that broke off in this process: the file is the next one's now
        OPEN[self.path] = self
        atexit.register(self.leave)

    def add(self, record: dict[str, Any], steps_file: str | None) -> None:
        """Saves what there is once in a while, so that a killed training leaves its steps too."""
        self.records.append(record)
        self.steps_file = steps_file
        if time.monotonic() - self.last_save < self.pause:
            return
        before = time.monotonic()
        self.save("interrupted", f"the training had not ended when this was written, after {self.place()}")
        self.last_save = time.monotonic()
        self.pause = max(SECONDS_BETWEEN_SAVES, 100 * (self.last_save - before))  # at most 1 % of the time

    def place(self) -> str:
        step = self.records[-1]["step"] if self.records else 0
        return f"step {step}" + (f" of {self.max_steps}" if self.max_steps else "")

    def finish(self, stopped: bool = False) -> None:
        """The training has ended by itself; `stopped`: before its planned end."""
        early = stopped or (self.records and (self.max_steps or 0) > self.records[-1]["step"])
        if early:
            self.conclude("interrupted", f"the training was stopped after {self.place()}")
        elif (step := self.find_diverged()) is not None:
            self.conclude("invalid", f"the loss is not a number from step {step} on")
        else:
            self.conclude("complete")

    def find_diverged(self) -> int | None:
        """The step from which no loss is a number, as the program would find it; None where the last one is."""
        first = None
        for record in reversed([each for each in self.records if "loss" in each]):
            if record["loss"] is not None:
                break
            first = record["step"]
        return first

    def interrupt(self, reason: str) -> None:
        self.conclude("interrupted", f"the training ended after {self.place()}: {reason}")

    def leave(self) -> None:
        """The process ends, and nobody said that the training did. In a session the last error may be any other."""
        if os.getpid() != self.process:
            return  # a child that was forked
        error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
        self.interrupt(describe_error(error) if error is not None else "the process ended")

    def save(self, status: str, reason: str | None = None) -> bool:
        """A disk that is full must not end the training. A file that another training took over is that one's."""
        if OPEN.get(self.path) is not self:
            return False
        try:
            if not self.saved and self.path.exists():
                self.path.replace(f"{self.path}.before")  # as an older steps.jsonl
            self.saved = True
            write_whole(self.path, json.dumps(as_json(self.describe(status, reason)), indent=1) + "\n")
        except OSError as error:
            note(f"{self.path} was not written: {error}")
            return False
        return True

    def conclude(self, status: str, reason: str | None = None) -> None:
        """The last word. Without any step nothing is claimed."""
        atexit.unregister(self.leave)
        written = bool(self.records) and self.save(status, reason)
        if OPEN.get(self.path) is self:
            del OPEN[self.path]
        if not written:
            return
        if complete_figures(self.path):  # the program may find more than the callback saw: a loss that became NaN
            written = json.loads(self.path.read_text(encoding="utf-8"))
            status, reason = written["status"], written.get("status_reason")
        note(f"wrote {self.path}: {status}" + (f", {reason}" if reason else ""))
        tokens = {record["tokens"] for record in self.records if "tokens" in record}
        if len(tokens) > 1:
            note(f"steps had {min(tokens)} to {max(tokens)} tokens, so the result has no tokens/s: leave out the last "
                 "batches of an epoch (dataloader_drop_last), or let gradient accumulation divide them")

    def describe(self, status: str, reason: str | None) -> Facts:
        stated = {key: value for key, value in self.facts.items() if value is not None or key == "platform"}
        times = self.series("time_seconds")
        return {"schema_version": 1, "status": status, **known({"status_reason": reason}), **stated,
                "timestamp": format_utc(self.start), "training_config": self.describe_training(),
                "performance_metrics": {"total_steps": len(times), "total_time_seconds": sum(times)},
                "memory_metrics": self.describe_memory(),
                "warmup": stated.get("warmup") or
                {"steps_excluded": 0, "method": "", "reason": NOT_DERIVED, "steady": True},
                "derived": {"flops_per_token": {}, "headline_formula": "", "mfu_by_formula": {}}, "telemetry": [],
                "config_audit": [], "source": self.describe_source(), "steps": self.number_steps(),
                "reported": {name: self.series(name) for name in ("unix_time", "loss_scale") if self.series(name)},
                "warnings": [], "step_times": times, **self.describe_experts(),
                **{name: self.series(figure) for name, figure in SERIES.items()}}

    def describe_experts(self) -> Facts:
        """How a mixture of experts routed its tokens, where a step told it."""
        told = {name: self.series(figure) for name, figure in EXPERT_SERIES.items() if self.series(figure)}
        return {"experts": told} if told else {}

    def series(self, figure: str) -> list[Any]:
        """One value for each step, null where it has none; nothing where no step has one."""
        values = [record.get(figure) for record in self.records]
        return values if any(figure in record for record in self.records) else []

    def describe_training(self) -> Facts:
        """The tokens of a step only where every step had as many, and batch x length does not say so already."""
        settings = known({"num_gpus": self.ranks, **self.facts["training_config"]})
        tokens = {record.get("tokens") for record in self.records}
        follows = settings.get("global_batch_size", 0) * settings.get("sequence_length", 0)
        if len(tokens - {None}) > 1:
            settings.pop("global_batch_size", None)  # no batch is that of every step, so none gives a rate
        if len(tokens) == 1 and tokens.isdisjoint({None, follows}):
            settings["tokens_per_step"] = tokens.pop()
        return settings

    def describe_memory(self) -> Facts:
        """On the processor only where this process is the whole training."""
        held = {f"peak_{kind}": max([each[kind] for each in self.records if each.get(kind)], default=None)
                for kind in ("memory_allocated_gb", "memory_reserved_gb")}
        if any(held.values()):
            return {**known(held), "measurement_method": GPU_MEMORY}
        peak = read_peak_memory_gb() if self.facts["platform"] == "cpu" and self.ranks == 1 else None
        return {"peak_device_used_gb": peak, "measurement_method": CPU_MEMORY} if peak else {}

    def describe_source(self) -> Facts:
        """`format` shows a framework that the program has no id for."""
        return {**known({"log": self.steps_file, "steps_file": self.steps_file}), "step_time": "printed",
                "format": "tprimat-steps" if self.format in FRAMEWORKS else self.format}

    def number_steps(self) -> Facts:
        """The numbers only where they are not 1, 2, 3 ...: a training that continues a checkpoint."""
        numbers = [record["step"] for record in self.records]
        plain = numbers == list(range(1, len(numbers) + 1))
        return {"counts_from": 1, "labelled": [], **({} if plain else {"numbers": numbers})}


def describe_error(error: BaseException) -> str:
    text = str(error).strip()
    return type(error).__name__ + (f": {text.splitlines()[0]}" if text else "")


def complete_figures(path: pathlib.Path) -> bool:
    """Lets the program derive the figures and put them into the file, where it is found."""
    try:
        program = find_program()
        done = subprocess.run([program, "extract", str(path), "--output", str(path), "--quiet"], timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (MissingComponent, OSError, subprocess.SubprocessError):
        return False
    return done.returncode in (0, 1)  # 1: the training did not reach its last step
