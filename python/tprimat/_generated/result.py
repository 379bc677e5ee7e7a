"""The output of TensorPrimat result."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import AssumedFact, Estimate, MachineFinding, ParallelismConfig, PeakInfo, RunProfile, TrainingConfig
from tprimat.record import Record
from tprimat.views import ResultView


@dataclass(frozen=True, kw_only=True)
class RopeScaling(Record):
    """Scaling of the rotary frequencies."""

    type: Literal["linear", "llama3", "yarn"]
    """scaling rule of the frequencies"""
    factor: float | None
    """context extension factor"""
    low_freq_factor: float | None
    """llama3: rotations below which a frequency is divided by factor"""
    high_freq_factor: float | None
    """llama3: rotations above which a frequency is kept"""
    original_max_position_embeddings: int
    """original context length, in tokens"""
    beta_fast: float | None
    """yarn: rotations above which a frequency is kept"""
    beta_slow: float | None
    """yarn: rotations below which a frequency is divided by factor"""


@dataclass(frozen=True, kw_only=True)
class LatentAttention(Record):
    """Multi-head latent attention (MLA)."""

    query_rank: int
    """rank of the low-rank projection of queries; 0: none"""
    key_value_rank: int
    """rank of the low-rank projection of keys and values"""
    rope_head_dim: int
    """rotary part of a head"""
    value_head_dim: int
    """width of a head's values"""


@dataclass(frozen=True, kw_only=True)
class MambaMixers(Record):
    """Mamba-2 mixers of a hybrid."""

    layers: int
    """layers that are Mamba-2 mixers"""
    attention_layers: int
    """layers that are attention; the rest are MLPs"""
    inner_width: int
    """heads x width of a head"""
    heads: int
    """heads of a mixer"""
    groups: int
    """groups of heads that share B and C"""
    state: int
    """values of the state per channel"""
    chunk: int
    """tokens that the scan takes together; 0: not known"""
    convolution: int
    """width of the convolution"""


@dataclass(frozen=True, kw_only=True)
class Experts(Record):
    """Mixture of experts."""

    count: int
    """routed experts of a layer"""
    per_token: int
    """experts that each token is routed to"""
    ffn_hidden_size: int
    """inner width of a routed expert"""
    shared_ffn_hidden_size: int
    """total inner width of the shared experts, which every token passes; 0: none"""
    shared_gate: bool
    """the shared experts' output is scaled by a learned gate"""
    first_dense_layers: int
    """first layers with a dense MLP instead of experts"""
    layer_interval: int
    """of the layers after the first dense ones, every n-th has experts"""
    latent_size: int | None = None
    """width of the routed experts' input and output; absent: hidden_size"""
    router_score: Literal["softmax", "sigmoid"]
    """function that turns the router's logits into scores"""
    normalize_weights: bool
    """the weights of the chosen experts add up to 1"""
    weight_scale: float | None
    """factor that scales the chosen experts' weights"""
    groups: int
    """groups of experts"""
    groups_per_token: int
    """groups from which a token's experts are chosen"""
    balancing: Literal["none", "aux_loss", "sequence_aux_loss", "bias"]
    """method that balances the experts' load"""
    aux_loss_coefficient: float | None
    """coefficient of the balancing loss"""
    z_loss_coefficient: float | None
    """coefficient of the router z-loss"""
    capacity_factor: float | None = None
    """an expert takes at most this multiple of the mean number of tokens and drops the rest; absent: it drops none"""


