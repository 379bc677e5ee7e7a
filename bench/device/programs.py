"""Running other programs: with a deadline, with their output kept, as the whole group that they are."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Done:
    status: int | None  # None: it ran out of time, or could not be started
    output: str
    errors: str
    begin: float  # seconds since 1970
    seconds: float

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


def run(command, log, seconds, environment=None):
    """Runs a program for at most so many seconds; what it printed is in LOG.out and LOG.err, too."""
    begin = time.time()
    paths = [pathlib.Path(f"{log}.{end}") for end in ("out", "err")]
    if seconds <= 0:
        return Done(None, "", "no time was left for it", begin, 0)
    with open(paths[0], "w") as out, open(paths[1], "w") as errors:
        try:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors,
                                       env={**os.environ, **(environment or {})}, start_new_session=True)
        except OSError as failure:
            return Done(None, "", f"cannot be started: {failure}", begin, 0)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            stop(process)
            process.wait()
    out, errors = (path.read_text(errors="replace") for path in paths)
    return Done(status, out, "" if status is None else errors, begin, time.time() - begin)


class Budget:
    """How much of the allowed time is left."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


class Programs:
    """Ours: a folder of CMake's, or one that bundle.sh made, whose libraries only they may see."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.environment = {}
        if (self.folder / "lib").is_dir():
            paths = [str(self.folder / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)

    def find(self, name):
        for path in (self.folder / name, self.folder / "tests" / "unit" / "gpu" / name, self.folder / "bench" / name):
            if path.is_file():
                return path
        return None

    def benches(self):
        return sorted(path for where in (self.folder, self.folder / "bench") if where.is_dir()
                      for path in where.glob("bench_gpu*") if path.is_file() and os.access(path, os.X_OK))
