"""The output of tprimat plan MODEL --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record
from tprimat.views import LayoutView, PlanReportView, PlanView


@dataclass(frozen=True, kw_only=True)
class PredictionInterval(Record):
    """80 % interval of the step times, relative to the predicted ones."""

    low: float
    """80 % of measured step times are above this multiple of the predicted one"""
    high: float
    """and below this one"""
    rows: int
    """published measurements behind it"""
    basis: str
    """what they measured"""


@dataclass(frozen=True, kw_only=True)
class PlanLine(LayoutView, Record):
    """Layouts, fastest first."""

    tensor_model_parallel_size: int
    """TP"""
    pipeline_model_parallel_size: int
    """PP"""
    virtual_pipeline_size: int
    """VP"""
    embedding_and_loss_as_layers: bool
    """they count as layers when the pipeline is split into stages"""
    zero_bubble: bool
    """weight gradients fill the pipeline bubble (ZB-H1)"""
    pipeline_layout: str | None = None
    """layers of each chunk in Megatron-LM's notation; absent: the framework's rule"""
    context_parallel_size: int
    """CP"""
    expert_model_parallel_size: int | None = None
    """EP, of a mixture of experts"""
    expert_tensor_parallel_size: int | None = None
    """ETP, of a mixture of experts"""
    data_parallel_size: int
    """DP"""
    micro_batch_size: int
    """MBS, sequences"""
    gradient_accumulation_steps: int
    """GA"""
    sharding: Literal["none", "zero1", "zero2", "zero3"]
    """state sharded over data-parallel ranks"""
    recompute: Literal["none", "selective", "full"]
    """activation recomputation"""
    recompute_modules: tuple[Literal[
        "core_attn", "layernorm", "moe_act", "mla_up_proj", "mlp", "moe", "shared_experts"
    ], ...] | None = None
    """parts of a layer that selective recomputation repeats"""
    on_frontier: bool
    """on the Pareto frontier: no layout beats it in every figure compared"""
    step_seconds: float
    """predicted"""
    tokens_per_second_per_gpu: float
    """predicted"""
    mfu: float
    """causal model FLOPs, over the dense peak of the precision"""
    memory_bytes: float
    """predicted, on the GPU with the highest use"""
    seconds: dict[str, float]
    """of a step, by component"""
    bytes: dict[str, float]
    """on that GPU, by component"""


@dataclass(frozen=True, kw_only=True)
class Goodput(Record):
    """Share of time left by failures and checkpoints."""

    failure_seconds: float
    """mean time between failures of all GPUs"""
    checkpoint_seconds: float
    """time to write a checkpoint"""
    interval_seconds: float
    """optimal time between checkpoints (Daly 2006)"""
    young_interval_seconds: float
    """first-order optimum (Young 1974)"""
    restart_seconds: float
    """restart after a failure, without reading the checkpoint"""
    failure_gpu_hours: float
    """GPU-hours between failures"""
    share: float
    """share of the time spent training"""


@dataclass(frozen=True, kw_only=True)
class Straggling(Record):
    """Cost of the slowest node, included in the step time."""

    nodes: float
    """nodes of eight GPUs"""
    share: float
    """relative step time added by waiting for the slowest node"""
    expected_maximum: float
    """expected maximum of that many standard normal draws"""
    node_noise: float
    """relative standard deviation of one node's step time"""


@dataclass(frozen=True, kw_only=True)
class TrainingOutlook(Record):
    """Training all tokens in the fastest layout."""

    tokens: float
    """tokens to train"""
    tokens_per_second: float
    """of all GPUs, while training"""
    goodput: Goodput
    """share of time left by failures and checkpoints"""
    straggling: Straggling
    """cost of the slowest node, included in the step time"""
    days: float | None = None
    """tokens / (tokens/s x goodput); absent if the training never finishes"""
    usd_per_gpu_hour: float | None = None
    """price of one GPU-hour"""
    usd: float | None = None
    """price x GPUs x hours"""
    tdp_watts: float | None = None
    """thermal design power of one GPU"""
    megawatt_hours: float | None = None
    """upper bound: the GPUs at their thermal design power"""


@dataclass(frozen=True, kw_only=True)
class RoutingEffect(Record):
    """Learned and balanced routing of experts, in the fastest layout."""

    planned: Literal["learned", "balanced"]
    """routing of all other figures"""
    load: float
    """tokens on the fullest rank over the mean, with learned routing"""
    learned_step_seconds: float
    """predicted, where the router chooses"""
    balanced_step_seconds: float
    """predicted with forced balance"""


