"""The output of tprimat why A B --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat._generated.common import WhatIfReport
from tprimat.record import Record
from tprimat.views import WhyView


@dataclass(frozen=True, kw_only=True)
class LedgerSide(Record):
    """The side compared with."""

    label: str
    """name of the side"""
    files: tuple[str, ...]
    """traces and results behind it"""
    device: str | None = None
    """name of the device"""
    ranks: int
    """ranks with a trace"""
    steps: int
    """steps that the traces record"""
    step_seconds: float
    """step that the ledger explains, s: without a profiler where a result states it"""
    ci95_low: float | None = None
    """lower end of its 95 % interval, s"""
    ci95_high: float | None = None
    """upper end, s"""
    recorded_step_seconds: float | None = None
    """mean of the recorded steps, s"""
    scale: float | None = None
    """step without a profiler over the recorded step"""
    busy_seconds: float | None = None
    """in which the device worked, s per recorded step"""
    idle_seconds: float | None = None
    """in which it did not"""
    hidden_communication_seconds: float | None = None
    """communication during which something was computed, s per recorded step"""


@dataclass(frozen=True, kw_only=True)
class LedgerDetail(Record):
    """What it consists of, the largest first; at most twenty."""

    what: str
    """operation with its shapes, kernel, or kind of idle time"""
    seconds: float
    """what it adds to the gap, s per step, B - A"""
    a_seconds: float | None = None
    """time of it in A, s per step"""
    b_seconds: float | None = None
    """time of it in B, s per step"""
    a_calls: float | None = None
    """calls in A per step"""
    b_calls: float | None = None
    """calls in B per step"""


@dataclass(frozen=True, kw_only=True)
class LedgerTerm(Record):
    """One per cause; they add up to the gap."""

    cause: Literal[
        "work", "micro_batches", "products", "attention", "memory_bound", "communication", "waiting", "data",
        "synchronisation", "launch", "clocks", "one_sided", "outliers", "unknown_kernels", "unexplained"
    ]
    """name of the term"""
    seconds: float
    """what it adds to the gap, s per step, B - A: positive where B is slower"""
    ci95_low: float | None = None
    """lower end of its 95 % interval; absent: too few steps"""
    ci95_high: float | None = None
    """upper end"""
    a_seconds: float
    """time of this kind in A, s per step, whatever the cause of a difference"""
    b_seconds: float
    """the same in B"""
    details: tuple[LedgerDetail, ...]
    """what it consists of, the largest first; at most twenty"""
    sentence: str
    """of the largest terms, with figures; empty: the term is no finding"""
    remedy: str
    """what to do about it; empty: nothing in particular"""


@dataclass(frozen=True, kw_only=True)
class LedgerClass(Record):
    """Kernels of both sides by class."""

    class_: Literal[
        "matmul", "attention", "convolution", "norm", "softmax", "embedding", "reduction", "elementwise", "optimizer",
        "collective", "copy", "other"
    ] = field(metadata={"key": "class"})
    """what the kernels do"""
    a_seconds: float
    """sum of their durations in A, s per step"""
    b_seconds: float
    """the same in B"""
    a_calls: float
    """kernels in A per step"""
    b_calls: float
    """the same in B"""


@dataclass(frozen=True, kw_only=True)
class WhyReport(WhyView, Record):
    """Why B's step takes longer than A's, in terms that add up."""

    a: LedgerSide
    """the side compared with"""
    b: LedgerSide
    """the side explained"""
    gap_seconds: float
    """step of B - step of A, s"""
    ci95_low: float | None = None
    """lower end of the gap's 95 % interval; absent: too few steps"""
    ci95_high: float | None = None
    """upper end"""
    terms: tuple[LedgerTerm, ...]
    """one per cause; they add up to the gap"""
    classes: tuple[LedgerClass, ...]
    """kernels of both sides by class"""
    resolved: bool
    """false: more than 5 % of the gap is unexplained"""
    findings: tuple[str, ...]
    """the largest terms as sentences with their remedies, largest first"""
    notes: tuple[str, ...]
    """what to know before trusting the figures"""
    why_version: int
    """version of this format"""
    sentence: str
    """the gap as a sentence"""
    remainder: str
    """the unexplained part, as a sentence"""
    what_if: WhatIfReport | None = None
    """B's step with changed durations; absent: not requested"""
