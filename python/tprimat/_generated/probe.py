"""The output of tprimat probe --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import GemmPeak, Measured
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class MemoryRate(Record):
    """By what is done with the memory."""

    kind: Literal["read", "copy", "scale", "add", "triad"]
    """read: a sum; copy: c = a; scale: b = s·c; add: c = a + b; triad: a = b + s·c"""
    bytes_per_second: float
    """read and written, of the fastest pass"""
    measured: Measured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class MemoryBandwidth(Record):
    """Achievable memory bandwidth."""

    kinds: tuple[MemoryRate, ...]
    """by what is done with the memory"""
    buffer_bytes: int
    """memory that is walked through, bytes"""
    how: str
    """rule of the measurement"""


@dataclass(frozen=True, kw_only=True)
class ProbeReport(Record):
    """Measured rates of this machine's processor: matrix products and memory."""

    probe_version: int
    """format of this report"""
    cpu: str
    """as the processor gives it"""
    threads: int
    """threads that measured"""
    memory_bytes: float | None = None
    """installed memory, or the container's limit"""
    matmul: tuple[GemmPeak, ...]
    """achievable matrix-product rate by number format"""
    no_instructions: tuple[Literal["fp32", "bf16", "fp16", "int8"], ...]
    """number formats that this processor has no instructions for"""
    memory: MemoryBandwidth
    """achievable memory bandwidth"""
