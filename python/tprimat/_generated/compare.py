"""The output of tprimat compare --json."""

# Written by scripts/generate_dataclasses.py; do not edit.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tprimat._generated.common import Estimate, Gate, PublishedStanding, SkippedFile
from tprimat.record import Record
from tprimat.views import ComparisonView, ContenderView, FigureView, GroupView, PairView


@dataclass(frozen=True, kw_only=True)
class DeviceCores(Record):
    """A part of the output of tprimat compare --json."""

    compute_units: int | None
    """streaming multiprocessors or compute units; null: not known"""
    unit: str
    """SMs (NVIDIA) or CUs (AMD): what compute_units counts"""
    cores: int | None
    """lanes of all compute units; null: not known"""
    core_kind: str
    """CUDA cores or stream processors: what cores counts"""
    source: str
    """where the counts come from"""


@dataclass(frozen=True, kw_only=True)
class Figure(FigureView, Record):
    """Metrics that are known, by key."""

    value: float
    """the figure, in `unit`"""
    ci95_low: float | None = None
    """lower end of the 95 % confidence interval; absent: no interval"""
    ci95_high: float | None = None
    """upper end of the 95 % confidence interval"""
    unit: str
    """unit of the figure; empty: a fraction or a count"""


@dataclass(frozen=True, kw_only=True)
class Evidence(Record):
    """Values that the finding rests on."""

    what: str
    """fact that the finding rests on"""
    reference: str
    """its value on the reference; of a finding on one run: as stated"""
    subject: str
    """its value on the subject; of a finding on one run: as found"""


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """Findings of the audit on this participant alone."""

    code: str
    """audit rule, see docs/compare.md"""
    severity: Literal["note", "warning", "error"]
    """an error withholds the verdict"""
    sentence: str
    """finding with its evidence, as a sentence"""
    why: str
    """its effect on the comparison; empty: see sentence"""
    remedy: str
    """action that resolves the finding"""
    evidence: tuple[Evidence, ...]
    """values that the finding rests on"""


@dataclass(frozen=True, kw_only=True)
class Contender(ContenderView, Record):
    """Participants: runs, or repetitions of a run."""

    letter: str
    """short name, unique within its model"""
    label: str
    """name for people, unique within its model"""
    files: tuple[str, ...]
    """result files, one per repetition"""
    facts: dict[str, str]
    """settings by name, as text; 'not known' where a result lacks one"""
    gpu_cores: DeviceCores | None
    """parallel units of one GPU; null: a CPU, or not known"""
    figures: dict[str, Figure]
    """metrics that are known, by key"""
    findings: tuple[Finding, ...]
    """findings of the audit on this participant alone"""
    warnings: tuple[str, ...]
    """warnings stored in its results"""
    published: PublishedStanding | None = None
    """standing among published runs; absent: there are none"""


@dataclass(frozen=True, kw_only=True)
class PairStatistics(Record):
    """A part of the output of tprimat compare --json."""

    subject_runs: int
    """runs of the subject that count"""
    reference_runs: int
    """runs of the reference that count"""
    standard_error: float
    """of the ratio's natural logarithm"""
    degrees_of_freedom: float
    """of Student's t behind the interval"""
    run_spread: Literal["measured", "borrowed", "assumed"]
    """measured, borrowed from the other side, or assumed"""
    assumed_spread: float | None = None
    """relative standard deviation between runs that was assumed"""
    p_value: float
    """two-sided, that the ratio lies within the smallest effect"""
    adjusted_p_value: float | None = None
    """the same over all pairs of the comparison"""
    tested_pairs: int | None = None
    """pairs that it was adjusted for"""
    more_runs: int | None = None
    """a side that would settle an inconclusive pair"""
    more_runs_help: bool | None = None
    """false: the ratio is about the smallest effect"""
    cycle_ratio: Estimate | None = None
    """ratio of tokens per device and clock cycle"""
    cycle_verdict: Literal["faster", "slower", "same", "inconclusive"] | None = None
    """verdict by clock cycles"""


@dataclass(frozen=True, kw_only=True)
class TimeRatio(Record):
    """Times to a target quality."""

    comparable: bool
    """both reached the same target"""
    ratio: Estimate | None
    """time of the reference / time of the subject; null: not comparable"""
    sentence: str
    """both times, or why they are not comparable"""


@dataclass(frozen=True, kw_only=True)
class Cause(Record):
    """The largest terms, at most three."""

    cause: str
    """key of the term, see docs/why.md"""
    title: str
    """name for people"""
    seconds: float
    """part of the gap, s per step; positive: the subject is slower"""
    sentence: str
    """the term with its figures"""


@dataclass(frozen=True, kw_only=True)
class Causes(Record):
    """Causes of the gap."""

    sentence: str
    """the largest terms in one line, or why there are none"""
    gap_seconds: float
    """step of the subject less that of the reference, s"""
    resolved: bool
    """at most 5 % of the gap is unexplained"""
    terms: tuple[Cause, ...]
    """the largest terms, at most three"""


@dataclass(frozen=True, kw_only=True)
class Pair(PairView, Record):
    """Comparisons of two participants."""

    subject: str
    """letter of the participant that is judged"""
    reference: str
    """letter of the participant that it is compared with"""
    comparable: bool
    """no error of the audit on the pair or on either side"""
    fairness: Literal["comparable", "with notes", "not comparable"]
    """conclusion of the audit"""
    rate_ratio: Estimate | None
    """tokens/s per device, subject / reference, also where the verdict is withheld; null: a rate is not known"""
    verdict: Literal["faster", "slower", "same", "inconclusive"] | None
    """the subject against the reference; null: withheld"""
    ratio: Estimate | None
    """as rate_ratio; null: withheld, or a rate is not known"""
    statistics: PairStatistics | None
    """statistics of the interval and the verdict; null: withheld, or none"""
    explanation: str | None
    """reason for the verdict, with the interval; null: withheld"""
    ratios: dict[str, float] | None
    """subject / reference of further metrics, by key; null: withheld"""
    headline: str
    """outcome as a sentence"""
    findings: tuple[Finding, ...]
    """findings of the audit on the pair"""
    versions: bool | None = None
    """true: two versions of one framework on one platform; absent: any other pair"""
    time_to_train: TimeRatio | None = None
    """times to a target quality; absent: a side has none"""
    causes: Causes | None = None
    """causes of the gap; absent: a side has no profile"""


@dataclass(frozen=True, kw_only=True)
class ModelGroup(GroupView, Record):
    """Participants and pairs, by model."""

    model: str
    """key of the model"""
    contenders: tuple[Contender, ...]
    """participants: runs, or repetitions of a run"""
    pairs: tuple[Pair, ...]
    """comparisons of two participants"""


@dataclass(frozen=True, kw_only=True)
class ComparisonReport(ComparisonView, Record):
    """Results compared pair by pair."""

    comparison_version: int
    """version of this format"""
    smallest_effect: float
    """a ratio within 1 / (1 + this) and 1 + this counts as the same"""
    forced: bool
    """--force: pairs that are not comparable have verdicts too"""
    exit_status: int
    """exit status of the command"""
    groups: tuple[ModelGroup, ...]
    """participants and pairs, by model"""
    skipped: tuple[SkippedFile, ...]
    """files that are no results"""
    gates: tuple[Gate, ...] | None = None
    """--fail-if conditions on each subject; absent: none was given"""
