"""The output of tprimat doctor --install NAME --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class InstalledFramework(Record):
    """Frameworks that were installed."""

    id: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """framework"""
    version: str
    """its version"""
    place: str
    """folder of the installation"""
