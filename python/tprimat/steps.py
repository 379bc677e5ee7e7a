"""Step records: one JSON line for each optimizer step, which `tprimat run` and `tprimat extract` read."""

from __future__ import annotations

import json
import math
import os
import pathlib
import sys
import time
from typing import Any, TextIO

FIGURES = ("loss", "learning_rate", "grad_norm", "loss_scale", "validation_loss", "tokens", "skipped", "expert_load",
           "dropped_share", "aux_loss", "z_loss")
RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")  # torchrun, srun, mpirun


def find_gpu(device: Any = None) -> Any:
    """The GPU (torch.device) whose work is waited for: `device`, else PyTorch's own; None on the processor."""
    torch = sys.modules.get("torch")  # who trains with it has imported it
    if torch is None or (device is None and not torch.cuda.is_available()):
        return None
    device = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
    return device if device.type == "cuda" else None  # ROCm's devices have this type too


def find_ranks() -> Any:
    """torch.distributed where its process group is there, else None."""
    torch = sys.modules.get("torch")
    ranks = torch.distributed if torch is not None and torch.distributed.is_available() else None
    return ranks if ranks is not None and ranks.is_initialized() else None


def is_first_rank() -> bool:
    ranks = find_ranks()
    if ranks is not None:
        return bool(ranks.get_rank() == 0)
    return int(next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0")) == 0


def open_steps(path: str | os.PathLike[str] | None = None) -> TextIO:
    """The file that TPRIMAT_STEPS names; without it `path`, else ./steps.jsonl, where an older one becomes *.before."""
    chosen = os.environ.get("TPRIMAT_STEPS")
    if chosen:
        return open(chosen, "a", buffering=1, encoding="utf-8")
    file = pathlib.Path(path or "steps.jsonl")
    if file.exists():
        file.replace(f"{file}.before")
    return open(file, "w", buffering=1, encoding="utf-8")


def as_figure(value: Any) -> int | float | bool | None:
    """A tensor's number; None for NaN and infinity, which JSON does not have."""
    if isinstance(value, (bool, int)):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


class StepRecorder:
    """Three lines in a training loop of your own:

        from tprimat import StepRecorder
        recorder = StepRecorder(tokens_per_step=batch * length)         # before the loop, on every rank
        recorder.end_step(loss=loss, learning_rate=rate, grad_norm=norm)  # at the end of each step, on every rank

    A step lasts from the end of the one before (the first from begin(), or from here) to the moment when the device has
    finished. Memory is the most that PyTorch held so far, in GB = 1e9 bytes: the maximum over all ranks where
    torch.distributed is initialised, else this process's own. Only rank 0 writes.
    """

    def __init__(self, device: Any = None, tokens_per_step: int | None = None,
                 path: str | os.PathLike[str] | None = None) -> None:
        """`tokens_per_step` counts the tokens of all ranks in one step. `path`: see open_steps."""
        self.gpu = find_gpu(device)
        self.tokens, self.path = tokens_per_step, path
        self.file: TextIO | None = None
        self.step = 0
        self.begin()

    def begin(self) -> None:
        """Starts the next step now: an evaluation or a checkpoint before it is not counted."""
        self.synchronize()
        self.last = time.perf_counter()

    def synchronize(self) -> None:
        if self.gpu is not None:
            sys.modules["torch"].cuda.synchronize(self.gpu)

    def end_step(self, step: int | None = None, **figures: Any) -> dict[str, Any]:
        """Writes and returns the record of a step that is over. `step` counts from 1, by itself where not given.

        loss (mean over the step's tokens, nats), learning_rate, grad_norm (global L2 norm before clipping), loss_scale,
        validation_loss, tokens (of all ranks, where it is not tokens_per_step), skipped (True: the update was left
        out). Of a mixture of experts: expert_load (tokens of the fullest expert / mean, averaged over the layers),
        dropped_share (of the token-expert assignments, 0 to 1), aux_loss and z_loss (as added to the loss: coefficient
        included). Numbers or tensors; NaN is written as null, None is left out.
        """
        return self.write(self.stop_clock(step), **figures)

    def stop_clock(self, step: int | None = None) -> dict[str, Any]:
        """Waits for the device; the record of the step that is over, to be given to write()."""
        self.synchronize()
        now = time.perf_counter()
        self.step = self.step + 1 if step is None else int(step)
        record = {"step": self.step, "time_seconds": now - self.last, "unix_time": time.time()}
        self.last = now
        return record

    def write(self, record: dict[str, Any], **figures: Any) -> dict[str, Any]:
        """Adds figures and memory to the record and appends it to the file as one line."""
        start = time.perf_counter()
        unknown = sorted(set(figures) - set(FIGURES))
        if unknown:
            raise TypeError(f"a step has no {', '.join(unknown)}; it has {', '.join(FIGURES)}")
        figures = {"tokens": self.tokens, **figures}
        record.update({name: as_figure(value) for name, value in figures.items() if value is not None})
        record.update(self.peak_memory())
        if is_first_rank():
            self.file = self.file or open_steps(self.path)
            self.file.write(json.dumps(record) + "\n")
        self.last += time.perf_counter() - start  # is no part of the next step
        return record

    def peak_memory(self) -> dict[str, float]:
        if self.gpu is None:
            return {}
        torch, ranks = sys.modules["torch"], find_ranks()
        held = [torch.cuda.max_memory_allocated(self.gpu), torch.cuda.max_memory_reserved(self.gpu)]
        peaks = torch.tensor(held, dtype=torch.float64, device=self.gpu)
        if ranks is not None:
            ranks.all_reduce(peaks, op=ranks.ReduceOp.MAX)
        allocated, reserved = (peaks / 1e9).tolist()
        return {"memory_allocated_gb": allocated, "memory_reserved_gb": reserved}