@dataclass(frozen=True, kw_only=True)
class ModelSpec(Record):
    """Shape of the model."""

    name: str
    """key of the model in the config"""
    full_name: str
    """name for people"""
    num_layers: int
    """Transformer blocks"""
    hidden_size: int
    """width of the residual stream"""
    ffn_hidden_size: int
    """inner width of the MLP"""
    num_attention_heads: int
    """query heads"""
    num_key_value_heads: int
    """key and value heads (grouped-query attention)"""
    head_dim: int
    """width of one head"""
    vocab_size: int
    """tokens in the vocabulary, without padding"""
    max_position_embeddings: int
    """longest sequence the model is meant for, in tokens"""
    tied_embeddings: bool
    """the head shares the embedding's weights"""
    qkv_bias: bool
    """bias on the query, key and value products"""
    linear_bias: bool
    """bias on every linear layer"""
    qk_norm: bool
    """RMSNorm per head on queries and keys"""
    norm: Literal["rms", "layer"]
    """kind of normalisation"""
    mlp: Literal["swiglu", "gelu"]
    """kind of MLP"""
    position: Literal["rope", "learned"]
    """kind of position encoding"""
    rope_theta: float | None
    """base of the rotary frequencies"""
    rope_scaling: RopeScaling | None = None
    """scaling of the rotary frequencies"""
    norm_eps: float | None
    """epsilon inside the norm's square root"""
    sliding_window: int | None = None
    """keys each query sees, in tokens"""
    full_attention_layers: int | None = None
    """layers that ignore the sliding window"""
    attention_sinks: bool | None = None
    """each head has a learned sink logit in its softmax"""
    latent_attention: LatentAttention | None = None
    """multi-head latent attention (MLA)"""
    mamba: MambaMixers | None = None
    """Mamba-2 mixers of a hybrid"""
    experts: Experts | None = None
    """mixture of experts; absent: a dense model"""
    prediction_layers: int | None = None
    """layers that predict further tokens (MTP)"""
    shared_prediction: bool | None = None
    """these layers share the weights of one block"""


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Record):
    """The model."""

    name: str
    """key of the model"""
    full_name: str | None = None
    """name for people"""
    num_parameters: int | None = None
    """exact parameter count"""
    trainable_parameters: int | None = None
    """parameters that the optimizer updates (adapters, or those not frozen); absent: all"""
    shape: ModelSpec | None = None
    """shape of the model"""


@dataclass(frozen=True, kw_only=True)
class DeviceInfo(Record):
    """The device."""

    device_name: str
    """name as the driver gives it"""
    device_count: int | None = None
    """devices of the run"""
    total_memory_gb: float | None = None
    """memory of one device, GB"""
    gpu_cores: int | None = None
    """CUDA cores (NVIDIA) or stream processors (AMD) of one device"""
    software_stack: str | None = None
    """cuda, rocm or cpu"""
    software_version: str | None = None
    """version of the stack"""
    pytorch_version: str | None = None
    """version of PyTorch where it ran"""
    compute_units: int | None = None
    """SMs (NVIDIA) or compute units (AMD) of one device, as its driver reports them"""


@dataclass(frozen=True, kw_only=True)
class PerformanceMetrics(Record):
    """Speed."""

    total_steps: int
    """steps measured, warm-up included"""
    total_time_seconds: float | None
    """sum of all step times, warm-up included, s"""
    avg_step_time_seconds: float | None = None
    """mean of the steady steps, s"""
    min_step_time_seconds: float | None = None
    """fastest steady step, s"""
    max_step_time_seconds: float | None = None
    """slowest steady step, s"""
    steps_per_second: float | None = None
    """steady steps / their time"""
    tokens_per_second: float | None = None
    """tokens of the steady steps / their time"""
    tokens_per_second_per_gpu: float | None = None
    """the same / devices of the run"""


@dataclass(frozen=True, kw_only=True)
class MemoryMetrics(Record):
    """Memory."""

    avg_memory_allocated_gb: float | None = None
    """mean memory that the trainer allocated, GB"""
    peak_memory_allocated_gb: float | None = None
    """peak memory that the trainer allocated, GB"""
    avg_memory_reserved_gb: float | None = None
    """mean memory that its allocator held, GB"""
    peak_memory_reserved_gb: float | None = None
    """peak memory that its allocator held, GB"""
    peak_device_used_gb: float | None = None
    """peak memory that the device or process used, as reported by the system, GB"""
    measurement_method: str | None = None
    """who measured"""


