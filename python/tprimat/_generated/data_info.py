"""The output of tprimat data info PREFIX --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class SplitSummary(Record):
    """Each split."""

    split: Literal["train", "valid", "test"]
    """train, valid or test"""
    first_sequence: int
    """its first sequence"""
    end_sequence: int
    """one past its last sequence"""
    sequences: int
    """sequences"""
    tokens: int
    """tokens of its sequences"""
    samples: int | None = None
    """number of samples"""
    epochs: int | None = None
    """epochs that these samples take"""


@dataclass(frozen=True, kw_only=True)
class DatasetReport(Record):
    """A data set of tokens; also that which data make writes."""

    prefix: str
    """path without .bin and .idx"""
    token_type: Literal["uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"]
    """number format of a token in the .bin file"""
    tokens: int
    """tokens of all sequences"""
    sequences: int
    """sequences in the index"""
    documents: int
    """documents in the index"""
    bin_bytes: int
    """size of the .bin file, bytes"""
    idx_bytes: int
    """size of the .idx file, bytes"""
    shortest_sequence: int | None = None
    """tokens"""
    longest_sequence: int | None = None
    """tokens"""
    largest_token: int | None = None
    """the vocabulary must be larger than this"""
    distinct_tokens: int
    """number of distinct tokens"""
    splits: tuple[SplitSummary, ...] | None = None
    """each split; absent: not asked for"""
