"""The output of tprimat run --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import Estimate, PeakInfo, PublishedStanding, RunProfile
from tprimat.record import Record
from tprimat.views import OutcomeView, SuiteView


@dataclass(frozen=True, kw_only=True)
class RunOutcome(OutcomeView, Record):
    """Outcome of each run."""

    platform: Literal["nvd", "amd", "cpu"]
    """nvd, amd or cpu"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """what trained"""
    installation: str | None = None
    """its label, where the framework has several"""
    model: str
    """key of the model"""
    strategy: str
    """name of the layout"""
    run: int
    """number of the repetition"""
    status: Literal["complete", "failed", "interrupted", "invalid"]
    """how the run ended"""
    resumed: bool
    """the result was there already"""
    reason: str | None = None
    """why it did not complete"""
    failure_kind: Literal[
        "out_of_memory", "host_out_of_memory", "nan_loss", "missing_module", "missing_program", "disk_full",
        "port_in_use", "no_device", "no_access", "wrong_usage", "device_error", "collective_failed", "killed", "hung",
        "time_limit", "ended_by_scheduler", "steps_missing", "wrong_work", "error"
    ] | None = None
    """what made it fail, as a word"""
    result: str
    """result file"""
    log: str
    """log of the run"""
    tokens_per_second: float | None = None
    """steady-state throughput"""
    step_time_seconds: float | None = None
    """median of the steady steps"""
    mfu: float | None = None
    """model FLOPs utilisation, a fraction"""
    peak: PeakInfo | None = None
    """what one device can do: the denominator of mfu"""
    steps: int | None = None
    """steps recorded"""
    figures: dict[str, Estimate]
    """figures of the metrics that are known, with their 95 % intervals"""
    published: PublishedStanding | None = None
    """standing among published runs of the kind; absent: there are none"""
    profile: RunProfile | None = None
    """steps profiled after the measured ones; absent: none"""
    warnings: tuple[str, ...]
    """what to know before trusting the figures"""


@dataclass(frozen=True, kw_only=True)
class ProfileOutcome(Record):
    """Profiled runs."""

    platform: Literal["nvd", "amd", "cpu"]
    """nvd, amd or cpu"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """what trained"""
    installation: str | None = None
    """its label, where the framework has several"""
    model: str
    """key of the model"""
    strategy: str
    """name of the layout"""
    profiler: Literal["nsys", "rocprofv3", "torch", "own"]
    """what recorded"""
    first_step: int
    """that was recorded"""
    last_step: int
    """that was recorded"""
    status: Literal["complete", "failed", "interrupted", "invalid"]
    """how the run ended"""
    resumed: bool
    """the profile was there already"""
    reason: str | None = None
    """why it did not complete"""
    trace: str | None = None
    """file that the profiler left"""
    summary: str | None = None
    """file that says where the time went"""
    log: str
    """log of the run"""
    warnings: tuple[str, ...]
    """what to know before trusting the profile"""


@dataclass(frozen=True, kw_only=True)
class RankedLayout(Record):
    """In the planner's order, fastest first."""

    predicted_rank: int
    """1: the planner's first choice; equal times share a rank"""
    strategy: str
    """name of the layout in results"""
    tensor_model_parallel_size: int
    """TP"""
    pipeline_model_parallel_size: int
    """PP"""
    virtual_pipeline_model_parallel_size: int
    """VP"""
    embedding_and_loss_as_layers: bool
    """they count as layers when the pipeline is split into stages"""
    data_parallel_size: int
    """DP"""
    context_parallel_size: int
    """CP"""
    expert_model_parallel_size: int | None = None
    """EP; absent: a dense model"""
    expert_tensor_parallel_size: int | None = None
    """ETP; absent: a dense model"""
    zero_stage: int
    """ZeRO"""
    micro_batch_size: int
    """MBS, sequences"""
    recompute: Literal["none", "selective", "full"]
    """activation recomputation"""
    predicted_step_time_seconds: float
    """by the planner, before the runs"""
    runs_measured: int
    """runs that completed"""
    measured_step_time_seconds: float | None = None
    """median over runs of the median steady step"""
    spread: float | None = None
    """of the runs: (largest - smallest) / median"""
    measured_over_predicted: float | None = None
    """ratio of the step times"""
    measured_rank: int | None = None
    """1: the fastest; absent: not measured"""
    without_figure: tuple[str, ...]
    """runs that did not complete, and why"""


@dataclass(frozen=True, kw_only=True)
class LayoutRanking(Record):
    """Predicted and measured rankings."""

    platform: Literal["nvd", "amd", "cpu"]
    """nvd, amd or cpu"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """what trained"""
    model: str
    """key of the model"""
    layouts: tuple[RankedLayout, ...]
    """in the planner's order, fastest first"""
    rank_correlation: float | None = None
    """Spearman's, of predicted and measured step times; from three measured layouts on"""
    first_choice_behind: float | None = None
    """measured step time of the planner's first choice over the best, minus 1"""
    judgement: str
    """a sentence"""


@dataclass(frozen=True, kw_only=True)
class RunReport(SuiteView, Record):
    """Outcome of each run."""

    interrupted: bool
    """the suite was stopped before its end"""
    runs: tuple[RunOutcome, ...]
    """outcome of each run"""
    unavailable: tuple[str, ...]
    """frameworks that cannot run this or are missing, as sentences"""
    skipped: tuple[str, ...] | None = None
    """frameworks that are not installed, with --framework all; absent: none"""
    profiles: tuple[ProfileOutcome, ...] | None = None
    """profiled runs; absent: none"""
    plan_rankings: tuple[LayoutRanking, ...] | None = None
    """predicted and measured rankings; absent: without --from-plan"""
