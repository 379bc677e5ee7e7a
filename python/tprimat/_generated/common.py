"""What several outputs of tprimat have in common."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat.record import Record
from tprimat.views import EstimateView


@dataclass(frozen=True, kw_only=True)
class ConventionLine(Record):
    """TFLOP/s and MFU by each convention."""

    convention: Literal[
        "full", "causal", "6n", "6n_matmul", "experts_dense", "6n_total", "recompute_selective", "recompute_full"
    ]
    """name"""
    meaning: str
    """what it counts"""
    flops_per_token: float
    """forward and backward"""
    tflops_per_gpu: float
    """at the claim's rate"""
    mfu: float
    """the same over the dense peak"""
    counts_model_alone: bool
    """false of conventions that count more than the model's own FLOPs"""


@dataclass(frozen=True, kw_only=True)
class ExpectedRate(Record):
    """By planner and published runs together, tokens/s per GPU."""

    middle: float
    """tokens/s per GPU"""
    low: float
    """80 % of such trainings lie between this"""
    high: float
    """and this"""
    basis: str
    """what it rests on"""


@dataclass(frozen=True, kw_only=True)
class PublishedStanding(Record):
    """Standing among published runs of the kind."""

    mfu: float
    """of the run: causal model FLOPs over the dense peak"""
    best_mfu: float
    """best of the published runs of its kind, counted alike"""
    share: float
    """the run's MFU / the best"""
    rows: int
    """published runs of the same GPU, precision and kind, of like size"""
    best_id: str
    """the best one's row: tprimat published show ID"""


@dataclass(frozen=True, kw_only=True)
class NearRun(Record):
    """Published runs with the most similar settings, nearest first."""

    id: str
    """of the row: tprimat published show ID"""
    model: str
    """as published"""
    gpu: str
    """part"""
    source: str
    """of the row"""
    tokens_per_second_per_gpu: float
    """published"""
    mfu: float
    """causal model FLOPs over the dense peak"""
    differences: tuple[str, ...]
    """of its settings from the claim's"""


@dataclass(frozen=True, kw_only=True)
class Suspicion(Record):
    """Mistakes that would explain the figure, most likely first."""

    mistake: Literal[
        "sparse_peak", "recompute_counted", "other_convention", "experts_dense", "aggregate_for_gpu", "node_for_gpu",
        "double_length", "fp8_as_bf16", "adapters_as_full", "balanced_routing", "fraction_as_percent", "divided_twice",
        "in_thousands", "unexplained"
    ]
    """name of the mistake: docs/claim.md"""
    sentence: str
    """what it means here"""
    factor: float
    """stated figure / figure without the mistake"""
    tokens_per_second_per_gpu: float
    """without the mistake"""
    mfu: float
    """without the mistake: causal model FLOPs over the dense peak"""
    likelihood: float
    """weight among the explanations and a right claim, 0 to 1"""
    from_contradiction: bool
    """two figures of the claim contradict each other by this factor"""


@dataclass(frozen=True, kw_only=True)
class ClaimReport(Record):
    """Each stated training rate of the tables, judged."""

    line: int | None = None
    """line in the table, from 1; absent: a single claim"""
    model: str
    """as stated"""
    gpu: str
    """part"""
    framework: str
    """as stated; empty: not stated"""
    gpus: int
    """number of GPUs; 0: not stated"""
    sequence_length: int
    """tokens"""
    precision: Literal["bf16", "fp16", "fp8", "fp4", "fp32"]
    """of the matrix products"""
    missing: str | None = None
    """why the claim is not judged"""
    verdict: Literal["typical", "record", "suspicious", "impossible"] | None = None
    """typical, record, suspicious or impossible"""
    reason: str
    """of the verdict"""
    slow: bool
    """below the expected range"""
    tokens_per_second_per_gpu: float
    """that the claim means"""
    mfu: float
    """causal model FLOPs over the dense peak"""
    from_: str = field(metadata={"key": "from"})
    """stated figure that gives the rate"""
    limit_mfu: float
    """highest MFU that the GPU's matrix products allow"""
    limit_basis: str
    """what the limit rests on"""
    conventions: tuple[ConventionLine, ...]
    """TFLOP/s and MFU by each convention"""
    expected: ExpectedRate | None = None
    """by planner and published runs together, tokens/s per GPU"""
    planned: ExpectedRate | None = None
    """by the planner alone"""
    layout: str | None = None
    """layout behind the planner's figure"""
    not_predicted: str | None = None
    """why the planner gives no figure"""
    standing: PublishedStanding | None = None
    """against published runs of its kind"""
    rank: int | None = None
    """among these; 1: faster than all"""
    nearest: tuple[NearRun, ...]
    """published runs with the most similar settings, nearest first"""
    suspicions: tuple[Suspicion, ...]
    """mistakes that would explain the figure, most likely first"""
    notes: tuple[str, ...]
    """what else to know"""


