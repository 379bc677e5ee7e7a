"""The output of tprimat archive facts --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class WitnessedFact(Record):
    """Facts that archives hold, and the files that each is compared with."""

    document: str
    """kind of file"""
    fact: str
    """key in that file"""
    witnesses: str
    """files that it is compared with; empty: none"""
