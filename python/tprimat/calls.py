"""The commands of tprimat as functions. Each runs the program, and returns what its --json prints as dataclasses.

Options are those of the command line: `--target-days 60` is `target_days=60`, `--gpu H100,B200` is
`gpu=["H100", "B200"]`, `--lora` is `lora=True`. Two more go to the call itself: with `progress=True`, what the program
tells appears on stderr as it comes; after `time_limit` seconds the program is stopped. docs/python.md has examples.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Union

from tprimat.errors import InputError, Problem, make_error
from tprimat.program import Answer, call_program, require
from tprimat.record import DataError, Record
from tprimat.tables import Records
from tprimat.words import make_words

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tprimat._generated.common import ClaimReport
    from tprimat._generated.estimate_flops import FlopReport
    from tprimat._generated.options import (ClaimOptions, EstimateOptions, ExtractOptions, PlanOptions, ProbeOptions,
                                            PublishedListOptions)
    from tprimat._generated.plan import PlanComparison
    from tprimat._generated.probe import ProbeReport
    from tprimat._generated.probe_gpu import GpuProbeReport
    from tprimat._generated.probe_model import ModelProbeReport
    from tprimat._generated.published_list import PublishedEntry
    from tprimat._generated.result import RunResult

Path = Union[str, "os.PathLike[str]"]
Item = TypeVar("Item", bound=Record)
FAILED = 1  # exit status: some work failed, and what there is was printed


def ask(command: str, arguments: Iterable[str], options: Mapping[str, Any], config: Path | None = None,
        progress: bool = False, time_limit: float | None = None) -> Answer:
    words = [*command.split(), *arguments, *make_words(command, options), "--json"]
    if config is not None:
        words += ["--config", os.fspath(config)]
    return call_program(words, progress, time_limit)


def read_answer(kind: type[Item], answer: Answer, command: str, fine: Iterable[int] = ()) -> Item:
    """The record that was printed. `fine`: exit statuses that the record explains itself."""
    output = read_all(kind, [answer.data], answer, command, fine)[0]
    if answer.status not in fine:
        require(answer, [command], output)
    return output


def read_list(kind: type[Item], answer: Answer, command: str) -> Records[Item]:
    output = read_all(kind, answer.data, answer, command, ())
    require(answer, [command], output)
    return output


def read_all(kind: type[Item], data: Any, answer: Answer, command: str, fine: Iterable[int]) -> Records[Item]:
    if answer.data is None or answer.status not in (0, FAILED, *fine):
        require(answer, [command])
    try:
        return Records(kind.from_json(each) for each in data)
    except (DataError, TypeError) as error:
        raise make_error(FAILED, [Problem(str(error), f"the output of tprimat {command}",
                                          "use the program and the package of one version")]) from error


def plan(model: str | None = None, *, config: Path | None = None, progress: bool = False,
         time_limit: float | None = None, **options: Unpack[PlanOptions]) -> PlanComparison:
    """Ranks the layouts of a model on GPUs by predicted step time: `plan("llama3_8b", gpu="H100", gpus=64).best`."""
    from tprimat._generated.plan import PlanComparison

    answer = ask("plan", [model] if model else [], options, config, progress, time_limit)
    return read_answer(PlanComparison, answer, "plan", fine=(FAILED,))  # no layout fits, or none in the days asked for


def estimate(model: str, *, config: Path | None = None, progress: bool = False, time_limit: float | None = None,
             **options: Unpack[EstimateOptions]) -> FlopReport:
    """A model's parameters and FLOPs per token, part by part."""
    from tprimat._generated.estimate_flops import FlopReport

    answer = ask("estimate", ["--flops", model], options, config, progress, time_limit)
    return read_answer(FlopReport, answer, "estimate")


def probe(*, config: Path | None = None, progress: bool = False, time_limit: float | None = None,
          **options: Unpack[ProbeOptions]) -> ProbeReport | GpuProbeReport | ModelProbeReport:
    """Measures this machine's matrix products and memory; with `model`, that model's matrix products."""
    from tprimat._generated.probe import ProbeReport
    from tprimat._generated.probe_gpu import GpuProbeReport
    from tprimat._generated.probe_model import ModelProbeReport

    on_gpu = options.get("device") not in (None, "cpu")
    answer = ask("probe", [], options, config, progress, time_limit)
    if options.get("model"):
        return read_answer(ModelProbeReport, answer, "probe")
    return read_answer(GpuProbeReport, answer, "probe") if on_gpu else read_answer(ProbeReport, answer, "probe")


def claim(model: Path, *, config: Path | None = None, progress: bool = False, time_limit: float | None = None,
          **options: Unpack[ClaimOptions]) -> ClaimReport:
    """Judges a stated training rate, or the file of a result: possible, expected, near published ones."""
    from tprimat._generated.common import ClaimReport

    answer = ask("claim", [os.fspath(model)], options, config, progress, time_limit)
    return read_answer(ClaimReport, answer, "claim", fine=(1, 5))  # impossible, suspicious


def published(*, progress: bool = False, time_limit: float | None = None,
              **options: Unpack[PublishedListOptions]) -> Records[PublishedEntry]:
    """Published training results that match: `published(model="llama3.1_8b", gpu="H100", sort="mfu")`."""
    from tprimat._generated.published_list import PublishedEntry

    answer = ask("published list", [], options, None, progress, time_limit)
    return read_list(PublishedEntry, answer, "published list")


def load_result(path: Path) -> RunResult:
    """A result file, as `run`, `extract` and the callbacks write it."""
    from tprimat._generated.result import RunResult

    file = pathlib.Path(path)
    try:
        result = RunResult.from_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(Problem(error.strerror or str(error), str(file))) from error
    except ValueError as error:  # DataError too
        raise InputError(Problem(str(error), str(file), "name a result of tprimat run or extract")) from error
    return keep_path(result, file)


def keep_path(result: RunResult, path: pathlib.Path) -> RunResult:
    object.__setattr__(result, "path", path)
    return result
