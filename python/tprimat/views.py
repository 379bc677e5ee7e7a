"""What results, plans and comparisons add to their JSON: the most requested figures, a readable text, and tables for
pandas."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tprimat.tables import Records, make_frame

if TYPE_CHECKING:
    import pandas

    from tprimat._generated.compare import Contender, Figure, Finding, ModelGroup, Pair
    from tprimat._generated.plan import FrontierPlan, PlanAnswer, PlanLine, PlanReport
    from tprimat._generated.result import DeviceInfo, Derived, ModelInfo, PerformanceMetrics, RunResult
    from tprimat._generated.run import RunOutcome
    from tprimat._generated.why import LedgerTerm


def format_number(value: float) -> str:
    """Three digits at least: 6.603, 51.7, 9 925."""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}".replace(",", " ")


def format_share(value: float) -> str:
    return f"{100 * value:.1f} %"


def list_known(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


class EstimateView:
    """A figure with its 95 % interval; `float(estimate)` is its value."""

    if TYPE_CHECKING:
        value: float | None
        ci95_low: float | None
        ci95_high: float | None

    def __float__(self) -> float:
        return float("nan") if self.value is None else self.value

    def __str__(self) -> str:
        if self.value is None:
            return "not known"
        text = format_number(self.value)
        if self.ci95_low is None or self.ci95_high is None:
            return text
        return f"{text} ({format_number(self.ci95_low)} to {format_number(self.ci95_high)})"


class ResultView:
    """A result: the figures of its steady steps. A figure that is not known is None."""

    if TYPE_CHECKING:
        status: str
        status_reason: str | None
        framework: Any
        platform: Any
        precision: Any
        model_info: ModelInfo
        gpu_info: DeviceInfo
        derived: Derived
        performance_metrics: PerformanceMetrics | None

    path: pathlib.Path | None = None  # of the file that it was read from

    @property
    def model(self) -> str:
        return self.model_info.name

    @property
    def mfu(self) -> float | None:
        return self.derived.mfu.value if self.derived.mfu else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.derived.tokens_per_second.value if self.derived.tokens_per_second else None

    @property
    def tokens_per_second_per_gpu(self) -> float | None:
        return self.derived.tokens_per_second_per_gpu.value if self.derived.tokens_per_second_per_gpu else None

    @property
    def steps_per_second(self) -> float | None:
        return self.performance_metrics.steps_per_second if self.performance_metrics else None

    def __str__(self) -> str:
        steps = self.performance_metrics.total_steps if self.performance_metrics else None
        return f"{self.framework or 'unknown'} {self.model} on {self.gpu_info.device_name}: " + list_known(
            self.status + (f" ({self.status_reason})" if self.status_reason else ""),
            f"{steps} steps" if steps else None,
            f"{format_number(self.tokens_per_second)} tokens/s" if self.tokens_per_second else None,
            f"MFU {format_share(self.mfu)}" if self.mfu else None)

    def to_row(self) -> dict[str, Any]:
        """What a table of results shows."""
        performance = self.performance_metrics
        return {"file": str(self.path) if self.path else None, "framework": self.framework, "model": self.model,
                "platform": self.platform, "device": self.gpu_info.device_name, "devices": self.gpu_info.device_count,
                "precision": self.precision, "status": self.status, "tokens_per_second": self.tokens_per_second,
                "tokens_per_second_per_gpu": self.tokens_per_second_per_gpu, "mfu": self.mfu,
                "step_time_seconds": performance.avg_step_time_seconds if performance else None}


LAYOUT = {"TP": "tensor_model_parallel_size", "PP": "pipeline_model_parallel_size", "VP": "virtual_pipeline_size",
          "CP": "context_parallel_size", "EP": "expert_model_parallel_size", "ETP": "expert_tensor_parallel_size",
          "DP": "data_parallel_size"}


class LayoutView:
    """A layout, and the predicted figures of a step in it."""

    if TYPE_CHECKING:
        micro_batch_size: int
        gradient_accumulation_steps: int
        sharding: Any
        recompute: Any
        step_seconds: float
        tokens_per_second_per_gpu: float
        mfu: float
        memory_bytes: float

    @property
    def name(self) -> str:
        """TP 2, DP 32, MBS 1, GA 16, zero1"""
        sizes = {word: getattr(self, key) or 1 for word, key in LAYOUT.items()}
        return list_known(*(f"{word} {size}" for word, size in sizes.items() if size > 1),
                          f"MBS {self.micro_batch_size}", f"GA {self.gradient_accumulation_steps}",
                          self.sharding if self.sharding != "none" else None,
                          f"{self.recompute} recompute" if self.recompute != "none" else None)

    def __str__(self) -> str:
        return (f"{self.name}: {format_number(self.step_seconds)} s per step, "
                f"{format_number(self.tokens_per_second_per_gpu)} tokens/s per GPU, MFU {format_share(self.mfu)}, "
                f"{format_number(self.memory_bytes / 1e9)} GB")

    def to_row(self) -> dict[str, Any]:
        return {**{word: getattr(self, key) or 1 for word, key in LAYOUT.items()}, "MBS": self.micro_batch_size,
                "GA": self.gradient_accumulation_steps, "sharding": self.sharding, "recompute": self.recompute,
                "step_seconds": self.step_seconds, "tokens_per_second_per_gpu": self.tokens_per_second_per_gpu,
                "mfu": self.mfu, "memory_gb": self.memory_bytes / 1e9}


class PlanReportView:
    """The layouts of one model on one kind of GPU and one number of GPUs."""

    if TYPE_CHECKING:
        model: str
        gpu: str
        gpus: int
        framework: str
        precision: Any
        sequence_length: int
        global_batch_size: int
        legal: int
        fitting: int
        ranked: tuple[PlanLine, ...]

    @property
    def best(self) -> PlanLine | None:
        """The fastest layout; None where none fits."""
        return self.ranked[0] if self.ranked else None

    def __str__(self) -> str:
        head = (f"{self.model} on {self.gpus} x {self.gpu}, {self.framework}, {self.precision}, "
                f"SL {self.sequence_length}, GBS {self.global_batch_size}: "
                f"{self.fitting} of {self.legal} legal layouts fit")
        return "\n".join([head, *(f"{n:3}  {each}" for n, each in enumerate(self.ranked, 1))])

    def to_rows(self) -> list[dict[str, Any]]:
        return [{"model": self.model, "gpu": self.gpu, "gpus": self.gpus, "rank": n, **each.to_row()}
                for n, each in enumerate(self.ranked, 1)]


class PlanView:
    """What `tprimat plan` found, for one or several GPUs and numbers of them."""

    if TYPE_CHECKING:
        plans: tuple[PlanReport, ...]
        frontier: tuple[FrontierPlan, ...]
        answers: tuple[PlanAnswer, ...]
        assumptions: tuple[str, ...]

    @property
    def best(self) -> PlanLine | None:
        """The layout with the most tokens/s of all GPUs together; None where none fits."""
        fastest = max((each for each in self.plans if each.best is not None), default=None,
                      key=lambda plan: plan.best.tokens_per_second_per_gpu * plan.gpus if plan.best else 0.0)
        return fastest.best if fastest else None

    @property
    def layouts(self) -> tuple[PlanLine, ...]:
        """Those of all plans, each plan's fastest first."""
        return tuple(each for plan in self.plans for each in plan.ranked)

    def __str__(self) -> str:
        assumed = f"assumed: {'; '.join(self.assumptions)}" if self.assumptions else ""
        return "\n\n".join(filter(None, [*map(str, self.plans), *(each.sentence for each in self.answers), assumed]))

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each layout."""
        return make_frame(row for each in self.plans for row in each.to_rows())


class EntryView:
    """A published result."""

    if TYPE_CHECKING:
        id: str
        model: str
        gpu: str
        gpus: int | None
        precision: str
        framework: str
        tokens_per_second_per_gpu: float | None

    def __str__(self) -> str:
        rate = self.tokens_per_second_per_gpu
        return f"{self.id}: " + list_known(
            self.model, f"{self.gpus} x {self.gpu}" if self.gpus else self.gpu, self.precision, self.framework,
            f"{format_number(rate)} tokens/s per GPU" if rate else None)


def flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a JSON object, without its objects and lists."""
    return {key: value for key, value in record.items() if not isinstance(value, (dict, list))}


