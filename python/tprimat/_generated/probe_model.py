"""The output of tprimat probe --model NAME --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat._generated.common import GemmPeak, Measured
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class GroupedRateMeasured(Record):
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
    measured: Measured
    """the measurement"""


@dataclass(frozen=True, kw_only=True)
class ModelRate(Record):
    """Rate of the model's own products, by number format."""

    model: str
    """key of the model in the config"""
    tokens: int
    """tokens of a micro-batch, MBS x SL"""
    products: GemmPeak
    """rate of each product"""
    grouped: tuple[GroupedRateMeasured, ...] | None = None
    """rate of the routed experts' products; absent: a dense model"""
    flops_per_second: float
    """aggregate rate of all products in a step"""


@dataclass(frozen=True, kw_only=True)
class ModelProbeReport(Record):
    """Measured rates of a model's matrix products on this machine's processor."""

    cpu: str
    """name reported by the processor"""
    threads: int
    """threads used"""
    matmul: tuple[GemmPeak, ...]
    """achievable matrix-product rate by number format"""
    models: tuple[ModelRate, ...]
    """rate of the model's own products, by number format"""
