"""Finds the program tprimat, calls it, and reads its answer."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass
from typing import IO, Any

from tprimat.errors import InputError, MissingComponent, Problem, TimeLimitReached, make_error

SECONDS_TO_STOP = 60.0  # for the program to stop what it started and to write results; a second Ctrl-C ends the wait
SECONDS_TO_READ = 10.0  # the rest of what the program told, where something that it started keeps its output open
SECONDS_UNTIL_SIGNAL = 10.0  # where a terminal has signalled the program too: a second signal hurries it


def find_program() -> str:
    """TPRIMAT_PROGRAM, else the program that was installed with this package, else that of PATH."""
    named = os.environ.get("TPRIMAT_PROGRAM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingComponent(Problem(f"there is no program {named}", "TPRIMAT_PROGRAM",
                                           "name the program, or unset the variable"))
        return found
    for folder in program_folders():
        program = folder / "tprimat"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    found = shutil.which("tprimat")
    if found is None:
        raise MissingComponent(Problem("there is no program tprimat", "PATH",
                                       "pip install tprimat, or put its folder into PATH, or set TPRIMAT_PROGRAM"))
    return found


def program_folders() -> list[pathlib.Path]:
    """Where pip puts programs: of this environment if the package is in it, of `pip install --prefix` or --user, and of
    `pip install --target`."""
    package = pathlib.Path(__file__).resolve().parent
    packages = package.parent
    folders = [packages / "bin"]
    if packages.name in ("site-packages", "dist-packages"):
        folders.insert(0, packages.parent.parent.parent / "bin")  # of PREFIX/lib/pythonX.Y/site-packages
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if str(packages) in {str(pathlib.Path(each).resolve()) for each in libraries}:
        folders.insert(0, pathlib.Path(sysconfig.get_path("scripts")))
    return folders


def describe_versions() -> str:
    """Those of the program and of the package, where they are not the same one; else nothing."""
    try:
        package = importlib.metadata.version("tprimat")
        command = [find_program(), "--version"]
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=SECONDS_TO_READ).stdout.split()
    except (importlib.metadata.PackageNotFoundError, MissingComponent, OSError, subprocess.SubprocessError):
        return ""
    program = told[-1] if told[:1] == ["tprimat"] else "of no known version"
    return "" if program == package else f"{command[0]} is {program}, the package {package}"


@dataclass(frozen=True)
class Answer:
    """What a call printed: `data` is its JSON, None where it printed none."""

    status: int
    data: Any
    problems: list[Problem]


def call_program(words: list[str], progress: bool = False, time_limit: float | None = None) -> Answer:
    """Runs `tprimat WORDS` to its end. With `progress`, what it tells on stderr appears in ours as it comes."""
    end = None if time_limit is None else time.monotonic() + time_limit
    child = start([find_program(), *words])
    assert child.stdout is not None and child.stderr is not None
    printed: list[bytes] = []
    told: list[str] = []
    readers = [threading.Thread(target=collect, args=(child.stdout, printed), daemon=True),
               threading.Thread(target=follow, args=(child.stderr, told, progress), daemon=True)]
    for each in readers:
        each.start()
    status = wait_for(child, time_limit, words)
    join_all(readers, end)
    return Answer(status, parse_output(b"".join(printed).decode("utf-8", "replace")), read_problems(told.copy()))


def start(command: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise InputError(Problem("the arguments are too long for a program", command[1],
                                     "give it less, or state it in a configuration file")) from error
        raise MissingComponent(Problem(f"cannot be started: {error.strerror}", command[0],
                                       "install the package of this machine")) from error
    except ValueError as error:  # a zero byte, or half a character
        raise InputError(Problem(f"an argument cannot be passed to a program: {error}", command[1])) from error


def wait_for(child: subprocess.Popen[bytes], time_limit: float | None, words: list[str]) -> int:
    try:
        return child.wait(time_limit)
    except subprocess.TimeoutExpired:
        stop(child, signal.SIGTERM, 0.0)
        raise TimeLimitReached(Problem(f"tprimat {words[0]} took longer than {time_limit:g} s", "time_limit",
                                       "give it more time, or less work")) from None
    except KeyboardInterrupt:
        stop(child, signal.SIGINT, SECONDS_UNTIL_SIGNAL if is_in_foreground() else 0.0)
        raise
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def join_all(readers: list[threading.Thread], end: float | None) -> None:
    """The program has ended, so that its output ends at once, unless something that it started keeps it open."""
    now = time.monotonic()
    last = now + SECONDS_TO_READ
    if end is not None:
        last = min(last, max(end, now + 1.0))  # what is in the pipe already
    for each in readers:
        each.join(max(0.0, last - time.monotonic()))


def is_in_foreground() -> bool:
    """Whether Ctrl-C on a terminal reaches us, and with us the program. In a notebook it does not."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def stop(child: subprocess.Popen[bytes], how: signal.Signals, patience: float) -> None:
    """Asks, after a while tells, and at last forces the program to end. It ends what it started."""
    for seconds, action in ((patience, how), (SECONDS_TO_STOP, signal.SIGTERM)):
        try:
            child.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            child.send_signal(action)
    try:
        child.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def collect(stdout: IO[bytes], printed: list[bytes]) -> None:
    """As it comes, since the end may not."""
    with stdout:
        while more := os.read(stdout.fileno(), 1 << 16):
            printed.append(more)


def follow(stderr: IO[bytes], told: list[str], progress: bool) -> None:
    with io.TextIOWrapper(stderr, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            told.append(line)
            if progress and not is_errors(line):
                show(line)


def show(line: str) -> None:
    """Our own stderr may be closed, or None: the program must be read all the same."""
    with contextlib.suppress(Exception):
        sys.stderr.write(line)
        sys.stderr.flush()


def is_errors(line: str) -> bool:
    return line.startswith('{"errors":')


def parse_output(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None


def read_problems(told: list[str]) -> list[Problem]:
    """The program's own line of errors (--json); of a program that was killed, its last lines."""
    for line in reversed(told):
        if is_errors(line) and (problems := read_errors(line)):
            return problems
    errors = [line.removeprefix("error: ").strip() for line in told if line.startswith("error: ")]
    return [Problem(each) for each in errors]


def read_errors(line: str) -> list[Problem]:
    """Nothing of a line that is not whole."""
    try:
        return [Problem(str(each["problem"]), str(each.get("place", "")), str(each.get("remedy", "")))
                for each in json.loads(line)["errors"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def require(answer: Answer, words: list[str], output: Any = None) -> None:
    """Raises what the exit status stands for, unless it is 0."""
    if answer.status == 0:
        return
    if answer.status == 130:
        raise KeyboardInterrupt
    ended = f"ended by signal {-answer.status}" if answer.status < 0 else f"ended with exit status {answer.status}"
    problems = answer.problems or [Problem(f"tprimat {words[0]} {ended}")]
    raise make_error(answer.status, problems, output)
