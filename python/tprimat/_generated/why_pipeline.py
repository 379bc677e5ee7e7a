"""The output of tprimat why FOLDER --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat._generated.common import WhatIfReport
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class PipelineWorker(Record):
    """By data-parallel rank and stage."""

    dp_rank: int
    """data-parallel rank"""
    stage: int
    """pipeline stage"""
    forward_seconds: float
    """forward computations, s per step"""
    backward_seconds: float
    """backward computations, s per step"""
    bubble: float
    """1 - computations / step"""


@dataclass(frozen=True, kw_only=True)
class StragglerPart(Record):
    """Slowdown that each stage causes alone, largest first."""

    name: str
    """stage, replica or operation"""
    slowdown: float
    """step with its durations as measured and all others even / ideal"""


@dataclass(frozen=True, kw_only=True)
class StragglerWorker(Record):
    """3 % of the workers, at least one."""

    dp_rank: int
    """data-parallel rank"""
    stage: int
    """pipeline stage"""
    slowdown: float
    """the smaller of its replica's and its stage's slowdown"""


@dataclass(frozen=True, kw_only=True)
class StragglerReport(Record):
    """Slowdown by unequal durations, from a replay."""

    steps: int
    """steps replayed"""
    workers: int
    """stages of all replicas"""
    measured_seconds: float
    """mean step as recorded, s"""
    no_delay_seconds: float
    """replay of it without delays of the host, s"""
    ideal_seconds: float
    """replay with even durations, s"""
    launch_slowdown: float
    """measured / no_delay"""
    slowdown: float
    """no_delay / ideal: what stragglers cost"""
    stages: tuple[StragglerPart, ...]
    """slowdown that each stage causes alone, largest first"""
    replicas: tuple[StragglerPart, ...]
    """slowdown that each data-parallel rank causes alone"""
    operations: tuple[StragglerPart, ...]
    """slowdown that each operation causes alone"""
    slowest: tuple[StragglerWorker, ...]
    """3 % of the workers, at least one"""
    last_stage_share: float | None = None
    """share of the excess that goes with an even last stage"""
    slowest_workers_share: float | None = None
    """share that goes with even slowest workers"""
    without_last_stage_seconds: float
    """step with an even last stage, s"""
    without_slowest_workers_seconds: float
    """step with even slowest workers, s"""


@dataclass(frozen=True, kw_only=True)
class PipelineDocument(Record):
    """A pipeline's bubble, and what its stragglers cost."""

    steps: int
    """steps recorded, the warm-up left out"""
    stages: int
    """pipeline stages"""
    replicas: int
    """data-parallel ranks"""
    micro_batches: int
    """micro-batches per step"""
    step_seconds: float
    """mean step, s"""
    bubble: float
    """share of the step in which a worker computes nothing, mean over the workers"""
    balanced_bubble: float
    """the same with equally fast workers and no delays of the host"""
    workers: tuple[PipelineWorker, ...]
    """by data-parallel rank and stage"""
    stragglers: StragglerReport
    """slowdown by unequal durations, from a replay"""
    findings: tuple[str, ...]
    """what costs most, with remedies"""
    notes: tuple[str, ...]
    """what to know before trusting the figures"""
    what_if: WhatIfReport | None = None
    """the step with changed durations; absent: not requested"""