@dataclass(frozen=True, kw_only=True)
class Warmup(Record):
    """Steps left out of the steady state."""

    steps_excluded: int
    """steps left out at the start"""
    method: Literal["", "change_point", "first_step", "fixed", "other"]
    """how the end of the warm-up was found"""
    reason: str
    """as a sentence"""
    steady: bool
    """false when the series never settles"""


@dataclass(frozen=True, kw_only=True)
class StepStatistics(Record):
    """Of the steady step times."""

    count: int
    """steady steps"""
    median: float | None
    """s"""
    mean: float | None
    """s"""
    stddev: float | None
    """s"""
    p5: float | None
    """5th percentile, s"""
    p95: float | None
    """95th percentile, s"""
    cv: float | None
    """stddev / mean"""
    ci95_low: float | None = None
    """lower end of the 95 % interval of the mean, s"""
    ci95_high: float | None = None
    """upper end, s"""
    interval_method: str | None = None
    """how this interval and those of the derived figures were made: docs/method.md"""
    outliers: tuple[int, ...]
    """steps labelled as outliers"""


@dataclass(frozen=True, kw_only=True)
class Derived(Record):
    """Figures computed from the above by named formulas."""

    flops_per_token: dict[str, float | None]
    """model FLOPs of forward and backward, by formula"""
    headline_formula: str
    """formula of mfu and tflops_per_gpu"""
    peak: PeakInfo | None = None
    """denominator of MFU"""
    tokens_per_second: Estimate | None = None
    """tokens/s of the run"""
    tokens_per_second_per_gpu: Estimate | None = None
    """tokens/s per device"""
    tflops_per_gpu: Estimate | None = None
    """model TFLOP/s per device"""
    mfu: Estimate | None = None
    """model FLOP/s / (devices x dense peak), a fraction"""
    mfu_by_formula: dict[str, float | None]
    """the same for every formula"""
    joules_per_token: Estimate | None = None
    """energy per token, J"""
    usd_per_1e12_tokens: Estimate | None = None
    """cost of 1e12 tokens, USD"""
    usd_per_hour: float | None = None
    """price of all devices of the run, USD per hour"""


@dataclass(frozen=True, kw_only=True)
class ExpertFigures(Record):
    """Routing of a mixture of experts."""

    routing: Literal["learned", "balanced"] | None = None
    """choice of the experts: learned by the router, or balanced (forced balance); absent: unknown"""
    dispatcher: Literal["allgather", "alltoall", "deepep", "hybridep"] | None = None
    """how tokens reached the ranks of their experts"""
    load: float | None = None
    """tokens of the fullest expert / mean of the experts, over the layers and steady steps"""
    dropped_share: float | None = None
    """share of the token-expert assignments dropped for lack of capacity"""
    aux_loss: float | None = None
    """router's balancing loss, coefficient included"""
    z_loss: float | None = None
    """router z-loss, coefficient included"""
    load_values: tuple[float | None, ...] | None = None
    """load of each step"""
    dropped_values: tuple[float | None, ...] | None = None
    """dropped share of each step"""
    aux_loss_values: tuple[float | None, ...] | None = None
    """balancing loss of each step"""
    z_loss_values: tuple[float | None, ...] | None = None
    """router z-loss of each step"""


@dataclass(frozen=True, kw_only=True)
class TimeToTrain(Record):
    """Time to a target quality."""

    benchmark: str | None = None
    """name of the benchmark, such as llama2_70b_lora"""
    division: str | None = None
    """closed or open: the rules that the training follows"""
    status: str | None = None
    """success if the target was reached; aborted; absent: the log ends before the stop"""
    seconds: float | None = None
    """from run_start to run_stop, evaluations included, s"""
    samples: int | None = None
    """samples trained on from run_start to run_stop"""
    samples_per_second: float | None = None
    """these samples / time between block_start and block_stop, so without evaluations"""
    eval_samples: int | None = None
    """samples of one evaluation"""
    target_quality: float | None = None
    """quality at which the training ends"""
    reached_quality: float | None = None
    """last quality evaluated before run_stop"""
    higher_is_better: bool | None = None
    """an accuracy rises to its target, a loss falls to it"""
    target_source: str | None = None
    """log: the log states the target; rules: those of the closed division"""


