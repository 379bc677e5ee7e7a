"""The output of tprimat export --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class Exported(Record):
    """Results in other formats: the files written."""

    runs: int
    """number of results exported"""
    written: dict[str, tuple[str, ...]]
    """files and folders written, by format"""
