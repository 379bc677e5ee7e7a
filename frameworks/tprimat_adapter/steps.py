"""One JSON line for each step in the file that TPRIMAT_STEPS names; the suite reads it while the training runs."""

import json
import math
import os
import time

import torch


def synchronize(device):
    if device.type == "cuda":  # ROCm's devices have this type too
        torch.cuda.synchronize(device)


class StepRecorder:
    """Three lines in a training loop of your own:

        recorder = StepRecorder(device, tokens_per_step)
        for step in ...:
            ...                                      # forward, backward, optimizer.step()
            recorder.end_step(step, loss=loss, learning_rate=rate, grad_norm=norm)

    A step lasts from the end of the one before (the first from begin(), or from here) to the moment when the device has
    finished. Only rank 0 writes.
    """

    def __init__(self, device, tokens_per_step, path=None):
        self.device, self.tokens = torch.device(device), tokens_per_step
        path = path or os.environ.get("TPRIMAT_STEPS")
        self.file = open(path, "a", buffering=1, encoding="utf-8") if path and os.environ.get("RANK", "0") == "0" else None
        self.begin()

    def begin(self):
        synchronize(self.device)
        self.last = time.perf_counter()

    def end_step(self, step, **figures):
        """`figures` may be tensors; those with a NaN are written as null, those that are None are left out."""
        synchronize(self.device)
        now = time.perf_counter()
        record = {"step": int(step), "time_seconds": now - self.last, "tokens": self.tokens, "unix_time": time.time()}
        for name, value in figures.items():
            if value is not None:
                number = float(value)
                record[name] = number if math.isfinite(number) else None
        if self.device.type == "cuda":
            record["memory_allocated_gb"] = torch.cuda.max_memory_allocated(self.device) / 1e9
            record["memory_reserved_gb"] = torch.cuda.max_memory_reserved(self.device) / 1e9
        if self.file:
            self.file.write(json.dumps(record) + "\n")
        self.last = time.perf_counter()
        return record