@dataclass(frozen=True, kw_only=True)
class Prediction(Record):
    """The planner's prediction for the run."""

    memory_gb: float | None = None
    """predicted memory of the device that needs most, GB"""
    step_time_seconds: float | None = None
    """predicted time of a steady step, s"""
    family: str
    """program whose traits and parameters the planner used"""
    machine: str | None = None
    """machine whose facts and parameters it used; absent: no time is predicted"""
    parameters: str
    """its parameters: built-in, or the file they were read from"""
    calibrated: bool | None = None
    """true if measurements of that architecture support the predicted time"""
    not_predicted: str | None = None
    """figures that the planner does not predict"""


@dataclass(frozen=True, kw_only=True)
class TelemetrySummary(Record):
    """Readings of the machine's sensors."""

    source: str
    """who measured"""
    samples: int
    """number of samples"""
    interval_seconds: float | None = None
    """time between samples, s"""
    mean_utilisation: float | None = None
    """share of the device's capacity, 0..1"""
    others_busy_threads: float | None = None
    """hardware threads that other processes kept busy on a machine without idle ones"""
    mean_power_watts: float | None = None
    """W"""
    energy_joules: float | None = None
    """J over the steady steps"""
    peak_memory_used_gb: float | None = None
    """resident memory of the run's processes, GB"""
    mean_temperature_celsius: float | None = None
    """of the device, degrees Celsius"""
    mean_clock_hz: float | None = None
    """of its cores, Hz"""
    mean_memory_clock_hz: float | None = None
    """of its memory, Hz"""
    throttle_shares: dict[str, float | None] | None = None
    """share of the readings in which the clock was held down, 0..1, by reason: power, thermal, current, hardware,
    clock_set
    """
    energy_valid: bool | None = None
    """false when the energy figure must not be used"""
    energy_note: str | None = None
    """why not, or how it was measured"""
    notes: tuple[str, ...] | None = None
    """figures that the sensor did not measure, and why"""


@dataclass(frozen=True, kw_only=True)
class StepTelemetry(Record):
    """Readings of these sensors during each step."""

    power_watts: tuple[float | None, ...] | None = None
    """mean power of all devices together, W"""
    lowest_clock_hz: tuple[float | None, ...] | None = None
    """mean clock of the device that had the lowest one, Hz"""
    highest_temperature_celsius: tuple[float | None, ...] | None = None
    """of any device, degrees Celsius"""
    utilisation: tuple[float | None, ...] | None = None
    """share of the devices' capacity, 0..1; on cpu of the run's threads"""
    others_busy_threads: tuple[float | None, ...] | None = None
    """hardware threads that other processes kept busy while the machine had no idle ones, else 0"""
    throttle_shares: dict[str, tuple[float | None, ...]] | None = None
    """share of the readings in which a device's clock was held down, 0..1, by reason as in `telemetry`; only reasons
    that were seen
    """


@dataclass(frozen=True, kw_only=True)
class DoctorReport(Record):
    """What tprimat doctor found just before the run."""

    passed: int
    """findings in order or only notes"""
    findings: tuple[MachineFinding, ...]
    """warnings and worse, the worst first"""
    left_out: int | None = None
    """further ones that are not stored"""


@dataclass(frozen=True, kw_only=True)
class AuditEntry(Record):
    """Settings that differ from the request; for a log alone, those that it reports."""

    key: str
    """setting"""
    asked: str | None = None
    """requested value"""
    effective: str
    """value the framework reported"""
    reason: str | None = None
    """why the suite changed the request, where it did"""


