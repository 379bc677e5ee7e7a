"""A profile of some steps. TPRIMAT_PROFILE says who records them and which, from the first to the last:

  torch:11:15:PATH    the PyTorch profiler, in a Chrome trace (PATH ends in .json.gz); {rank} in PATH stands for the
                      rank's number, and every rank writes a trace, else rank 0 alone
  cuda:11:15          `nsys profile --capture-range=cudaProfilerApi` around this process
  roctx:11:15         `rocprofv3 --selected-regions` around this process

Steps after the training's last one are trained besides, one more before the window: they are no part of the training,
and their records go to profiled_steps.jsonl beside the others' file. Without the variable nothing here does anything.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import sys
from typing import Any

import torch

from tprimat_adapter.experiment import rank, world_size

ROCTX_LIBRARIES = ("librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0")


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class TorchWindow:
    """torch.profiler, whose own steps carry our numbers; it warms up in the step before the window, and is not there
    before that."""

    def __init__(self, first: int, last: int, path: str) -> None:
        self.first, self.last, self.path = first, last, path.replace("{rank}", str(rank()))
        self.profile: Any = None

    def open(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        schedule = torch.profiler.schedule(wait=self.first - 1, warmup=1, active=self.last - self.first + 1, repeat=1)
        self.profile = torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=self.save,
                                              record_shapes=True)
        self.profile.start()

    def save(self, profile: torch.profiler.profile) -> None:
        """The trace appears whole."""
        if not torch.distributed.is_initialized():
            profile.add_metadata_json("distributedInfo", json.dumps({"rank": rank(), "world_size": world_size()}))
        part = f"{self.path}.part.json.gz"  # its ending tells the profiler to compress
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            profile.export_chrome_trace(part)
            os.replace(part, self.path)
        except OSError as error:  # the training itself is sound
            print(f"warning: the trace is not written: {error}", file=sys.stderr, flush=True)

    def begin(self, step: int) -> None:
        if step != max(1, self.first - 1):
            return
        self.open()
        for _ in range(step):
            self.profile.step()  # its steps count from 0

    def end(self, step: int) -> None:
        if self.profile is None:
            return
        if step <= self.last:
            self.profile.step()
        if step == self.last:
            self.profile.stop()
            self.profile = None


class CudaWindow:
    """cudaProfilerStart and cudaProfilerStop, for which nsys waits; a range with the number of each step."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def begin(self, step: int) -> None:
        if step == self.first:
            synchronize()
            torch.cuda.profiler.start()
        if self.first <= step <= self.last:
            torch.cuda.nvtx.range_push(f"step {step}")

    def end(self, step: int) -> None:
        if self.first <= step <= self.last:
            synchronize()
            torch.cuda.nvtx.range_pop()
        if step == self.last:
            torch.cuda.profiler.stop()


def load_roctx() -> ctypes.CDLL:
    for name in ROCTX_LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function in (library.roctxProfilerResume, library.roctxProfilerPause):
            function.argtypes = [ctypes.c_uint64]
        library.roctxRangePushA.argtypes = [ctypes.c_char_p]
        return library
    raise SystemExit(f"error: {ROCTX_LIBRARIES[0]}, by which rocprofv3 is told what to record, is not found\n"
                     "  install ROCm's rocprofiler-sdk-roctx, or add its folder to LD_LIBRARY_PATH")


class RoctxWindow:
    """roctxProfilerResume and roctxProfilerPause, for which rocprofv3 waits; 0 stands for all threads."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last, self.library = first, last, load_roctx()

    def begin(self, step: int) -> None:
        if step == self.first:
            synchronize()
            self.library.roctxProfilerResume(0)
        if self.first <= step <= self.last:
            self.library.roctxRangePushA(f"step {step}".encode())

    def end(self, step: int) -> None:
        if self.first <= step <= self.last:
            synchronize()
            self.library.roctxRangePop()
        if step == self.last:
            self.library.roctxProfilerPause(0)


class NoWindow:
    def begin(self, step: int) -> None:
        pass

    def end(self, step: int) -> None:
        pass


def asked_window() -> list[str]:
    """Who records, the first step, the last step, the path; empty where nobody does."""
    text = os.environ.get("TPRIMAT_PROFILE", "")
    return text.split(":", 3) if text else []


def open_window() -> Any:
    """Two lines in a training loop: window.begin(step) before each step and window.end(step) after it."""
    kind, first, last, *path = asked_window() or ("", "0", "0")
    if not kind or (rank() != 0 and "{rank}" not in "".join(path)):
        return NoWindow()
    windows = {"torch": TorchWindow, "cuda": CudaWindow, "roctx": RoctxWindow}
    if kind not in windows:
        raise SystemExit(f"error: TPRIMAT_PROFILE={os.environ['TPRIMAT_PROFILE']}: this framework cannot be profiled "
                         f"by '{kind}'")
    return windows[kind](int(first), int(last), *path)


def last_step(experiment: Any) -> int:
    """The last step to train: the training's, or the window's where that lies after it."""
    window = asked_window()
    return max(experiment.steps, int(window[2])) if window else experiment.steps


def note_further_step(recorder: Any, step: int) -> None:
    """The record of a step after the training's last one, on every rank."""
    record = recorder.stop_clock(step)
    if rank() != 0:
        return
    print(f"profiled step {step}, after the training: {record['time_seconds']:.4f} s", flush=True)
    if "TPRIMAT_STEPS" in os.environ:
        path = pathlib.Path(os.environ["TPRIMAT_STEPS"]).with_name("profiled_steps.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def next_batch() -> contextlib.AbstractContextManager[Any]:
    """Around the reading of a batch, which a profile shows by this name."""
    return torch.profiler.record_function("tprimat: next batch")
