"""The output of tprimat profile --summarise FILE --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class Timeline(Record):
    """Within the mark."""

    span_seconds: float | None = None
    """from the first begin to the last end, or of the step's mark"""
    busy_seconds: float | None = None
    """in which anything ran"""
    idle_seconds: float | None = None
    """span - busy"""
    compute_seconds: float | None = None
    """in which a kernel ran that is no collective"""
    communication_seconds: float | None = None
    """in which a collective ran or waited"""
    exposed_communication_seconds: float | None = None
    """of that, the part in which nothing was computed"""
    copy_seconds: float | None = None
    """in which memory was copied or filled by the copy engines"""
    exposed_copy_seconds: float | None = None
    """of that, the part in which no kernel ran"""


@dataclass(frozen=True, kw_only=True)
class ClassTotal(Record):
    """Time by class, of what began within the mark."""

    class_: Literal[
        "matmul", "attention", "convolution", "norm", "softmax", "embedding", "reduction", "elementwise", "optimizer",
        "collective", "copy", "other"
    ] = field(metadata={"key": "class"})
    """what the kernels do, by their names"""
    calls: int
    """how often one ran"""
    total_seconds: float
    """sum of durations"""
    share: float
    """of the sum of durations of everything, 0..1"""


@dataclass(frozen=True, kw_only=True)
class KernelTotal(Record):
    """Time by kernel, longest first."""

    name: str
    """as the trace has it"""
    class_: Literal[
        "matmul", "attention", "convolution", "norm", "softmax", "embedding", "reduction", "elementwise", "optimizer",
        "collective", "copy", "other"
    ] = field(metadata={"key": "class"})
    """what it does, by its name"""
    calls: int
    """how often it ran"""
    total_seconds: float
    """sum of durations"""
    share: float
    """of the sum of durations of everything, 0..1"""


@dataclass(frozen=True, kw_only=True)
class StepSummary(Record):
    """Each step that the trace marks."""

    step: int
    """number of the profiler's step mark"""
    timeline: Timeline
    """within the mark"""
    classes: tuple[ClassTotal, ...]
    """time by class, of what began within the mark"""


@dataclass(frozen=True, kw_only=True)
class DeviceSummary(Record):
    """Where the time of each GPU went."""

    device: int | None = None
    """number of the GPU in the trace"""
    rank: int | None = None
    """of the process"""
    name: str | None = None
    """of the GPU, where the trace tells it"""
    sheet: str | None = None
    """of a report, that the figures stand in"""
    kernel_calls: int | None = None
    """kernels that ran"""
    kernel_seconds: float | None = None
    """sum of their durations"""
    timeline: Timeline
    """where the time went"""
    classes: tuple[ClassTotal, ...]
    """time by class, longest first"""
    kernels: tuple[KernelTotal, ...]
    """time by kernel, longest first"""
    step_marks: str | None = None
    """device: the marks span the step's work; host: the program's own time"""
    steps: tuple[StepSummary, ...]
    """each step that the trace marks"""


@dataclass(frozen=True, kw_only=True)
class HostStep(Record):
    """Each step that the trace marks."""

    step: int
    """number of the profiler's step mark"""
    seconds: float
    """length of the mark; the profiler lengthens it"""
    busy_seconds: float
    """in which any thread was in an operation"""


@dataclass(frozen=True, kw_only=True)
class HostSummary(Record):
    """Where the processor's time went, where no GPU worked."""

    threads: int
    """that ran operations"""
    calls: int
    """operations that ran"""
    span_seconds: float
    """from the first begin to the last end"""
    busy_seconds: float
    """in which any thread was in an operation"""
    classes: tuple[ClassTotal, ...]
    """own time by class, longest first"""
    operations: tuple[KernelTotal, ...]
    """own time by operation, longest first"""
    steps: tuple[HostStep, ...]
    """each step that the trace marks"""


@dataclass(frozen=True, kw_only=True)
class SheetSize(Record):
    """Of a workbook."""

    name: str
    """of the sheet"""
    rows: int
    """up to the last with a value"""
    columns: int
    """up to the last with a value"""


@dataclass(frozen=True, kw_only=True)
class ProfileSummary(Record):
    """Where the time of a profiler's trace goes."""

    file: str
    """path"""
    format: Literal["chrome_trace", "kernel_table", "nsys_export", "rocprofv3", "tracelens_report", "workbook"]
    """what the file is"""
    rank: int | None = None
    """of the process, where the trace tells it"""
    world_size: int | None = None
    """processes of the run, where the trace tells it"""
    events: int | None = None
    """of the trace, those of the host included"""
    gpu_events: int | None = None
    """kernels, memory copies and fills"""
    visible_gpus: int | None = None
    """GPUs that the process saw"""
    devices: tuple[DeviceSummary, ...]
    """where the time of each GPU went"""
    host: HostSummary | None = None
    """where the processor's time went, where no GPU worked"""
    sheets: tuple[SheetSize, ...]
    """of a workbook"""
    notes: tuple[str, ...]
    """what to know before trusting the figures"""