@dataclass(frozen=True, kw_only=True)
class PlanTuning(Record):
    """Settings beside the layout, of a mixture of experts."""

    graphs: Literal["none", "parts", "whole"]
    """CUDA graphs: none, parts of layers or whole steps"""
    expert_overlap: bool
    """exchanges of tokens hide behind another micro-batch, in the fastest layout"""
    fp8_attention: bool
    """the attention core is in FP8"""
    moment_bytes: float
    """of each of Adam's moments"""
    gradient_bytes: float
    """of a summed gradient"""
    tuned: bool
    """set as published recipes set them"""


@dataclass(frozen=True, kw_only=True)
class PublishedBest(Record):
    """Fastest published run of this model, GPU, number and precision."""

    id: str
    """for tprimat published show"""
    tokens_per_second_per_gpu: float
    """printed or derived"""
    sequence_length: int
    """tokens"""
    global_batch_size: int
    """sequences per step"""
    routing: Literal["learned", "balanced"] | None = None
    """of a mixture of experts; absent: not known"""


@dataclass(frozen=True, kw_only=True)
class PlanReport(PlanReportView, Record):
    """One per GPU model and number of GPUs."""

    model: str
    """name of the model"""
    gpu: str
    """part"""
    framework: str
    """framework family"""
    gpus: int
    """number of GPUs"""
    sequence_length: int
    """tokens"""
    global_batch_size: int
    """sequences per step"""
    precision: Literal["bf16", "fp16", "fp8", "fp4", "fp32"]
    """of the matrix products"""
    legal: int
    """legal layouts for model, batch and GPUs"""
    fitting: int
    """legal layouts that fit into memory"""
    memory_bytes: float
    """of one GPU"""
    memory_source: str
    """what states it, such as a configuration key; empty: the catalogue"""
    calibrated: bool
    """fitted to measurements of this architecture"""
    interval: PredictionInterval | None = None
    """80 % interval of the step times, relative to the predicted ones"""
    ranked: tuple[PlanLine, ...]
    """layouts, fastest first"""
    frontier: tuple[PlanLine, ...]
    """layouts on the Pareto frontier of step time and memory"""
    smallest: PlanLine | None = None
    """layout with the lowest memory use, if none fits"""
    training: TrainingOutlook | None = None
    """training all tokens in the fastest layout"""
    routing: RoutingEffect | None = None
    """learned and balanced routing of experts, in the fastest layout"""
    tuning: PlanTuning | None = None
    """settings beside the layout, of a mixture of experts"""
    published_best: PublishedBest | None = None
    """fastest published run of this model, GPU, number and precision"""
    reasons: tuple[str, ...]
    """the fastest layout against its neighbours, in sentences"""
    efficiency: float | None = None
    """tokens/s/GPU relative to the smallest number of GPUs"""
    batch_multiple: int | None = None
    """batches divisible by it have legal layouts"""


@dataclass(frozen=True, kw_only=True)
class FrontierPlan(Record):
    """Layouts that no other beats in every such figure."""

    gpu: str
    """part"""
    gpus: int
    """number of GPUs"""
    layout: PlanLine
    """which"""
    days: float
    """time to train all tokens"""
    usd: float | None = None
    """for that"""
    megawatt_hours: float | None = None
    """energy to train all tokens, upper bound"""


@dataclass(frozen=True, kw_only=True)
class PlanAnswer(Record):
    """To --target-days and --budget."""

    sentence: str
    """question and answer"""
    found: bool
    """a plan meets the target"""
    gpu: str
    """of that plan; empty if there is none"""
    gpus: int | None = None
    """of that plan"""
    days: float | None = None
    """of that plan"""
    usd: float | None = None
    """of that plan"""


@dataclass(frozen=True, kw_only=True)
class MachineFigure(Record):
    """Figures of the machine that a probe measured."""

    figure: str
    """what it is of"""
    unit: str
    """empty: a number"""
    used: float
    """by the plan"""
    measured: float | None = None
    """by the probe"""
    catalogue: float | None = None
    """what a plan for the part as catalogued uses"""
    source: str
    """where the used figure comes from"""


@dataclass(frozen=True, kw_only=True)
class PlanComparison(PlanView, Record):
    """Layouts of a model on one or several GPU types and numbers of GPUs, with predicted step time, memory, training
    time and price.
    """

    plans: tuple[PlanReport, ...]
    """one per GPU model and number of GPUs"""
    tokens: float
    """to train"""
    scaling: Literal["strong", "weak"] | None = None
    """strong: constant batch; weak: the batch grows with the GPUs"""
    frontier_of: tuple[str, ...]
    """figures that the frontier compares"""
    frontier: tuple[FrontierPlan, ...]
    """layouts that no other beats in every such figure"""
    answers: tuple[PlanAnswer, ...]
    """to --target-days and --budget"""
    assumptions: tuple[str, ...]
    """assumptions for values not given"""
    machine: tuple[MachineFigure, ...]
    """figures of the machine that a probe measured"""
    machine_notes: tuple[str, ...]
    """what the probe leaves open"""
