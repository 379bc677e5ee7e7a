"""The output of tprimat published show ID --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat._generated.common import PlannedRow
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class CountedMfu(Record):
    """MFU by each count of FLOPs."""

    convention: str
    """count of FLOPs"""
    flops_per_token: float
    """model FLOPs, forward and backward"""
    mfu: float
    """share of the peak"""
    deviations: tuple[str, ...]
    """what the count assumes beyond the row"""


@dataclass(frozen=True, kw_only=True)
class PublishedFigures(Record):
    """What follows from the cells."""

    tokens_per_second_per_gpu: float | None = None
    """tokens/s per GPU"""
    rate_from: str | None = None
    """cell that gives the rate"""
    peak: str | None = None
    """peak behind the MFU, TFLOP/s"""
    mfu: tuple[CountedMfu, ...]
    """MFU by each count of FLOPs"""
    missing: str | None = None
    """reason for a missing MFU"""
    minutes_to_target: float | None = None
    """minutes until the target was reached"""


@dataclass(frozen=True, kw_only=True)
class PublishedDetails(Record):
    """A published measurement with the figures that follow from it and its prediction."""

    id: str
    """of the row"""
    table: str
    """file in data/published"""
    link: str
    """address of the source"""
    cells: dict[str, str]
    """as the table states them, by column"""
    derived: PublishedFigures
    """what follows from the cells"""
    planned: PlannedRow
    """what the planner predicts"""
    predicted_low: float | None = None
    """tokens/s per GPU, lower bound of the 80 % interval"""
    predicted_high: float | None = None
    """tokens/s per GPU, upper bound"""
    interval_basis: str | None = None
    """measured rows behind the interval"""
