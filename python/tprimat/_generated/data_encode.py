"""The output of tprimat data encode FILE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class EncodeSummary(Record):
    """A data set encoded from text."""

    prefix: str
    """path without .bin and .idx"""
    tokenizer: str
    """tokenizer that encoded the text"""
    token_type: Literal["uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"]
    """number format of a token in the .bin file"""
    documents: int
    """documents, including empty ones"""
    tokens: int
    """tokens of all documents"""
    text_bytes: int
    """bytes of text, as UTF-8"""
    seconds: float
    """total time"""
    megabytes_per_second: float
    """1e6 bytes of text per second"""
