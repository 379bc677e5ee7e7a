"""The output of tprimat doctor --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import MachineFinding
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Record):
    """Whether this machine is fit to measure."""

    summary: str
    """whether the machine is fit to measure, as a sentence"""
    worst: Literal["ok", "note", "warning", "missing", "broken"]
    """highest severity of the findings"""
    platform: Literal["nvd", "amd", "cpu"]
    """platform that was examined"""
    counts: dict[str, int]
    """number of findings by severity; every severity is there"""
    findings: tuple[MachineFinding, ...]
    """findings by area, the worst of each area first"""
