"""The output of tprimat compare --history FOLDER --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import Estimate, Gate, SkippedFile
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class HistoryIndex(Record):
    """Index of the folder."""

    path: str
    """file of the index; empty: kept in memory only"""
    files_read: int
    """result files that were new or changed"""
    files_gone: int
    """indexed files that no longer exist"""
    note: str
    """repairs of the index; empty: none"""


@dataclass(frozen=True, kw_only=True)
class SeriesKey(Record):
    """What all its runs have in common."""

    model: str
    """key of the model"""
    framework: str
    """what trained"""
    platform: str
    """nvd, amd or cpu"""
    device: str
    """name as the driver gives it"""
    precision: str
    """number format of the matrix products"""
    strategy: str
    """name of the layout"""
    installation: str
    """label of the framework's installation, or empty"""
    device_count: int
    """devices of the run, 0: not known"""
    global_batch_size: int
    """sequences per step, 0: not known"""
    sequence_length: int
    """tokens per sequence, 0: not known"""


@dataclass(frozen=True, kw_only=True)
class Step(Record):
    """A part of the output of tprimat compare --history FOLDER --json."""

    file: str
    """first file of the earlier point"""
    change: Estimate | None
    """newest / earlier - 1; null: not comparable"""
    verdict: Literal["better", "worse", "same", "inconclusive", "not comparable"]
    """the newest against the earlier point"""
    why: str | None
    """reason why they are not comparable; null: they are"""


@dataclass(frozen=True, kw_only=True)
class Shift(Record):
    """Shifts of the level, by time."""

    time: str
    """first point of the new level, UTC"""
    after: str
    """last point of the old level, UTC"""
    file: str
    """first file of the new level"""
    level_before: float
    """mean of the old level, in the metric's unit"""
    level_after: float
    """mean of the new level, in the metric's unit"""


@dataclass(frozen=True, kw_only=True)
class Copy(Record):
    """Copies of these runs, which do not count."""

    path: str
    """file that holds a run counted already"""
    of: str
    """file that counts"""


@dataclass(frozen=True, kw_only=True)
class Point(Record):
    """Runs, by time."""

    time: str
    """newest of its runs, UTC"""
    files: tuple[str, ...]
    """result files, one per repetition"""
    copies: tuple[Copy, ...]
    """copies of these runs, which do not count"""
    status: Literal["complete", "failed", "interrupted", "invalid"]
    """complete if all its runs are"""
    fault: str | None
    """error that the audit finds in a run; null: none"""
    figure: Estimate | None
    """the metric, in its unit; null: not known"""


@dataclass(frozen=True, kw_only=True)
class Series(Record):
    """Runs that differ only by deliberate changes and noise."""

    series: SeriesKey
    """what all its runs have in common"""
    title: str
    """the same as a sentence"""
    other_work: str | None
    """difference in work from the first series of the same key; null: none"""
    against_previous: Step | None
    """newest point against the one before; null: none before"""
    against_best: Step | None
    """newest point against the best before; null: none before"""
    shifts: tuple[Shift, ...]
    """shifts of the level, by time"""
    points: tuple[Point, ...]
    """runs, by time"""


@dataclass(frozen=True, kw_only=True)
class HistoryReport(Record):
    """The results of a folder by time."""

    history_version: int
    """version of this format"""
    folder: str
    """folder of the results"""
    metric: str
    """key of the metric"""
    unit: str
    """unit of the metric; empty: a fraction or a count"""
    smallest_effect: float
    """a ratio within 1 / (1 + this) and 1 + this counts as the same"""
    assumed_run_spread: float
    """relative standard deviation between runs that is assumed for points of one run"""
    exit_status: int
    """exit status of the command"""
    index: HistoryIndex
    """index of the folder"""
    series: tuple[Series, ...]
    """runs that differ only by deliberate changes and noise"""
    gates: tuple[Gate, ...]
    """--fail-if conditions on the newest point of each series"""
    skipped: tuple[SkippedFile, ...]
    """files that are no results"""
