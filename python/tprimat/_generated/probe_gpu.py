"""The output of tprimat probe --device nvd --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class GpuConditions(Record):
    """GPU state during the measurement."""

    clock_hz: float | None = None
    """mean clock"""
    power_watts: float | None = None
    """mean power"""
    temperature_celsius: float | None = None
    """mean temperature"""


@dataclass(frozen=True, kw_only=True)
class DeviceMeasured(Record):
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
    """noise: the windows agreed; time: the time limit came first"""
    slowed: bool
    """the second half was over 5 % slower than the first: throttled or disturbed"""


@dataclass(frozen=True, kw_only=True)
class GpuRate(Record):
    """Rate of each product."""

    name: str
    """name of the product"""
    pass_: Literal["forward", "dgrad", "wgrad"] = field(metadata={"key": "pass"})
    """forward, or the gradient of the input (dgrad) or of the weights (wgrad)"""
    m: int
    """rows of the left matrix and the result"""
    n: int
    """columns of the right matrix and the result"""
    k: int
    """columns of the left matrix, rows of the right one"""
    flops_per_second: float
    """2·m·n·k per product, in the median window"""
    measured: DeviceMeasured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class GroupedRateDeviceMeasured(Record):
    """Rate of the routed experts' products."""

    name: str
    """name of the products"""
    pass_: Literal["forward", "dgrad", "wgrad"] = field(metadata={"key": "pass"})
    """forward, or the gradient of the input (dgrad) or of the weights (wgrad)"""
    load: Literal["even", "uneven"]
    """even: each expert has the same number of tokens; uneven: it rises from one to the next"""
    experts: int
    """experts measured together"""
    tokens: int
    """tokens of an expert, on average"""
    fullest: int
    """tokens of the fullest expert"""
    inputs: int
    """inputs of an expert's layer"""
    outputs: int
    """outputs of an expert's layer"""
    flops_per_second: float
    """2·tokens·inputs·outputs of all experts / time"""
    plain_flops_per_second: float
    """the same for one product of all these tokens"""
    share_of_plain: float
    """flops_per_second / plain_flops_per_second"""
    measured: DeviceMeasured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class GpuPeak(Record):
    """Achievable matrix-product rate by number format."""

    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"]
    """number format of the inputs"""
    flops_per_second: float
    """of the fastest product"""
    catalogue_flops: float | None = None
    """dense peak from the hardware catalogue; absent: unknown"""
    model_flops_per_second: float | None = None
    """aggregate rate of all products in a step of the model"""
    conditions: GpuConditions
    """GPU state during the measurement"""
    products: tuple[GpuRate, ...]
    """rate of each product"""
    grouped: tuple[GroupedRateDeviceMeasured, ...] | None = None
    """rate of the routed experts' products; absent: a dense model, or no kernels"""


@dataclass(frozen=True, kw_only=True)
class GpuTransferRate(Record):
    """Achievable bandwidths."""

    kind: str
    """copy: c = a; add: c = a + b, both in GPU memory; upload, download: between host and GPU memory, as in training"""
    bytes_per_second: float
    """read and written, in the median window"""
    measured: DeviceMeasured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class GpuLaunch(Record):
    """Cost of a small operation."""

    given_seconds: float
    """host time to launch one operation"""
    done_seconds: float
    """GPU time from one operation to the next"""
    recorded_seconds: float
    """the same for operations replayed from a graph"""


@dataclass(frozen=True, kw_only=True)
class GpuProbeReport(Record):
    """Measured rates of a GPU: matrix products, memory, small operations; with --model, the matrix products of that
    model.
    """

    probe_version: int
    """format of this report"""
    gpu: str
    """name reported by its driver"""
    part: str | None = None
    """in the hardware catalogue"""
    model: str | None = None
    """model of these products; absent: generic shapes"""
    tokens: int | None = None
    """tokens of a micro-batch, MBS x SL"""
    matmul: tuple[GpuPeak, ...]
    """achievable matrix-product rate by number format"""
    no_kernels: tuple[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], ...]
    """number formats without kernels on this GPU"""
    memory_bytes: float | None = None
    """GPU memory that was free before the measurement"""
    catalogue_bandwidth: float | None = None
    """memory bandwidth from the hardware catalogue, bytes/s"""
    memory: tuple[GpuTransferRate, ...]
    """achievable bandwidths"""
    launch: GpuLaunch | None = None
    """cost of a small operation"""
