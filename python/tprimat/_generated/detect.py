"""The output of tprimat detect --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class CpuFacts(Record):
    """The processor."""

    model_name: str
    """as the processor gives it"""
    sockets: int | None = None
    """processor packages"""
    cores: int | None = None
    """physical cores of all packages"""
    logical_processors: int
    """hardware threads that are online"""
    usable_threads: int
    """threads that affinity and CPU quota leave to this process"""
    instruction_sets: tuple[str, ...]
    """those that decide the speed of matrix products"""
    max_mhz: float | None = None
    """highest clock, MHz"""
    governor: str | None = None
    """frequency governor of processor 0"""


@dataclass(frozen=True, kw_only=True)
class GpuFacts(Record):
    """GPUs that a management library sees."""

    platform: Literal["nvd", "amd", "cpu"]
    """nvd or amd"""
    index: int
    """number of the device"""
    name: str
    """as the driver gives it"""
    memory_bytes: float | None = None
    """bytes"""
    power_limit_watts: float | None = None
    """W, as enforced now"""
    cores: int | None = None
    """CUDA cores or stream processors"""
    compute_units: int | None = None
    """SMs (NVIDIA) or compute units (AMD)"""


@dataclass(frozen=True, kw_only=True)
class DetectedFramework(Record):
    """Frameworks that this program can run."""

    id: Literal["nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native"]
    """framework"""
    name: str
    """name for people"""
    platforms: tuple[Literal["nvd", "amd", "cpu"], ...]
    """platforms that it runs on"""
    installed: bool
    """an installation was found"""
    version: str | None = None
    """version of the installation; absent: not installed"""
    place: str | None = None
    """folder of the installation; absent: not installed"""
    lacking: str | None = None
    """what keeps it from training here; absent: nothing is known"""


@dataclass(frozen=True, kw_only=True)
class DetectedMachine(Record):
    """Facts of this machine: processor, memory, GPUs, drivers, frameworks."""

    platform: Literal["nvd", "amd", "cpu"]
    """what --platform auto means here"""
    cpu: CpuFacts
    """the processor"""
    memory_bytes: float | None = None
    """installed memory, bytes"""
    memory_limit_bytes: float | None = None
    """limit of the container or control group, bytes"""
    numa_nodes: int | None = None
    """memory domains"""
    kernel: str
    """kernel and its release"""
    architecture: str
    """instruction set architecture"""
    distribution: str | None = None
    """operating system"""
    container: str | None = None
    """container runtime, when inside one"""
    virtual_machine: str | None = None
    """hypervisor, when inside one"""
    transparent_huge_pages: str | None = None
    """setting of the kernel"""
    drivers: dict[str, str]
    """GPU driver versions by management library"""
    stacks: dict[str, str]
    """newest CUDA or ROCm that the driver serves"""
    gpus: tuple[GpuFacts, ...]
    """GPUs that a management library sees"""
    frameworks: tuple[DetectedFramework, ...]
    """frameworks that this program can run"""
