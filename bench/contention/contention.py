#!/usr/bin/env python3
"""Tokens per second of the native trainer and of PyTorch beside other busy processes, as shares of the quiet machine.

  contention.py PROGRAM --json contention.json      what docs/performance.md wants: the small model of the default
                                                    configuration, bf16 and fp32, no, one and two busy processes
  contention.py PROGRAM --also OLD --contenders native --model llama --batch 4x512
                                                    two builds of ours side by side, on a larger model
  contention.py PROGRAM --busy 0 --quotas 1.5       within a control group's quota of 1.5 processors, as root

PROGRAM is tprimat, release build; nothing else should run. TPRIMAT_PYTHON names a Python with torch (2.13 or later).

A busy process is one thread that computes and never waits. In one round each contender trains once in each condition, in
an order that turns. Of a process the median step counts, the first one not; of the rounds the median. All losses of the
native trainer must have the same bits whatever runs beside it, or the program ends with a sentence.

What is fair: of P processors and H busy threads beside P of ours, each thread gets P / (P + H) of a processor, so that
is the share of the quiet speed that a trainer gets which wastes nothing (two processors: 0.67 beside one, 0.5 beside
two). Of a quota of Q processors it is Q / P.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import compare as peers  # noqa: E402
import contenders  # noqa: E402

BUSY = "import os\nwhile os.getppid() == {}:\n    sum(range(100000))"  # ends with whoever started it


@contextlib.contextmanager
def busy_processes(count):
    command = [sys.executable, "-c", BUSY.format(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def processor_quota(processors):
    """This process and its children in a control group of their own (version 1 or 2)."""
    root = pathlib.Path("/sys/fs/cgroup")
    is_old = (root / "cpu/cpu.cfs_quota_us").exists()
    parent = root / "cpu" if is_old else root
    group = parent / f"tprimat_{os.getpid()}"
    try:
        group.mkdir()
        if is_old:
            (group / "cpu.cfs_quota_us").write_text(str(round(processors * 100000)))
        else:
            (parent / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text(f"{round(processors * 100000)} 100000")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        raise contenders.Failed(f"no control group with a quota of the processors can be made: {error}; run as root on a machine "
                                "with cgroups, or leave out --quotas") from error
    try:
        yield
    finally:
        (parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@dataclasses.dataclass(frozen=True)
class Condition:
    """What else is on the machine, or how much of it the trainer may take."""
    busy: int = 0
    quota: float | None = None

    def __str__(self):
        return f"quota {self.quota}" if self.quota else str(self.busy)

    def hold(self):
        return processor_quota(self.quota) if self.quota else busy_processes(self.busy)

    def fair_share(self, processors):
        return self.quota / processors if self.quota else processors / (processors + self.busy)


class Losses:
    """Of each build and cell the losses of all its steps: the same in every condition."""

    def __init__(self):
        self.first = {}

    def check(self, key, spec, folder):
        losses = [json.loads(line)["loss"] for line in (folder / "steps.jsonl").read_text().splitlines()]
        if self.first.setdefault(key, losses) != losses:
            raise contenders.Failed(f"{key}: the losses differ from those of an earlier run: {losses}")


def make_cells(options, settings, folder):
    for precision in options.precisions:
        cell = peers.make_cell(options, settings, folder, (options.model, options.batch, precision))
        for path in options.also:
            cell.runners[f"native {path}"] = contenders.Native(path, {})
        yield cell


def measure(options, cells, folder):
    """Condition, cell and contender to the median step of each round."""
    seconds, losses = {}, Losses()
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}")
        for cell in cells:
            places = [(name, condition) for name in cell.runners for condition in options.conditions]
            shift = number * len(places) // options.rounds
            for name, condition in places[shift:] + places[:shift]:
                with condition.hold():
                    outcome = cell.runners[name].run(cell.spec, folder)
                if isinstance(cell.runners[name], contenders.Native):
                    losses.check((cell.name(), name), cell.spec, folder)
                step = statistics.median(outcome.seconds[peers.WARMUP:])
                seconds.setdefault((cell.name(), name), {}).setdefault(condition, []).append(step)
                print(f"  {cell.name()}  {name:17} beside {condition}: {step:8.3f} s/step", flush=True)
    return seconds


def rows_of(seconds, cells, options):
    processors = len(os.sched_getaffinity(0))
    tokens = {cell.name(): cell.tokens for cell in cells}
    for (cell, name), of in seconds.items():
        quiet = statistics.median(of[Condition()]) if Condition() in of else None
        for condition in options.conditions:
            step = statistics.median(of[condition])
            yield {"cell": cell, "contender": name, "condition": str(condition), "tokens_per_second": tokens[cell] / step,
                   "share_of_quiet": quiet / step if quiet else None, "fair_share": condition.fair_share(processors),
                   "seconds_per_step": of[condition]}


def print_table(rows):
    print(f"\n{'cell':20}{'contender':24}{'beside':>10}{'tokens/s':>10}{'of quiet':>10}{'fair':>7}")
    for row in rows:
        share = f"{row['share_of_quiet']:.2f}" if row["share_of_quiet"] else ""
        print(f"{row['cell']:20}{row['contender']:24}{row['condition']:>10}{row['tokens_per_second']:>10.0f}{share:>10}"
              f"{row['fair_share']:>7.2f}")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--also", nargs="+", default=[], metavar="PROGRAM", help="other builds of tprimat")
    parser.add_argument("--model", choices=peers.MODELS, default="small")
    parser.add_argument("--batch", choices=peers.BATCHES, default="4x256")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["bf16", "fp32"])
    parser.add_argument("--contenders", nargs="+", choices=("native", "eager", "compile"), default=["native", "eager"])
    parser.add_argument("--busy", nargs="+", type=int, default=[0, 1, 2], help="busy processes beside")
    parser.add_argument("--quotas", nargs="+", type=float, default=[], help="processors that a control group leaves")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="of 2048 tokens")
    parser.add_argument("--layers", type=int, help="fewer than the model has: a trial, no measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bf16", choices=("autocast", "weights"), default="weights", help="PyTorch's form")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured")
    parser.set_defaults(loss="whole", allocator="kept", mkl="avx512", instructions="all")
    options = parser.parse_args()
    options.conditions = [Condition(busy) for busy in options.busy] + [Condition(quota=quota) for quota in options.quotas]
    return options


def main():
    options = read_options()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            settings, said = contenders.torch_settings(options, folder)
            print("; ".join([f"{options.threads} threads", f"load before: {os.getloadavg()[0]:.1f}", *said]))
            cells = list(make_cells(options, settings, folder))
            rows = list(rows_of(measure(options, cells, folder), cells, options))
    except contenders.Failed as failure:
        sys.exit(str(failure))
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "peer_settings": said, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
