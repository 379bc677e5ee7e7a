"""The output of tprimat estimate --validate TABLE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class FigureCheck(Record):
    """The printed figures."""

    figure: str
    """column of the table"""
    printed: str
    """as the table prints it"""
    verdict: Literal["reproduced", "explained", "unexplained", "lacking"]
    """reproduced, explained, unexplained or lacking"""
    computed: float | None = None
    """our figure, in the column's unit"""
    low: float | None = None
    """lower bound from the row's rounding"""
    high: float | None = None
    """upper bound from the row's rounding"""
    convention: str | None = None
    """FLOP counting convention"""
    from_: str | None = field(default=None, metadata={"key": "from"})
    """input that gives the rate"""
    peak: str | None = None
    """peak behind the utilization, TFLOP/s"""
    deviations: tuple[str, ...]
    """named deviations accepted"""
    lacks: str | None = None
    """inputs missing from the row"""


@dataclass(frozen=True, kw_only=True)
class RowCheck(Record):
    """Rows that print a figure."""

    line: int
    """of the file, from 1"""
    model: str
    """as printed"""
    figures: tuple[FigureCheck, ...]
    """the printed figures"""


@dataclass(frozen=True, kw_only=True)
class TableCheck(Record):
    """Printed TFLOP/s, MFU and HFU of published tables, computed again."""

    table: str
    """file name without extension"""
    reproduced: int
    """figures"""
    explained: int
    """figures"""
    unexplained: int
    """figures"""
    lacking: int
    """figures whose row prints too little to compute them"""
    rows_without_figures: int
    """rows without TFLOP/s, MFU and HFU"""
    rows: tuple[RowCheck, ...]
    """rows that print a figure"""
