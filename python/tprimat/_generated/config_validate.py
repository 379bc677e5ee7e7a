"""The output of tprimat config validate --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class ConfigProblem(Record):
    """All errors; empty: valid."""

    where: str
    """file, line and key; empty: none"""
    what: str
    """the problem"""
    hint: str
    """remedy; empty: none"""


@dataclass(frozen=True, kw_only=True)
class ValidatedConfig(Record):
    """Errors and warnings of the configuration."""

    valid: bool
    """the configuration has no error"""
    origin: str | None = None
    """configuration file, or the built-in default; absent: not valid"""
    errors: tuple[ConfigProblem, ...]
    """all errors; empty: valid"""
    warnings: tuple[ConfigProblem, ...] | None = None
    """all warnings; absent: not valid"""
