"""A profile of some steps. TPRIMAT_PROFILE says who records them and which, from the first to the last:

  torch:11:15:PATH    the PyTorch profiler, in a Chrome trace (PATH ends in .json.gz)
  cuda:11:15          `nsys profile --capture-range=cudaProfilerApi` around this process
  roctx:11:15         `rocprofv3 --selected-regions` around this process

Rank 0 alone opens and closes the window. Without the variable nothing here does anything.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

from tprimat_adapter.experiment import rank

ROCTX_LIBRARIES = ("librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0")


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class TorchWindow:
    """torch.profiler, whose own steps carry our numbers; it warms up in the step before the window."""

    def __init__(self, first: int, last: int, path: str) -> None:
        self.path, self.last = path, last
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        schedule = torch.profiler.schedule(wait=first - 1, warmup=1, active=last - first + 1, repeat=1)
        self.profile = torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=self.save)
        self.profile.start()
        self.profile.step()  # from its step 0 to its step 1, which is our first

    def save(self, profile: torch.profiler.profile) -> None:
        """The trace appears whole."""
        part = f"{self.path}.part.json.gz"  # its ending tells the profiler to compress
        profile.export_chrome_trace(part)
        os.replace(part, self.path)

    def begin(self, step: int) -> None:
        pass

    def end(self, step: int) -> None:
        if step <= self.last:
            self.profile.step()
        if step == self.last:
            self.profile.stop()


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


def open_window() -> Any:
    """Two lines in a training loop: window.begin(step) before each step and window.end(step) after it."""
    text = os.environ.get("TPRIMAT_PROFILE", "")
    if not text or rank() != 0:
        return NoWindow()
    kind, first, last, *path = text.split(":", 3)
    windows = {"torch": TorchWindow, "cuda": CudaWindow, "roctx": RoctxWindow}
    if kind not in windows:
        raise SystemExit(f"error: TPRIMAT_PROFILE={text}: this framework cannot be profiled by '{kind}'")
    return windows[kind](int(first), int(last), *path)
