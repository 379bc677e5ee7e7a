"""The output of tprimat archive verify ARCHIVE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class Mismatch(Record):
    """Mismatches, those of derived figures last."""

    file: str
    """file of the archive"""
    what: str
    """figure or fact"""
    stated: str
    """its value in the file; empty: nothing to compare"""
    derived: str
    """value found elsewhere; empty: nothing to compare"""
    witness: str
    """file of that value; empty: it follows from `file` itself"""


@dataclass(frozen=True, kw_only=True)
class VerifiedArchive(Record):
    """What an archive's files agree on and what not."""

    manifest_sha256: str
    """SHA-256 of the manifest, hexadecimal: identifies the archive"""
    created: str
    """when it was sealed, UTC"""
    program: str
    """program that sealed it, and its version"""
    files: int
    """files checked"""
    results: int
    """results checked"""
    numbers: int
    """figures derived again"""
    facts: int
    """facts compared"""
    steps: int
    """steps compared with their records"""
    logs: int
    """logs read again"""
    is_signed: bool
    """the archive has a signature"""
    signed_by: str
    """signer whose signature is valid; empty: none, or not checked"""
    holds: bool
    """there are results and no mismatch"""
    broken: tuple[Mismatch, ...]
    """mismatches, those of derived figures last"""
    notes: tuple[str, ...]
    """what could not be checked, as sentences"""