@dataclass(frozen=True, kw_only=True)
class SourceInfo(Record):
    """Files these figures came from."""

    log: str | None = None
    """path of the log"""
    steps_file: str | None = None
    """path of the step records"""
    format: str | None = None
    """format that was read"""
    confidence: float | None = None
    """confidence in that format, 0..1; absent: it was not detected"""
    step_time: Literal["none", "printed", "from_rate", "from_timestamps"] | None = None
    """printed, from_rate or from_timestamps: whether step times are derived"""
    lines: int | None = None
    """lines of the log"""
    first_line: int | None = None
    """line of the first step record, from 1"""
    last_line: int | None = None
    """line of the last step record"""
    records: int | None = None
    """lines that report a step, copies by other ranks included"""
    attempts: int | None = None
    """attempts in the whole log, of all its runs"""
    attempt: int | None = None
    """attempt of the log that the steps and settings belong to, from 1"""
    assumed: tuple[AssumedFact, ...] | None = None
    """facts that the log does not state: from a configuration, or from the log's name"""


@dataclass(frozen=True, kw_only=True)
class LabelledStep(Record):
    """Steps left out of the steady state."""

    step: int
    """number of the step"""
    label: Literal["checkpoint", "evaluation", "mean_of_two", "other", "other_batch", "restart"]
    """why it is left out"""


@dataclass(frozen=True, kw_only=True)
class StepSeries(Record):
    """Numbers and labels of the entries of step_times."""

    counts_from: int
    """number of a training's first step, 0 or 1"""
    numbers: tuple[int, ...] | None = None
    """number of each step as the log counts it"""
    mean_of: tuple[int, ...] | None = None
    """steps that each entry is the mean of"""
    time_low: tuple[float | None, ...] | None = None
    """lower bound of each step time, from the log's rounding, s"""
    time_high: tuple[float | None, ...] | None = None
    """upper bound of each step time, s"""
    labelled: tuple[LabelledStep, ...]
    """steps left out of the steady state"""


@dataclass(frozen=True, kw_only=True)
class ReportedFigures(Record):
    """Figures by the framework's own formulas."""

    tflops_per_gpu: tuple[float | None, ...] | None = None
    """1e12 FLOP/s per device, by the framework's formula"""
    mfu: tuple[float | None, ...] | None = None
    """fraction, by the framework's formula and peak"""
    tokens_per_second: tuple[float | None, ...] | None = None
    """of all devices"""
    tokens_per_second_per_gpu: tuple[float | None, ...] | None = None
    """of one device"""
    samples_per_second: tuple[float | None, ...] | None = None
    """sequences/s of all devices"""
    loss_scale: tuple[float | None, ...] | None = None
    """loss scale of fp16 training"""
    power_watts_per_gpu: tuple[float | None, ...] | None = None
    """W of one device"""
    energy_joules_per_gpu: tuple[float | None, ...] | None = None
    """J of one device and step"""
    unix_time: tuple[float | None, ...] | None = None
    """time stamp of the record, s since 1970; the log's clock read as UTC"""


@dataclass(frozen=True, kw_only=True)
class RankMemoryEntry(Record):
    """Highest memory of each rank, by meaning."""

    rank: int | None = None
    """rank; absent: not in the log"""
    kind: Literal["allocated", "peak_allocated", "reserved", "peak_reserved", "device_used", "device_total", "other"]
    """kind of memory"""
    gb: float | None
    """highest value, GB"""


@dataclass(frozen=True, kw_only=True)
class RunEvent(Record):
    """Events that the log reports; at most a thousand of a kind."""

    kind: Literal[
        "checkpoint", "collective_timeout", "device_error", "evaluation", "failed", "killed", "nan", "other",
        "out_of_memory", "restart", "skipped_update", "timeout"
    ]
    """kind of the event"""
    line: int | None = None
    """line of the log, from 1"""
    step: int | None = None
    """the step it names, else the last one before it; of a NaN or a skipped update the next"""
    rank: int | None = None
    """rank that reported it"""
    seconds: float | None = None
    """how long it took, s"""
    value: float | None = None
    """loss of an evaluation, nats; number of skipped updates where it is not 1"""
    text: str
    """as a sentence"""


