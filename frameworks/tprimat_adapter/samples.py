"""The tokens, in the order in which the native trainer reads them: tprimat itself writes them down."""

from __future__ import annotations

import atexit
import os
import pathlib
import subprocess
import time
import zlib
from typing import Any

import numpy

from tprimat_adapter.experiment import local_rank


def prepare_samples(spec_path: str | pathlib.Path) -> pathlib.Path:
    """The file with the samples of every step. The first process of a machine writes it and removes it at its end, the
    others wait for it. It is named after this start of torchrun, which on several nodes may always be "none", and after
    the experiment, so no old file with other tokens is taken for it."""
    spec = pathlib.Path(spec_path)
    start = os.environ.get("TORCHELASTIC_RUN_ID", "alone")
    path = spec.with_name(f"samples_{start}_{zlib.crc32(spec.read_bytes()):08x}.npy")
    if local_rank() == 0:
        path.unlink(missing_ok=True)
        program = os.environ.get("TPRIMAT_PROGRAM", "tprimat")
        subprocess.run([program, "data", "samples", "--spec", str(spec_path), "--output", str(path)], check=True)
        atexit.register(path.unlink, missing_ok=True)
    return path


class Samples:
    """int32 [steps * GBS, SL + 1]: sample i is inputs [:-1] and targets [1:]. Files appear whole."""

    def __init__(self, path: pathlib.Path, patience: float = 300.0) -> None:
        end = time.monotonic() + patience
        while not path.exists():
            if time.monotonic() > end:
                raise SystemExit(f"error: {path}: nobody wrote it within {patience:.0f} s")
            time.sleep(0.05)
        self.tokens = numpy.load(path, mmap_mode="r")

    def micro_batch(self, experiment: Any, step: int, index: int, rank: int) -> numpy.ndarray:
        """Tokens [MBS, SL + 1] of micro batch `index` of data-parallel rank `rank` in step 1..steps, as Megatron-LM
        deals them out: micro batch after micro batch, and in each one rank after the other. Further steps, which are
        profiled only, repeat the first ones."""
        mbs, ranks = experiment.micro_batch_size, experiment.parallel.data_parallel_size
        first = (step - 1) % experiment.steps * experiment.global_batch_size + (index * ranks + rank) * mbs
        return numpy.array(self.tokens[first:first + mbs], dtype=numpy.int64)

    @property
    def sequence_length(self) -> int:
        return self.tokens.shape[1] - 1

    def __len__(self) -> int:
        return len(self.tokens)
