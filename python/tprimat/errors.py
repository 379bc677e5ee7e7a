"""What goes wrong, as exceptions: the problem, its place, and the remedy, as the program states them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One problem, in the program's words. An unknown place or remedy is empty."""

    problem: str
    place: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        sentence = f"{self.place}: {self.problem}" if self.place else self.problem
        return f"{sentence}\n  {self.remedy}" if self.remedy else sentence


class TprimatError(Exception):
    """The program refused or failed. `problem`, `place` and `remedy` are those of the first of `problems`."""

    def __init__(self, *problems: Problem, exit_status: int | None = None, output: Any = None) -> None:
        super().__init__("\n".join(str(each) for each in problems))
        self.problems = problems
        self.exit_status = exit_status  # of the program; None if it was not started, or stopped by us
        self.output = output  # what it printed nevertheless, as of a call that succeeds; None: nothing

    @property
    def problem(self) -> str:
        return self.problems[0].problem

    @property
    def place(self) -> str:
        return self.problems[0].place

    @property
    def remedy(self) -> str:
        return self.problems[0].remedy


class RunFailed(TprimatError):
    """Exit status 1: some work failed, or a result is invalid. `output` holds what there is."""


class InputError(TprimatError, ValueError):
    """Exit status 2: a wrong option, configuration or file. Nothing was started."""


class MissingComponent(TprimatError):
    """Exit status 4: a program, framework or package is missing; the remedy names what installs it."""


class GateFailed(TprimatError):
    """Exit status 5: a gate of `fail_if` failed. `output` is the comparison."""


class Inconclusive(TprimatError):
    """Exit status 6: the noise is too large to answer a gate of `fail_if`. `output` is the comparison."""


class TimeLimitReached(TprimatError):
    """The call took longer than its `time_limit`; the program was stopped."""


BY_STATUS: dict[int, type[TprimatError]] = {1: RunFailed, 2: InputError, 4: MissingComponent, 5: GateFailed,
                                            6: Inconclusive}


def make_error(status: int, problems: list[Problem], output: Any = None) -> TprimatError:
    return BY_STATUS.get(status, TprimatError)(*problems, exit_status=status, output=output)