@dataclass(frozen=True, kw_only=True)
class Estimate(EstimateView, Record):
    """Figures of the metrics that are known, with their 95 % intervals."""

    value: float | None
    """the figure"""
    ci95_low: float | None = None
    """lower end of the 95 % confidence interval"""
    ci95_high: float | None = None
    """upper end of the 95 % confidence interval"""


@dataclass(frozen=True, kw_only=True)
class SkippedFile(Record):
    """Files that are no results."""

    path: str
    """file that is left out"""
    reason: str
    """reason for leaving it out"""


@dataclass(frozen=True, kw_only=True)
class Gate(Record):
    """--fail-if conditions on the newest point of each series."""

    gate: str
    """condition as given"""
    metric: str
    """key of the metric"""
    operator: Literal["<", "<=", ">", ">="]
    """a change in this relation to the threshold fails"""
    threshold: float
    """fraction of the baseline if relative, else in the metric's unit"""
    relative: bool
    """the change is a fraction of the baseline"""
    unit: str
    """unit of the threshold and the change; empty: a fraction"""
    model: str
    """key of the model"""
    baseline: str
    """label of the baseline"""
    subject: str
    """label of the participant that is judged"""
    before: Estimate | None
    """metric of the baseline, in its unit; null: not known"""
    after: Estimate | None
    """metric of the subject, in its unit; null: not known"""
    change: Estimate | None
    """change in the terms of the gate; null: not known"""
    outcome: Literal["passed", "failed", "inconclusive", "not comparable", "invalid"]
    """result of the gate"""
    reason: str
    """reason for this outcome"""
    sentence: str
    """gate, outcome and figures as a sentence"""


@dataclass(frozen=True, kw_only=True)
class PeakInfo(Record):
    """What one device can do: the denominator of mfu."""

    id: str
    """which peak"""
    flops_per_second: float | None
    """dense peak of one device, FLOP/s"""
    source: str
    """where the figure comes from"""
    memory_bytes_per_second: float | None = None
    """main memory's bandwidth for one device (STREAM's triad), measured with the peak, B/s"""
    memory_source: str | None = None
    """how it was measured"""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Record):
    """Requested settings of the training."""

    max_steps: int | None = None
    """requested steps"""
    global_batch_size: int | None = None
    """sequences per step"""
    micro_batch_size: int | None = None
    """sequences per forward pass and rank"""
    sequence_length: int | None = None
    """tokens per sequence"""
    num_gpus: int | None = None
    """devices of the run"""
    tokens_per_step: int | None = None
    """tokens of a step over all ranks, where batch and sequence length are not both known"""
    parallel_strategy: str | None = None
    """name of the layout"""
    learning_rate: float | None = None
    """requested peak learning rate"""
    min_learning_rate: float | None = None
    """requested final learning rate"""
    weight_decay: float | None = None
    """decoupled weight decay"""
    clip_grad_norm: float | None = None
    """gradient norm is clipped to this"""
    warmup_steps: int | None = None
    """steps of learning-rate warm-up"""
    seed: int | None = None
    """seed of weights and data"""
    optimizer: str | None = None
    """optimizer"""
    schedule: str | None = None
    """learning-rate schedule"""
    recompute: str | None = None
    """activations computed again: none, selective, full"""
    loaded_checkpoint: str | None = None
    """folder of the checkpoint that the training continued; absent: it began anew"""
    loaded_step: int | None = None
    """step of that checkpoint"""


@dataclass(frozen=True, kw_only=True)
class ParallelismConfig(Record):
    """Layout over devices."""

    strategy_name: str | None = None
    """name of the layout"""
    tensor_model_parallel_size: int | None = None
    """TP"""
    pipeline_model_parallel_size: int | None = None
    """PP"""
    data_parallel_size: int | None = None
    """DP"""
    context_parallel_size: int | None = None
    """CP"""
    gradient_accumulation_steps: int | None = None
    """GA"""
    virtual_pipeline_model_parallel_size: int | None = None
    """VP: pipeline stages of a rank"""
    expert_model_parallel_size: int | None = None
    """EP"""
    expert_tensor_parallel_size: int | None = None
    """ETP"""
    zero_stage: int | None = None
    """ZeRO: the data-parallel ranks shard 1 optimizer states, 2 also gradients, 3 also weights"""
    embedding_and_loss_as_layers: bool | None = None
    """the embedding and the loss count as one layer each when the pipeline splits the model"""
    sequence_parallel: bool | None = None
    """SP: norms split over the TP group"""


@dataclass(frozen=True, kw_only=True)
class MachineFinding(Record):
    """Warnings and worse, the worst first."""

    severity: Literal["ok", "note", "warning", "missing", "broken"]
    """ok, note, warning, missing or broken"""
    area: str
    """what it is about"""
    what: str
    """what was found"""
    remedy: str
    """what to do about it"""
    code: str | None = None
    """the kind of the finding, the same whatever its figures; of a warning or worse"""


@dataclass(frozen=True, kw_only=True)
class AssumedFact(Record):
    """Facts that the log does not state: from a configuration, or from the log's name."""

    key: str
    """fact, by its key in this file"""
    value: str
    """its value"""
    from_: str = field(metadata={"key": "from"})
    """configuration, variable or name that states it"""
    setting: str | None = None
    """key of the configuration"""


