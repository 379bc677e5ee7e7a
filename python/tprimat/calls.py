"""The commands of tprimat as functions. Each runs the program, and returns its --json output as dataclasses.

Options are those of the command line: `--target-days 60` is `target_days=60`, `--gpu H100,B200` is
`gpu=["H100", "B200"]`, `--lora` is `lora=True`. Two more belong to the call itself: `progress=True` shows the program's
progress on stderr; `time_limit` stops the program after that many seconds. docs/python.md has examples.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import typing
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Union

from tprimat.errors import InputError, Problem, make_error
from tprimat.program import Answer, call_program, describe_versions, require
from tprimat.record import DataError, Record, shape_of
from tprimat.tables import Records
from tprimat.words import make_words, write_path, write_word

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tprimat._generated.common import ClaimReport
    from tprimat._generated.compare import ComparisonReport
    from tprimat._generated.estimate_flops import FlopReport
    from tprimat._generated.estimate_memory import MemoryEstimate
    from tprimat._generated.options import (ClaimOptions, CompareOptions, EstimateOptions, ExtractOptions, PlanOptions,
                                            ProbeOptions, PublishedListOptions, RunOptions, WhyOptions)
    from tprimat._generated.plan import PlanComparison
    from tprimat._generated.probe import ProbeReport
    from tprimat._generated.probe_gpu import GpuProbeReport
    from tprimat._generated.probe_model import ModelProbeReport
    from tprimat._generated.published_list import PublishedEntry
    from tprimat._generated.result import RunResult
    from tprimat._generated.run import RunReport
    from tprimat._generated.why import WhyReport

Path = Union[str, "os.PathLike[str]"]
Item = TypeVar("Item", bound=Record)
FAILED, NO_VERDICT, SUSPICIOUS = 1, 3, 5  # exit statuses beside which there is an output


def ask(command: str, arguments: Iterable[str], options: Mapping[str, Any], stated: Iterable[str] = (),
        progress: bool = False) -> Answer:
    """`stated`: options that are part of the call. Arguments come after `--`, so that none becomes an option."""
    given = dict(options)
    config, limit = given.pop("config", None), given.pop("time_limit", None)
    progress = given.pop("progress", progress)
    words = [*command.split(), *stated, *make_words(command, given), "--json"]
    if config is not None:
        words += write_word("--config", write_path("config", config))
    if limit is not None and (type(limit) not in (int, float) or not limit >= 0):
        raise InputError(Problem(f"time_limit is {limit!r}", "time_limit", "give it a number of seconds"))
    paths = list(arguments)
    return call_program([*words, "--", *paths] if paths else words, progress, limit)


def read_answer(kind: type[Item], answer: Answer, command: str, fine: Iterable[int] = ()) -> Item:
    """The record that was printed. `fine`: exit statuses that the record explains itself."""
    output = read_all(kind, [answer.data], answer, command, fine)[0]
    if answer.status not in fine:
        require(answer, [command], output)
    return output


def read_list(kind: type[Item], answer: Answer, command: str, fine: Iterable[int] = ()) -> Records[Item]:
    output = read_all(kind, answer.data, answer, command, fine)
    if answer.status not in fine:
        require(answer, [command], output)
    return output


def read_all(kind: type[Item], data: Any, answer: Answer, command: str, fine: Iterable[int]) -> Records[Item]:
    if answer.data is None:
        require(answer, [command])
        raise make_error(answer.status, [Problem(f"tprimat {command} printed no JSON", "", advise_versions())])
    try:
        return Records(kind.from_json(each) for each in data)
    except (DataError, TypeError) as error:
        raise make_error(answer.status, [Problem(str(error), f"the output of tprimat {command}",
                                                 advise_versions())]) from error


def advise_versions() -> str:
    versions = describe_versions()
    return (f"{versions}: " if versions else "") + "use the program and the package of one version"


def run(**options: Unpack[RunOptions]) -> RunReport:
    """Trains the configured models, and measures them. Shows the program's progress; `progress=False` is quiet.

    Raises RunFailed if a run failed; its `output` has all runs."""
    from tprimat._generated.run import RunReport

    return read_answer(RunReport, ask("run", [], options, progress=True), "run")


def extract(log: Path, **options: Unpack[ExtractOptions]) -> RunResult:
    """Turns the log of any framework into a result, and writes it into the results folder; with `output="-"`, nowhere.

    A log that shows a failed training, or no steps, gives a result too: see its `status`."""
    from tprimat._generated.result import RunResult

    path = write_path("log", log)
    if options.get("attempt") == "all" or os.path.isdir(path):
        raise InputError(Problem("holds several results", path, "tprimat.extract_all returns them"))
    return read_answer(RunResult, ask("extract", [path], options), "extract", fine=(FAILED,))


def extract_all(*paths: Path, **options: Unpack[ExtractOptions]) -> Records[RunResult]:
    """The results of several logs, or of a folder of logs; without one, of the newest logs in the usual places. A log
    that gave no result is left out."""
    from tprimat._generated.extract_folder import ExtractedLog
    from tprimat._generated.extract_gathered import GatheredLogs
    from tprimat._generated.result import RunResult

    answer = ask("extract", write_paths(paths), options)
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return load_known(each.result for each in read_list(ExtractedLog, answer, "extract", fine=(FAILED,)))
    if not paths:
        return load_known(each.result for each in read_answer(GatheredLogs, answer, "extract", fine=(FAILED,)).taken)
    if isinstance(answer.data, dict):  # of one log
        return Records([read_answer(RunResult, answer, "extract", fine=(FAILED,))])
    return read_list(RunResult, answer, "extract", fine=(FAILED,))


def load_known(files: Iterable[str | None]) -> Records[RunResult]:
    return load_results(*(find_file(each) for each in files if each))


def find_file(stated: str) -> pathlib.Path:
    """JSON states U+FFFD for what is not UTF-8 in a name: then it is the only file of the folder that reads so."""
    file = pathlib.Path(stated)
    if "\ufffd" not in stated or file.exists():
        return file
    near = [each for each in file.parent.glob("*") if read_name(each) == read_name(file)]
    if len(near) == 1:
        return near[0]
    raise InputError(Problem(f"holds {file.name}, a name that is not UTF-8", str(file.parent),
                             "rename its log, or read the results with tprimat.load_results"))


def read_name(file: pathlib.Path) -> str:
    """One U+FFFD for each piece that is not UTF-8, however long."""
    return re.sub("\ufffd+", "\ufffd", os.fsencode(file.name).decode("utf-8", "replace"))


def write_paths(paths: Iterable[Path]) -> list[str]:
    return [write_path("paths", each) for each in paths]


def compare(*paths: Path, **options: Unpack[CompareOptions]) -> ComparisonReport:
    """Compares results: files, or folders of them; without one, the results folder. Writes the report there.

    Pairs that did different work have no verdict and say why. Raises GateFailed and Inconclusive for `fail_if`."""
    from tprimat._generated.compare import ComparisonReport

    answer = ask("compare", write_paths(paths), options)
    return read_answer(ComparisonReport, answer, "compare", fine=(FAILED, NO_VERDICT))


def why(a: Path, b: Path | None = None, **options: Unpack[WhyOptions]) -> WhyReport:
    """Why B's step takes longer than A's: `why("old.json", "new.json").largest`. The terms' seconds add up to the gap.

    A side is a result with a profile, a trace, or a folder with one trace per rank. One side alone needs
    `against="planner"` or `"roofline"`."""
    from tprimat._generated.why import WhyReport

    if b is None and "against" not in options:
        raise InputError(Problem("needs two sides, and one is given", "b", 'name b, or add against="planner"'))
    sides = [write_path(name, each) for name, each in (("a", a), ("b", b)) if each is not None]
    return read_answer(WhyReport, ask("why", sides, options), "why")


def plan(model: str | None = None, **options: Unpack[PlanOptions]) -> PlanComparison:
    """Ranks the layouts of a model on GPUs by predicted step time: `plan("llama3_8b", gpu="H100", gpus=64).best`."""
    from tprimat._generated.plan import PlanComparison

    answer = ask("plan", [] if model is None else [write_path("model", model)], options)
    return read_answer(PlanComparison, answer, "plan", fine=(FAILED,))  # no layout fits, or none in the days asked for


def estimate(model: str, **options: Unpack[EstimateOptions]) -> FlopReport:
    """A model's parameters and FLOPs per token, part by part."""
    from tprimat._generated.estimate_flops import FlopReport

    stated = write_word("--flops", write_path("model", model))
    return read_answer(FlopReport, ask("estimate", [], options, stated), "estimate")


