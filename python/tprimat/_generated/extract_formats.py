"""The output of tprimat extract --list-formats --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class LogFormat(Record):
    """Log formats that can be read, and the figures in each."""

    id: str
    """name for --format"""
    title: str
    """name for people"""
    versions: str
    """versions seen in real logs"""
    fields: dict[str, str]
    """what the log calls each figure, by the figure's key"""
