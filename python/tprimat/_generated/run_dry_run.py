"""The output of tprimat run --dry-run --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass

from tprimat.record import Record


@dataclass(frozen=True, kw_only=True)
class PlannedFile(Record):
    """Files written before the start."""

    path: str
    """absolute path"""
    content: str
    """text of the file"""
    executable: bool | None = None
    """true: may be executed; absent: it may not"""


@dataclass(frozen=True, kw_only=True)
class PlannedDeviation(Record):
    """Settings that the framework does not support as configured."""

    key: str
    """setting"""
    asked: str
    """configured value"""
    effective: str
    """value that the framework uses"""
    reason: str | None = None
    """reason for the other value; absent: the framework has its own"""


@dataclass(frozen=True, kw_only=True)
class MemoryForecast(Record):
    """Predicted memory."""

    not_predicted: str | None = None
    """what the planner has no model of; then nothing else is predicted"""
    memory_bytes: float | None = None
    """predicted memory of the rank with the highest use, bytes"""
    bytes: dict[str, float] | None = None
    """the same by component, bytes"""
    expert_load: float | None = None
    """tokens on the fullest rank over the mean, of a mixture of experts; absent: a dense model"""
    all_ranks_bytes: float | None = None
    """predicted memory of all ranks that share the device, bytes; absent: one rank per device"""
    device_bytes: float | None = None
    """memory of the device, bytes; absent: not known"""
    device_source: str | None = None
    """source of device_bytes"""
    fits: bool | None = None
    """the prediction fits into the device's memory; absent: memory not known"""


@dataclass(frozen=True, kw_only=True)
class PlannedPlace(Record):
    """Place in the planner's ranking."""

    rank: int
    """place in the planner's ranking; 1: the fastest"""
    step_time_seconds: float
    """predicted step time, s"""


@dataclass(frozen=True, kw_only=True)
class PlannedTraining(Record):
    """Each training that would start: command, files and predicted memory."""

    run: str
    """framework, model, platform, strategy and number of the repetition"""
    command: tuple[str, ...]
    """program and arguments"""
    environment: dict[str, str]
    """variables added to the caller's environment"""
    working_directory: str
    """folder in which the command starts"""
    files: tuple[PlannedFile, ...]
    """files written before the start"""
    log: str
    """file that receives stdout and stderr"""
    steps_file: str
    """file of step records, one JSON object per line; empty: see the log"""
    deviations: tuple[PlannedDeviation, ...]
    """settings that the framework does not support as configured"""
    remarks: tuple[str, ...]
    """remarks on the launch, as sentences"""
    prediction: MemoryForecast
    """predicted memory"""
    cleanup_command: tuple[str, ...]
    """ends a job or container that outlives the command; empty: not needed"""
    result: str
    """result file"""
    config_hash: str
    """hash of specification and launch; equal for equal configurations"""
    default_choice: tuple[str, ...] | None = None
    """what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"""
    installation: str | None = None
    """label of the framework's installation; absent: it has one"""
    framework_version: str | None = None
    """version of the framework; absent: not known"""
    checked_against: str | None = None
    """versions that the launch was checked against; absent: none"""
    planned: PlannedPlace | None = None
    """place in the planner's ranking; absent: without --from-plan"""