@dataclass(frozen=True, kw_only=True)
class PlannedRow(Record):
    """What the planner predicts."""

    line: int
    """line in the file, from 1"""
    model: str
    """as printed"""
    kind: str
    """dense, sparse or adapters"""
    gpu: str
    """GPU in the planner's list"""
    vendor: str
    """of the GPU"""
    program: str
    """framework family"""
    precision: str
    """of the matrix products"""
    gpus: int
    """number of GPUs"""
    parameters: float
    """model parameters"""
    layout: str
    """number of GPUs and parallel layout"""
    predicted: float | None = None
    """tokens/s per GPU"""
    published: float | None = None
    """tokens/s per GPU"""
    error: float | None = None
    """predicted step time over published step time, minus 1"""
    low: float | None = None
    """lower end of the 80 % interval, as a factor of the predicted step time"""
    high: float | None = None
    """its upper end"""
    basis: str
    """measured rows behind the interval"""
    memory_error: float | None = None
    """predicted bytes over published bytes, minus 1"""
    activation_error: float | None = None
    """the same for activations alone"""
    minutes: float | None = None
    """predicted time to the task's target quality, minutes"""
    published_minutes: float | None = None
    """time to train of the submission, minutes"""
    minutes_error: float | None = None
    """predicted over published time to train, minus 1"""
    fits: bool | None = None
    """the layout is predicted to fit into memory"""
    ran: bool | None = None
    """the published run fit into memory"""
    settings: tuple[str, ...]
    """settings beside layout and precision"""
    assumptions: tuple[str, ...]
    """assumed inputs, missing from the row"""
    weak: str | None = None
    """reason to leave the row out of fits"""
    missing: str | None = None
    """reason for a missing prediction"""


@dataclass(frozen=True, kw_only=True)
class Measured(Record):
    """The measurement."""

    fastest_seconds: float
    """one repetition in the fastest window"""
    median_seconds: float
    """one repetition in the median window"""
    relative_noise: float
    """1.4826 x median absolute deviation / median of the windows"""
    windows: int
    """windows measured"""
    ended_by: Literal["noise", "time"]
    """noise: the windows agreed; time: the time limit was reached before"""
    cpu_share: float
    """share of the threads' time that the system gave to this process"""
    slowed: bool
    """the second half was over 5 % slower than the first: throttled or disturbed"""


@dataclass(frozen=True, kw_only=True)
class GemmRate(Record):
    """Rate of each shape."""

    name: str
    """which product"""
    pass_: Literal["forward", "dgrad", "wgrad"] = field(metadata={"key": "pass"})
    """forward, or the gradient of the input (dgrad) or of the weights (wgrad)"""
    m: int
    """rows of the left matrix and the result"""
    n: int
    """columns of the right matrix and the result"""
    k: int
    """columns of the left matrix, rows of the right one"""
    flops_per_second: float
    """2·m·n·k per product, in the fastest window"""
    measured: Measured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class GemmPeak(Record):
    """Rate of each product."""

    precision: Literal["fp32", "bf16", "fp16", "int8"]
    """number format of the inputs"""
    flops_per_second: float
    """of the fastest shape"""
    cpu_share: float
    """share of the threads' time that the system gave; below 0.95 other work disturbed"""
    how: str
    """rule of the measurement"""
    shapes: tuple[GemmRate, ...]
    """rate of each shape"""


@dataclass(frozen=True, kw_only=True)
class RunProfile(Record):
    """Steps profiled after the measured ones."""

    profiler: Literal["nsys", "rocprofv3", "torch", "own"]
    """what recorded: torch, own, nsys or rocprofv3"""
    first_step: int
    """first profiled step; all of them follow the measured steps"""
    last_step: int
    """last profiled step"""
    files: tuple[str, ...]
    """traces, one per rank in the ranks' order, relative to the folder of this file"""
    step_times: tuple[float | None, ...]
    """duration of each profiled step, s; they are not in the other figures"""
    step_time_seconds: float | None = None
    """mean of these, s"""
    cost: float | None = None
    """what profiling costs a step: step_time_seconds / statistics.mean - 1"""


@dataclass(frozen=True, kw_only=True)
class WhatIfAnswer(Record):
    """One per change, each by itself."""

    change: str
    """the changed durations, as asked for"""
    step_seconds: float
    """what the step would take, s"""
    saved_seconds: float
    """measured step - this one, s"""
    note: str
    """what the change could not reach; empty: nothing"""


@dataclass(frozen=True, kw_only=True)
class WhatIfReport(Record):
    """One run's step with other durations, from a replay."""

    measured_seconds: float
    """mean step as recorded, s"""
    replayed_seconds: float
    """replay of it with unchanged durations, s"""
    replay_error: float
    """replayed / measured - 1"""
    answers: tuple[WhatIfAnswer, ...]
    """one per change, each by itself"""