def rows_of(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [each.to_row() if hasattr(each, "to_row") else flatten(each.to_json()) for each in records]


class FigureView:
    """A metric with its 95 % interval and unit; `float(figure)` is its value."""

    if TYPE_CHECKING:
        value: float
        ci95_low: float | None
        ci95_high: float | None
        unit: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = "" if self.ci95_low is None or self.ci95_high is None else \
            f" ({format_number(self.ci95_low)} to {format_number(self.ci95_high)})"
        return f"{format_number(self.value)}{interval}{' ' + self.unit if self.unit else ''}"


class OutcomeView:
    """How a run of the suite ended."""

    if TYPE_CHECKING:
        framework: Any
        platform: Any
        model: str
        strategy: str
        run: int
        status: Any
        reason: str | None
        result: str
        steps: int | None
        tokens_per_second: float | None
        step_time_seconds: float | None
        mfu: float | None

    def __str__(self) -> str:
        return f"{self.framework} {self.model} {self.platform} {self.strategy}, run {self.run}: " + list_known(
            self.status + (f" ({self.reason})" if self.reason else ""),
            f"{self.steps} steps" if self.steps else None,
            f"{format_number(self.tokens_per_second)} tokens/s" if self.tokens_per_second else None,
            f"MFU {format_share(self.mfu)}" if self.mfu else None)

    def to_row(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in (
            "framework", "model", "platform", "strategy", "run", "status", "steps", "tokens_per_second",
            "step_time_seconds", "mfu", "result")}


class SuiteView:
    """What `tprimat run` trained."""

    if TYPE_CHECKING:
        runs: tuple[RunOutcome, ...]

    @property
    def results(self) -> Records[RunResult]:
        """The result of each run that has one, from its file."""
        from tprimat.calls import load_result

        return Records(load_result(each.result) for each in self.runs if pathlib.Path(each.result).is_file())

    def __str__(self) -> str:
        return "\n".join(map(str, self.runs))

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each run."""
        return make_frame(each.to_row() for each in self.runs)


class ContenderView:
    """A participant of a comparison: a run, or several of one configuration."""

    if TYPE_CHECKING:
        letter: str
        label: str
        figures: dict[str, Figure]

    def __str__(self) -> str:
        rate, mfu = (self.figures.get(key) for key in ("tokens_per_second_per_gpu", "mfu"))
        known = list_known(f"{rate} per GPU" if rate else None, f"MFU {format_share(mfu.value)}" if mfu else None)
        return f"{self.letter}  {self.label}: {known or 'no figures'}"

    def to_row(self) -> dict[str, Any]:
        return {"letter": self.letter, "label": self.label, **{key: each.value for key, each in self.figures.items()}}


class PairView:
    """Two participants compared."""

    if TYPE_CHECKING:
        subject: str
        reference: str
        headline: str
        findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.subject} against {self.reference}: {self.headline}",
                          *(f"  {each.severity}: {each.sentence}" for each in self.findings)])


class GroupView:
    """The participants of one model."""

    if TYPE_CHECKING:
        model: str
        contenders: tuple[Contender, ...]
        pairs: tuple[Pair, ...]

    def __str__(self) -> str:
        return "\n".join([self.model, *map(str, self.contenders), *map(str, self.pairs)])


class ComparisonView:
    """What `tprimat compare` found."""

    if TYPE_CHECKING:
        groups: tuple[ModelGroup, ...]

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return tuple(each for group in self.groups for each in group.contenders)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(each for group in self.groups for each in group.pairs)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.groups)) or "nothing to compare"

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each participant, with its metrics."""
        return make_frame({"model": group.model, **each.to_row()} for group in self.groups for each in group.contenders)


class WhyView:
    """What `tprimat why` found."""

    if TYPE_CHECKING:
        sentence: str
        remainder: str
        terms: tuple[LedgerTerm, ...]
        findings: tuple[str, ...]

    @property
    def largest(self) -> tuple[LedgerTerm, ...]:
        """The terms with a cause, the largest change first."""
        known = [each for each in self.terms if each.cause != "unexplained"]
        return tuple(sorted(known, key=lambda each: -abs(each.seconds)))

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {each}" for each in self.findings), self.remainder])

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each term."""
        return make_frame({"cause": each.cause, "seconds": each.seconds, "ci95_low": each.ci95_low,
                           "ci95_high": each.ci95_high, "a_seconds": each.a_seconds, "b_seconds": each.b_seconds}
                          for each in self.terms)