@dataclass(frozen=True, kw_only=True)
class RunResult(ResultView, Record):
    """One training run, from launch to exit. A figure that is not known is absent or null, never 0."""

    schema_version: Literal[1]
    """version of this schema"""
    status: Literal["complete", "failed", "interrupted", "invalid"]
    """how the run ended"""
    status_reason: str | None = None
    """why it did not complete"""
    failure_kind: Literal[
        "out_of_memory", "host_out_of_memory", "nan_loss", "missing_module", "missing_program", "disk_full",
        "port_in_use", "no_device", "no_access", "wrong_usage", "device_error", "collective_failed", "killed", "hung",
        "time_limit", "ended_by_scheduler", "steps_missing", "wrong_work", "error"
    ] | None = None
    """kind of the failure"""
    failed_rank: int | None = None
    """rank that failed first, where the log names it"""
    attempt: int | None = None
    """number of the attempt, from 1, if failed runs are repeated"""
    platform: Literal["nvd", "amd", "cpu"] | None
    """nvd, amd or cpu; null if a log does not state it"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"] | None = None
    """framework that trained"""
    framework_installation: str | None = None
    """label of the framework's installation, where the configuration has several"""
    framework_version: str | None = None
    """its version"""
    timestamp: str
    """when the run started, UTC"""
    model_info: ModelInfo
    """the model"""
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"] | None = None
    """number format of the matrix products"""
    dataset: str | None = None
    """where the tokens came from"""
    gpu_info: DeviceInfo
    """the device"""
    training_config: TrainingConfig
    """requested settings of the training"""
    parallelism_config: ParallelismConfig
    """layout over devices"""
    performance_metrics: PerformanceMetrics | None = None
    """speed"""
    memory_metrics: MemoryMetrics
    """memory"""
    warmup: Warmup
    """steps left out of the steady state"""
    statistics: StepStatistics | None = None
    """of the steady step times"""
    derived: Derived
    """figures computed from the above by named formulas"""
    experts: ExpertFigures | None = None
    """routing of a mixture of experts; absent: unknown"""
    time_to_train: TimeToTrain | None = None
    """time to a target quality; absent: the training has none"""
    prediction: Prediction | None = None
    """the planner's prediction for the run; absent: none was made"""
    telemetry: tuple[TelemetrySummary, ...]
    """readings of the machine's sensors"""
    step_telemetry: StepTelemetry | None = None
    """readings of these sensors during each step"""
    doctor: DoctorReport | None = None
    """what tprimat doctor found just before the run; absent: nothing was examined"""
    environment: dict[str, str]
    """fingerprint of machine and software"""
    config_hash: str | None = None
    """hash of the requested training"""
    config_audit: tuple[AuditEntry, ...]
    """settings that differ from the request; for a log alone, those that it reports"""
    effective_config: dict[str, str] | None = None
    """settings as the framework printed them"""
    source: SourceInfo
    """files these figures came from"""
    steps: StepSeries | None = None
    """numbers and labels of the entries of step_times"""
    reported: ReportedFigures | None = None
    """figures by the framework's own formulas"""
    profile: RunProfile | None = None
    """steps profiled after the measured ones; absent: none"""
    memory_by_rank: tuple[RankMemoryEntry, ...] | None = None
    """highest memory of each rank, by meaning"""
    events: tuple[RunEvent, ...] | None = None
    """events that the log reports; at most a thousand of a kind"""
    event_counts: dict[str, int] | None = None
    """how often each kind of event was reported"""
    skipped_updates: int | None = None
    """steps whose update was skipped (overflow, NaN, spike); absent: not known"""
    default_choice: tuple[str, ...] | None = None
    """what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"""
    warnings: tuple[str, ...]
    """what to know before trusting the figures"""
    step_times: tuple[float | None, ...]
    """duration of each step, s"""
    loss_values: tuple[float | None, ...]
    """loss of each step, nats"""
    learning_rates: tuple[float | None, ...]
    """learning rate of each step"""
    grad_norms: tuple[float | None, ...]
    """global gradient norm of each step"""
    memory_values: tuple[float | None, ...]
    """allocated memory after each step, GB"""
