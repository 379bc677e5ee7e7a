"""The output of tprimat archive --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class SealedFile(Record):
    """Every other file of the archive."""

    path: str
    """name within the archive"""
    bytes: int
    """length"""
    sha256: str
    """SHA-256 of the content as it stands in the archive"""


@dataclass(frozen=True, kw_only=True)
class LeftOutFile(Record):
    """Files that are not in the archive."""

    path: str
    """file that is not in the archive"""
    reason: str
    """reason for leaving it out"""


@dataclass(frozen=True, kw_only=True)
class SealedArchive(Record):
    """A sealed archive: its manifest."""

    archive_version: int
    """version of this layout"""
    program: str
    """what sealed it"""
    created: str
    """when, UTC"""
    files: tuple[SealedFile, ...]
    """every other file of the archive"""
    redactions: dict[str, int]
    """number of replacements by kind"""
    archive: str
    """file of the archive"""
    manifest_sha256: str
    """SHA-256 of the manifest, hexadecimal: identifies the archive"""
    left_out: tuple[LeftOutFile, ...]
    """files that are not in the archive"""
