"""The output of tprimat estimate --flops MODEL --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class PartCost(Record):
    """Components."""

    part: Literal[
        "embedding", "attention projections", "attention core", "Mamba projections", "Mamba scan", "MLP", "experts",
        "router", "norms", "head", "prediction layers"
    ]
    """component, all layers together"""
    parameters: int
    """weights, biases and norms"""
    active_parameters: int
    """those that one token passes"""
    forward: float
    """FLOPs of matrix products per token, forward"""
    backward: float
    """FLOPs of matrix products per token, backward"""
    share: float
    """of the model FLOPs"""


@dataclass(frozen=True, kw_only=True)
class FlopReport(Record):
    """Parameters and FLOPs per token of a model, part by part."""

    model: str
    """key"""
    name: str
    """for people"""
    source: str | None = None
    """where the shape was stated"""
    sequence_length: int
    """tokens"""
    vocabulary: int
    """tokens, padded where asked for"""
    formula: str
    """by which the parts were counted"""
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"]
    """of the products' inputs"""
    recompute: Literal["none", "selective", "full"]
    """activations that are computed twice"""
    parts: tuple[PartCost, ...]
    """components"""
    parameters: int
    """all"""
    active_parameters: int
    """those that one token passes"""
    flops_per_token: dict[str, float]
    """model FLOPs of forward and backward, by formula"""
    hfu_factor: float
    """HFU / MFU: what is recomputed counts once more"""
    hfu_factor_2205: float
    """HFU / MFU as arXiv 2205.05198, appendix A, counts"""
    fp8_share: float | None = None
    """share of the FLOPs in products that run in FP8"""
    fp8_mfu_bound: float | None = None
    """highest MFU over the FP8 peak, where BF16 is half as fast"""