def estimate_memory(model: str, **options: Unpack[EstimateOptions]) -> Records[MemoryEstimate]:
    """Predicted memory of the layout that is configured for a model, one for each framework."""
    from tprimat._generated.estimate_memory import MemoryEstimate

    stated = write_word("--memory", write_path("model", model))
    return read_list(MemoryEstimate, ask("estimate", [], options, stated), "estimate")


def probe(**options: Unpack[ProbeOptions]) -> ProbeReport | GpuProbeReport | ModelProbeReport:
    """Measures this machine's matrix products and memory; with `model`, that model's matrix products. Shows its
    progress."""
    from tprimat._generated.probe import ProbeReport
    from tprimat._generated.probe_gpu import GpuProbeReport
    from tprimat._generated.probe_model import ModelProbeReport

    answer = ask("probe", [], options, progress=True)
    if options.get("device") not in (None, "cpu"):
        return read_answer(GpuProbeReport, answer, "probe")
    return read_answer(ModelProbeReport, answer, "probe") if options.get("model") else \
        read_answer(ProbeReport, answer, "probe")


def claim(model: Path, **options: Unpack[ClaimOptions]) -> ClaimReport:
    """Judges a stated training rate, or the file of a result: possible, expected, near published ones."""
    from tprimat._generated.common import ClaimReport

    answer = ask("claim", [write_path("model", model)], options)
    return read_answer(ClaimReport, answer, "claim", fine=(FAILED, SUSPICIOUS))


