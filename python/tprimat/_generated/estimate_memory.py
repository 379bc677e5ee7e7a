"""The output of tprimat estimate --memory MODEL --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate(Record):
    """Predicted memory of the configured layout, one entry per framework."""

    not_predicted: str | None = None
    """what the planner has no model of; then nothing else is predicted"""
    memory_bytes: float | None = None
    """predicted memory of the rank with the highest use, bytes"""
    bytes: dict[str, float] | None = None
    """the same by component, bytes"""
    expert_load: float | None = None
    """tokens on the fullest rank over the mean, of a mixture of experts; absent: a dense model"""
    all_ranks_bytes: float | None = None
    """predicted memory of all ranks that share the device, bytes; absent: one rank per device"""
    device_bytes: float | None = None
    """memory of the device, bytes; absent: not known"""
    device_source: str | None = None
    """source of device_bytes"""
    fits: bool | None = None
    """the prediction fits into the device's memory; absent: memory not known"""
    run: str
    """framework, model, platform and strategy"""
