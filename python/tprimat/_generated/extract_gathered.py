"""The output of tprimat extract --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import AssumedFact, Estimate
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class GatheredLog(Record):
    """Logs that were read."""

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
    place: str
    """where it was found: a folder's name, or the variable that names it"""
    model: str
    """key of the configured model"""
    model_because: str
    """what shows that the log is of this model"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"] | None = None
    """framework that trained; absent: not known"""
    platform: Literal["nvd", "amd", "cpu"] | None = None
    """nvd, amd or cpu; absent: not known"""
    assumed: tuple[AssumedFact, ...] | None = None
    """facts that the log does not state; absent: none"""


@dataclass(frozen=True, kw_only=True)
class PassedOverFile(Record):
    """Files that were left."""

    file: str
    """file that was left"""
    why: str
    """reason for leaving it"""


@dataclass(frozen=True, kw_only=True)
class LogPlace(Record):
    """Folders searched."""

    name: str
    """name of the place"""
    folder: str
    """folder searched"""
    exists: bool
    """the folder exists"""
    logs: int
    """logs found there"""
    incomplete: str | None = None
    """reason why not all of it was searched; absent: all was"""


@dataclass(frozen=True, kw_only=True)
class GatheredLogs(Record):
    """The logs that were found, and their results."""

    taken: tuple[GatheredLog, ...]
    """logs that were read"""
    passed_over: tuple[PassedOverFile, ...]
    """files that were left"""
    places: tuple[LogPlace, ...]
    """folders searched"""
