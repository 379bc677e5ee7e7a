"""The output of tprimat config show --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tprimat._generated.common import ParallelismConfig, PeakInfo, TrainingConfig
from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class ResolvedPlatform(Record):
    """Configured platforms."""

    device_model: str
    """device, as in the hardware catalogue"""
    num_gpus: int
    """devices of a training"""
    framework: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """framework that trains"""
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"]
    """number format of the matrix products"""
    usd_per_hour: float | None = None
    """price of one device, USD per hour; absent: not known"""
    tdp_watts: float | None = None
    """power limit of one device, W; absent: not known"""
    peaks: dict[str, PeakInfo]
    """dense peak of one device, by number format; formats without a known peak are absent"""


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining(Record):
    """A part of the output of tprimat config show --json."""

    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"]
    """number format of the matrix products"""
    num_parameters: int
    """parameters of the model"""
    training_config: TrainingConfig
    """training settings, as in a result"""
    parallelism_config: ParallelismConfig
    """layout, as in a result"""


@dataclass(frozen=True, kw_only=True)
class RunFiles(Record):
    """A part of the output of tprimat config show --json."""

    log: str
    """file name of the log"""
    result: str
    """that of the result"""


@dataclass(frozen=True, kw_only=True)
class ResolvedConfig(Record):
    """What follows from the settings."""

    platforms: dict[str, ResolvedPlatform]
    """configured platforms"""
    trainings: dict[str, dict[str, dict[str, ResolvedTraining]]]
    """trainings by strategy, model and platform; those that cannot run are absent"""
    files: dict[str, dict[str, dict[str, RunFiles]]]
    """names of logs and results, by platform, framework and model"""
    primus_configs: dict[str, str]
    """Primus configuration files by model"""


@dataclass(frozen=True, kw_only=True)
class ShownConfig(Record):
    """The configuration, and what follows from it."""

    origin: str
    """configuration file, or the built-in default"""
    settings: Any
    """every setting, as in the configuration: docs/config.md"""
    resolved: ResolvedConfig
    """what follows from the settings"""
    origins: dict[str, str]
    """origin of each setting, by its key path"""
    default_choice: tuple[str, ...] | None = None
    """what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"""
