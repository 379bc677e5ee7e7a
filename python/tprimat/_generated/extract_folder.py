"""The output of tprimat extract FOLDER --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import Estimate
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class ExtractedLog(Record):
    """The logs of a folder and their results."""

    file: str
    """log"""
    nothing: str | None = None
    """reason for a missing result; absent: there is a result"""
    result: str | None = None
    """result file; absent: no result"""
    format: str | None = None
    """format of the log; empty: not known; absent: no result"""
    status: Literal["complete", "failed", "interrupted", "invalid"] | None = None
    """how the run ended; absent: no result"""
    status_reason: str | None = None
    """why it did not complete"""
    time_to_train_seconds: float | None = None
    """time to the target quality, s; absent: no target, or not reached"""
    steps: int | None = None
    """steps in the log; absent: not known"""
    median_step_time_seconds: float | None = None
    """median of the steady steps, s; absent: not known"""
    figures: dict[str, Estimate] | None = None
    """metrics that are known, by key, in their units; absent: no result"""
