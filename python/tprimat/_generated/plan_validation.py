"""The output of tprimat plan --validate TABLE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat._generated.common import PlannedRow
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class PlanErrors(Record):
    """Quantiles of the errors."""

    of: str
    """which rows"""
    rows: int
    """predicted"""
    median: float
    """median absolute relative error of the step time, or of memory if `of` says so"""
    p90: float
    """their 90th percentile"""
    worst: float
    """the largest"""
    bias: float
    """median of the signed errors"""
    covered: float | None = None
    """share of measured step times in their 80 % intervals"""


@dataclass(frozen=True, kw_only=True)
class SweptFamily(Record):
    """Ranking quality for layouts and settings of one model."""

    kind: str
    """dense, sparse or adapters"""
    of: str
    """models, number of GPUs, GPU"""
    rows: int
    """predicted, with different settings"""
    spearman: float
    """rank correlation of predicted and published tokens/s per GPU"""
    best_behind: float
    """published rate of the best row over that of the row predicted best, minus 1"""


@dataclass(frozen=True, kw_only=True)
class PlannedTable(Record):
    """Each table of published measurements."""

    table: str
    """file name without extension"""
    errors: tuple[PlanErrors, ...]
    """quantiles of the errors"""
    sweeps: tuple[SweptFamily, ...]
    """ranking quality for layouts and settings of one model"""
    not_predicted: dict[str, int]
    """rows without a prediction, by reason"""
    rows: tuple[PlannedRow, ...]
    """all rows"""


@dataclass(frozen=True, kw_only=True)
class RankingQuality(Record):
    """Ranking quality over the sweeps of all tables."""

    sweeps: int
    """of at least four settings"""
    median_spearman: float | None = None
    """median of their rank correlations"""
    by_kind: dict[str, float]
    """the same for each kind of model"""


@dataclass(frozen=True, kw_only=True)
class ResultResidual(Record):
    """Each result."""

    result: str
    """file"""
    family: str
    """framework family"""
    machine: str
    """machine of the run"""
    precision: str
    """of the matrix products"""
    layout: str
    """number of ranks and parallel layout"""
    measured_seconds: float | None = None
    """median of the steady steps"""
    before_seconds: float | None = None
    """predicted before the fit"""
    before_error: float | None = None
    """prediction over the measured time, minus 1"""
    predicted_seconds: float | None = None
    """predicted by the parameters of this report"""
    error: float | None = None
    """prediction over the measured time, minus 1"""
    measured_memory: float | None = None
    """bytes on the device with the highest use"""
    before_memory: float | None = None
    """bytes predicted before the fit"""
    before_memory_error: float | None = None
    """that over the measured bytes, minus 1"""
    predicted_memory: float | None = None
    """bytes"""
    memory_error: float | None = None
    """prediction over the measured bytes, minus 1"""
    missing: str | None = None
    """reason for a missing prediction"""


@dataclass(frozen=True, kw_only=True)
class MovedParameter(Record):
    """Parameters that the fit moved, furthest first."""

    name: str
    """key@scope"""
    before: float
    """value before the fit"""
    after: float
    """value after it"""
    deviation: float
    """posterior standard deviation of ln(value)"""
    deviations: float
    """the move in posterior standard deviations"""


@dataclass(frozen=True, kw_only=True)
class OwnResultsReport(Record):
    """Errors on results of trainings."""

    table: str
    """kind of rows"""
    errors: tuple[PlanErrors, ...]
    """quantiles"""
    not_predicted: dict[str, int]
    """results without a prediction, by reason"""
    rows: tuple[ResultResidual, ...]
    """each result"""
    moved: tuple[MovedParameter, ...] | None = None
    """parameters that the fit moved, furthest first"""


@dataclass(frozen=True, kw_only=True)
class PlanValidation(Record):
    """Errors of the planner on published measurements and on results; also that of --calibrate, with and without
    --folds.
    """

    tables: tuple[PlannedTable, ...]
    """each table of published measurements"""
    together: tuple[PlanErrors, ...]
    """quantiles of the errors over the rows of all tables"""
    ranking: RankingQuality
    """ranking quality over the sweeps of all tables"""
    results: OwnResultsReport | None = None
    """errors on results of trainings; absent: no result was given"""
