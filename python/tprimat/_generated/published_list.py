"""The output of tprimat published list --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record
from tprimat.views import EntryView


@dataclass(frozen=True, kw_only=True)
class PublishedEntry(EntryView, Record):
    """Published measurements that match."""

    id: str
    """for tprimat published show"""
    table: str
    """file in data/published"""
    model: str
    """as printed"""
    kind: str
    """dense, sparse or hybrid; empty: shape not known"""
    routing: str
    """of sparse rows: balanced or learned; empty: not stated"""
    layers: int | None = None
    """as printed"""
    proxy: bool
    """fewer layers than the model that it is named for"""
    gpu: str
    """as printed"""
    gpus: int | None = None
    """number of GPUs"""
    framework: str
    """as printed"""
    precision: str
    """as printed"""
    sequence_length: int | None = None
    """tokens"""
    global_batch: int | None = None
    """sequences per step"""
    layout: str
    """parallel sizes, as printed"""
    tokens_per_second_per_gpu: float | None = None
    """printed or derived"""
    tflops_per_gpu: float | None = None
    """as printed, by the source's count"""
    mfu: float | None = None
    """our count: causal attention, peak of the catalogue"""
    minutes_to_target: float | None = None
    """of MLPerf"""
    reading: str
    """how the figures were obtained"""
    reach: str
    """who can open the source"""
    source: str
    """where the figures stand"""
    link: str
    """address of the source"""
    notes: str
    """settings and doubts"""
