"""The output of tprimat why A --what-if CHANGE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class WhatIfAnswer(Record):
    """One per change, each by itself."""

    change: str
    """the changed durations, as asked for"""
    step_seconds: float
    """what the step would take, s"""
    saved_seconds: float
    """measured step - this one, s"""
    note: str
    """what the change could not reach; empty: nothing"""


@dataclass(frozen=True, kw_only=True)
class WhatIfReport(Record):
    """What a step would take with changed durations."""

    measured_seconds: float
    """mean step as recorded, s"""
    replayed_seconds: float
    """replay of it with unchanged durations, s"""
    replay_error: float
    """replayed / measured - 1"""
    answers: tuple[WhatIfAnswer, ...]
    """one per change, each by itself"""
