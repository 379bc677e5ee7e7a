"""Starts other programs within a budget: with a deadline, with their output kept, as the whole group that they are."""

import ctypes
import dataclasses
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NOT_STARTED = "not started: this is a dry run"
KEPT = 4 << 20  # bytes of a program's output, of its begin and of its end
LINE = 1 << 20  # characters of a line that is handed over at once
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


def refuse(status, text):
    """2: wrong input; 4: a missing component; 1: another call is at work."""
    print(f"error: {text}", file=sys.stderr)
    raise SystemExit(status)


def note(text):
    """A reader who closed the pipe does not end a measurement."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def die_with_parent():
    """For a child, before its program starts: a killed call leaves nothing on the card."""
    if LIBC:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclasses.dataclass
class Done:
    status: int | None  # None: it was stopped, or could not be started
    output: str
    errors: str
    begin: float  # seconds since 1970
    seconds: float
    late: bool = False  # its time ended, or too little was left to begin

    def failure(self):
        """A sentence, or nothing where all went well."""
        if self.status == 0:
            return None
        if self.status is None:
            return self.errors.strip() or f"ran out of time after {self.seconds:.0f} s"
        return f"exit status {self.status}: {(self.errors.strip() or self.output.strip())[-400:]}"


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def hand_over(printed, on_line):
    """Each line that is complete by now; true once on_line has had enough."""
    while True:
        where = printed.tell()
        line = printed.readline(LINE)
        if not line.endswith("\n") and len(line) < LINE:
            printed.seek(where)
            return False
        if on_line(line):
            return True


def watch(process, path, seconds, on_line):
    """Its status, or None where time ended first or on_line had enough."""
    end = time.monotonic() + seconds
    with open(path, errors="replace") as printed:
        while True:
            left = end - time.monotonic()
            try:
                status = process.wait(timeout=max(0, min(left, 0.2) if on_line else left))
            except subprocess.TimeoutExpired:
                status = None
            enough = on_line is not None and hand_over(printed, on_line)
            if status is not None or enough or left <= 0:
                return status


def read_ends(path):
    """A long file loses its middle, here and where it lies."""
    size = path.stat().st_size
    if size > 2 * KEPT:
        with open(path, "r+b") as file:
            first = file.read(KEPT)
            file.seek(size - KEPT)
            last = file.read(KEPT)
            file.seek(0)
            file.truncate()
            file.write(first + f"\n[{size - 2 * KEPT} bytes left out]\n".encode() + last)
    return path.read_text(errors="replace")


def run(command, log, seconds, environment=None, on_line=None):
    """Runs a program for at most so many seconds; what it printed is in LOG.out and LOG.err, too."""
    begin = time.time()
    paths = [pathlib.Path(f"{log}.{end}") for end in ("out", "err")]
    with open(paths[0], "w") as out, open(paths[1], "w") as errors:
        try:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors,
                                       env={**os.environ, **(environment or {})}, start_new_session=True,
                                       stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        except OSError as failure:
            return Done(None, "", f"{command[0]} cannot be started: {failure}", begin, 0)
        try:
            status = watch(process, paths[0], seconds, on_line)
        finally:
            stop(process)
            process.wait()
    out, errors = map(read_ends, paths)
    return Done(status, out, "" if status is None else errors, begin, time.time() - begin, status is None)


class Budget:
    """How much of the allowed time is left."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


class Runner:
    """Starts nothing for which too little time is left; in a dry run it starts nothing and prints the command lines."""

    def __init__(self, budget, folder, dry_run=False):
        self.budget, self.folder, self.dry_run = budget, folder, dry_run

    def run(self, command, name, needs, environment=None, on_line=None, at_most=float("inf")):
        """`needs`: seconds below which it is not worth a start."""
        left = self.budget.left()
        if self.dry_run:
            settings = [f"{key}={value}" for key, value in (environment or {}).items()]
            note("$ " + shlex.join([*settings, *map(str, command)]))
            return Done(None, "", NOT_STARTED, time.time(), 0)
        if left < needs:
            why = f"not started: needs {needs:.0f} s, {max(0.0, left):.0f} s of the budget are left"
            return Done(None, "", why, time.time(), 0, True)
        return run(command, self.folder / name, min(left, at_most), environment, on_line)


class Programs:
    """Ours: a folder of CMake's, or one that bundle.sh made, whose libraries only they may see."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.environment = {}
        if (self.folder / "lib").is_dir():
            paths = [str(self.folder / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        # Where they look for CUDA's libraries, which PyTorch brought; PYTHON names whose.
        if os.environ.get("PYTHON") or not os.environ.get("VIRTUAL_ENV"):
            self.environment["VIRTUAL_ENV"] = sys.prefix

    def find(self, name):
        """Where it is; where it is missing, the place at which it was looked for first."""
        places = [self.folder / name, self.folder / "tests" / "unit" / "gpu" / name]
        return next((path for path in places if path.is_file()), places[0])
