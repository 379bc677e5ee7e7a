"""Trains the two sides of a cause with the built `tprimat run`, A plain, B with the cause inside: at once, in turns of a step,
so that a machine which other programs slow down for seconds slows both down."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPORT, TURNS = "injected.jsonl", "turns"  # of a side, of a pair
NEVER = ((1 << 63) - 1).to_bytes(8, sys.byteorder)
BURNERS = 3


@dataclasses.dataclass
class Programs:
    """What is built, and a folder with copies that stand beside each other as the product's do."""

    tprimat: pathlib.Path
    trainer: pathlib.Path  # with the injections, in place of tprimat-train
    slow_sockets: pathlib.Path
    folder: pathlib.Path

    def install(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        shutil.copy(self.tprimat, self.folder / "tprimat")
        shutil.copy(self.trainer, self.folder / "tprimat-train")
        module = self.tprimat.parent / "libtprimat_mpi.so"
        if module.exists():
            shutil.copy(module, self.folder)
        for framework in ("tran", "fsdp"):  # this Python serves both
            (self.folder / framework).symlink_to(sys.prefix)


@dataclasses.dataclass
class Side:
    explained: pathlib.Path  # its result, or its traces
    step_seconds: float  # mean of its steps, as the training measured them: unprofiled, or of the traces
    injected_seconds: float  # per such step, as the injector measured it


def environment(programs, cause, side, folder):
    variables = {**os.environ, "TPRIMAT_FRAMEWORKS": str(programs.folder), "TPRIMAT_INJECTED": str(folder / REPORT),
                 "OMPI_MCA_mpi_yield_when_idle": "1"}
    variables["TPRIMAT_INJECTION"] = (cause.injection if side == "B" else "") or cause.both
    variables["PYTHONPATH"] = str(HERE / "torch_injection")
    if cause.takes_turns:
        variables["TPRIMAT_TURNS"] = f"{folder.parent / TURNS}:{'AB'.index(side)}:{cause.ranks}"
    if side == "B" and cause.slow_sockets:
        variables |= {"LD_PRELOAD": str(programs.slow_sockets), "TPRIMAT_SLOW_SOCKETS": str(cause.slow_sockets)}
    return variables


def processors_of(cause):
    """One rank computes on one processor."""
    usable = os.sched_getaffinity(0)
    return {max(usable)} if cause.ranks == 1 else usable


def before_exec(processors, nice=-15):
    """On these processors; where this is allowed, ahead of what else the machine does."""

    def prepare():
        os.sched_setaffinity(0, processors)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)

    return prepare


@contextlib.contextmanager
def busy(processors, nice=-15):
    """Processes that never wait, one for each of these processors."""
    with contextlib.ExitStack() as started:
        for each in processors:
            burner = subprocess.Popen([sys.executable, HERE / "burner.py", str(nice)], preexec_fn=before_exec({each}, nice),
                                      start_new_session=True)
            started.callback(burner.wait)
            started.callback(burner.kill)
        yield


def injected_per_step(report, first, last):
    if not report.exists():
        return 0.0
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return statistics.mean(line["seconds"] for line in lines if first <= line["step"] <= last)


def train(programs, framework, cause, folder):
    """Both sides, A and B. A pair that an earlier call has kept is not trained again."""
    folders = [folder / side for side in "AB"]
    if not all(has_profile(each) for each in folders):
        shutil.rmtree(folder, ignore_errors=True)  # of a call that was interrupted
        folder.mkdir(parents=True)
        (folder / TURNS).write_bytes(bytes(16 * cause.ranks))
        awake = busy(processors_of(cause) if cause.sleeps else [], nice=19)
        with awake, concurrent.futures.ThreadPoolExecutor(2 if cause.takes_turns else 1) as pool:
            runs = [pool.submit(run, programs, framework, cause, side, folder / side) for side in "AB"]
        failures = [str(each.exception()) for each in runs if each.exception()]
        if failures:
            raise SystemExit("\n".join(failures))
    return [read_side(each) for each in folders]


def has_profile(folder):
    return any("profile" in json.loads(path.read_text()) for path in (folder / "output").glob("train_*.json"))


def leave_turns(folder, cause, side):
    """The other side goes on alone."""
    with open(folder / TURNS, "r+b") as turns:
        turns.seek(8 * cause.ranks * "AB".index(side))
        turns.write(NEVER * cause.ranks)


def run(programs, framework, cause, side, folder):
    folder.mkdir()
    (folder / "config.yaml").write_text(cause.config(side))
    command = [programs.folder / "tprimat", "run", "--framework", framework, "-q", "--profile-steps", str(cause.profiled_steps)]
    try:
        # Several, since the kernel shares a processor out among sessions.
        with busy([cause.busy_core] * BURNERS if side == "B" and cause.busy_core is not None else []):
            done = subprocess.run(command, cwd=folder, env=environment(programs, cause, side, folder), capture_output=True,
                                  text=True, preexec_fn=before_exec(processors_of(cause)))
    finally:
        leave_turns(folder.parent, cause, side)
    if done.returncode != 0:
        logs = "".join(log.read_text()[-3000:] for log in folder.rglob("*.log"))
        raise SystemExit(f"{framework}, {cause.name}, side {side}: {command} failed with {done.returncode}:\n"
                         f"{done.stdout}{done.stderr}{logs}")


def read_side(folder):
    """A profiler that takes more than its bound would be refused beside the result: PyTorch's does on a processor, where
    operations are short. Then the recorded steps are compared, without the result."""
    path, report = next((folder / "output").glob("train_*.json")), folder / REPORT
    result = json.loads(path.read_text())
    if "profile" not in result:
        raise SystemExit(f"{path} has no profile: {'; '.join(result.get('warnings', []))}")
    profile = result["profile"]
    if result["framework"] == "native":
        first = result["warmup"]["steps_excluded"] + 1
        return Side(path, result["statistics"]["mean"], injected_per_step(report, first, len(result["step_times"])))
    injected = injected_per_step(report, profile["first_step"], profile["last_step"])
    return Side((folder / "output" / profile["files"][0]).parent, statistics.mean(profile["step_times"]), injected)