def published(**options: Unpack[PublishedListOptions]) -> Records[PublishedEntry]:
    """Published training results that match: `published(model="llama3.1_8b", gpu="H100", sort="mfu")`."""
    from tprimat._generated.published_list import PublishedEntry

    return read_list(PublishedEntry, ask("published list", [], options), "published list")


def load_result(path: Path) -> RunResult:
    """Reads a result file of `run`, `extract` or a callback, with the figures that the file states: `extract` and
    `compare` check them. The program converts files of earlier versions."""
    from tprimat._generated.result import RunResult

    file = pathlib.Path(write_path("path", path))
    try:
        data = parse_result(file.read_text(encoding="utf-8"))
        warn_of_newer(data, file)
        result = RunResult.from_json(data)
    except OSError as error:
        raise InputError(Problem(error.strerror or str(error), str(file))) from error
    except DataError:
        result = read_answer(RunResult, ask("extract", [str(file)], {"output": "-"}), "extract")
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(error), str(file), "name a result of tprimat run or extract")) from error
    object.__setattr__(result, "path", file)
    return result


def warn_of_newer(data: Any, file: pathlib.Path) -> None:
    from tprimat._generated.result import RunResult

    known = max(typing.get_args(shape_of(RunResult).types["schema_version"]))
    stated = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(stated, int) and stated > known:
        warnings.warn(f"{file}: its schema_version is {stated}, and this package knows {known}: figures may be missing "
                      "or mean something else; install a newer package", stacklevel=3)


def parse_result(text: str) -> Any:
    """Without NaN and infinity, which JSON does not have."""
    return json.loads(text, parse_constant=refuse_number, parse_float=read_float)


def refuse_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def read_float(word: str) -> float:
    number = float(word)
    return number if math.isfinite(number) else refuse_number(word)


def load_results(*paths: Path) -> Records[RunResult]:
    """Reads result files, and all result files of a folder. Other JSON files in the folder are ignored."""
    files: list[pathlib.Path] = []
    for path in map(pathlib.Path, write_paths(paths)):
        files += filter(states_version, sorted(path.glob("*.json"))) if path.is_dir() else [path]
    return Records(load_result(each) for each in files)


def states_version(file: pathlib.Path) -> bool:
    """Whether it looks like a result, if a damaged one."""
    try:
        return file.is_file() and '"schema_version"' in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # load_result says why it cannot be read
