"""Puts a known cause of slowness into a training of PyTorch. Python imports this by itself where PYTHONPATH names its folder.

  TPRIMAT_INJECTION=data:0.02         every batch takes the data loader 20 ms longer
  TPRIMAT_INJECTION=copies:16         every decoder layer copies 4 MB sixteen times more
  TPRIMAT_INJECTION=slow_step:0.2:5   every fifth step takes 0.2 s longer
  TPRIMAT_INJECTION=pin:1:0           rank 1 runs on processor 0 alone

TPRIMAT_TURNS=FILE:SIDE:RANKS: takes turns with another training, as injected_trainer.cpp says.
TPRIMAT_INJECTED=FILE: rank 0 writes there what it measured of each step: {"step": 3, "seconds": 0.0201}. Slow sockets are
those of slow_sockets.cpp.
"""

import contextlib
import functools
import json
import mmap
import os
import pathlib
import sys
import time


class Injector:
    def __init__(self, kind, amount, every):
        self.kind, self.amount, self.every = kind, amount, every
        self.step, self.seconds, self.buffers = 1, 0.0, None
        path = os.environ.get("TPRIMAT_INJECTED") if os.environ.get("RANK", "0") == "0" else None
        self.report = open(path, "w", buffering=1) if path else None

    def sleep(self):
        begin = time.perf_counter()
        time.sleep(self.amount)
        self.seconds += time.perf_counter() - begin

    def copy(self):
        import torch

        if self.buffers is None:
            self.buffers = torch.ones(1 << 20), torch.zeros(1 << 20)
        begin = time.perf_counter()
        for _ in range(int(self.amount)):
            self.buffers[1].copy_(self.buffers[0])
        self.seconds += time.perf_counter() - begin

    def end_step(self, *_):
        if self.report:
            self.report.write(json.dumps({"step": self.step, "seconds": self.seconds}) + "\n")
        self.step, self.seconds = self.step + 1, 0.0

    def before_update(self, *_):
        if self.kind == "slow_step" and self.step % self.every == 0:
            self.sleep()

    def after_module(self, module, *_):
        if self.kind == "copies" and type(module).__name__.endswith("DecoderLayer"):
            self.copy()

    def install(self):
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self.before_update)
        register_optimizer_step_post_hook(self.end_step)
        torch.nn.modules.module.register_module_forward_hook(self.after_module)
        fetcher = torch.utils.data._utils.fetch._MapDatasetFetcher
        fetch = fetcher.fetch

        def late(fetching, *arguments):
            if self.kind == "data":
                self.sleep()
            return fetch(fetching, *arguments)

        fetcher.fetch = late


class Turns:
    """After each step: until the other side has done its own. Neither the step's time nor its mark in a trace holds the wait."""

    LONGEST_SECONDS = 200

    def __init__(self, text):
        path, side, ranks = text.rsplit(":", 2)
        self.side, ranks = int(side), int(ranks)
        with open(path, "r+b") as file:
            done = memoryview(mmap.mmap(file.fileno(), 16 * ranks)).cast("q")
        self.own, other = done[self.side * ranks:][:ranks], 1 - self.side
        self.others = done[other * ranks:][:ranks]
        self.rank, self.steps, self.is_due = int(os.environ.get("RANK", "0")), 0, False
        self.is_installed, self.recorder = False, None

    def wait(self):
        self.is_due, self.steps, begin = False, self.steps + 1, time.perf_counter()
        self.own[self.rank] = self.steps
        while min(self.others) < self.steps + self.side:
            if time.perf_counter() - begin > self.LONGEST_SECONDS:
                raise SystemExit("error: the other side takes no step")
            time.sleep(0.002)  # rarely: a thread that wakes up beside a step evicts its caches
        if self.recorder:  # from the second step on
            self.recorder.last += time.perf_counter() - begin

    def install(self, *_):
        """When the first step ends: what it looks for is imported then."""
        if self.is_installed:
            return
        self.is_installed = True
        import torch
        from tprimat.steps import StepRecorder
        from tprimat_adapter import profiling

        turns, mark, stop_clock = self, torch.autograd.profiler.record_function, StepRecorder.stop_clock
        begin_mark = mark.__enter__

        def stop(recorder, *arguments):
            turns.recorder = recorder
            return stop_clock(recorder, *arguments)

        def begin(marked):
            if turns.is_due and marked.name.startswith("ProfilerStep"):
                turns.wait()  # between the marks of two steps
            return begin_mark(marked)

        def after(end):
            @functools.wraps(end)
            def ended(window, step):
                turns.is_due = True
                end(window, step)
                if turns.is_due:
                    turns.wait()
            return ended

        StepRecorder.stop_clock, mark.__enter__ = stop, begin
        for window in (profiling.NoWindow, profiling.TorchWindow):
            window.end = after(window.end)


def come_first():
    """The kernel shares a processor out among sessions, of which each training is one. Where this is allowed, this one comes
    before what else the machine does."""
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write("-15")


def inject():
    """In ranks alone: torchrun's own process and other programs of Python stay as they are."""
    text = os.environ.get("TPRIMAT_INJECTION", "")
    trains = any(pathlib.Path(word).name.startswith("train_") for word in sys.orig_argv)
    starts_ranks = "torch.distributed.run" in sys.orig_argv or "torchrun" in pathlib.Path(sys.orig_argv[1]).name
    if not trains or (starts_ranks and "RANK" not in os.environ):
        return
    come_first()
    if os.environ.get("TPRIMAT_TURNS"):
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(Turns(os.environ["TPRIMAT_TURNS"]).install)
    if not text:
        return
    kind, amount, *every = text.split(":")
    if kind == "pin" and os.environ.get("RANK", "0") == amount:
        os.sched_setaffinity(0, {int(every[0])})
    Injector(kind, float(amount), int(every[0]) if every else 1).install()


inject()
