"""The output of mpirun -n 2 tprimat probe --collectives --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import Measured
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class CollectiveRate(Record):
    """By collective and size."""

    kind: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"]
    """collective"""
    bytes: int
    """S: total data size"""
    algorithm_bytes_per_second: float
    """S / median time"""
    bus_bytes_per_second: float
    """algorithm bandwidth times 2·(R − 1)/R for all_reduce, (R − 1)/R for all_gather, reduce_scatter and all_to_all"""
    measured: Measured
    """the measurement, by the slowest rank of each window"""


@dataclass(frozen=True, kw_only=True)
class CollectiveReport(Record):
    """Measured rates of collectives between ranks."""

    probe_version: int
    """format of this report"""
    ranks: int
    """R"""
    device: str | None = None
    """cpu, or the GPU of each rank"""
    how: str
    """measurement rule"""
    rates: tuple[CollectiveRate, ...]
    """by collective and size"""
