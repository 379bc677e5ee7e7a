#!/usr/bin/env python3
"""How long `tprimat compare` takes over many result files, and how much memory: seconds and peak resident MB of each command.

usage: load_speed.py PROGRAM TEMPLATE [--files 10000] [--steps 500] [--rounds 3] [--folder DIR] [--kinds dates,repetitions,configurations]

TEMPLATE is a result file; make_results.py makes the others out of it (kept in DIR when given). Files are read once before the clock
starts, so the disk is not measured. The first --history builds its index, the later ones find it.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def measure(command):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    complaint = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - start
    code = os.waitstatus_to_exitcode(status)
    child.returncode = code
    if code not in (0, 3):
        sys.exit(f"{' '.join(command)} ended with {code}: {complaint}")
    return seconds, usage.ru_maxrss / 1000, usage.ru_utime + usage.ru_stime


def report(name, command, rounds):
    runs = [measure(command) for _ in range(rounds)]
    seconds = statistics.median(run[0] for run in runs)
    print(f"{name:44} {seconds:6.2f} s {max(run[1] for run in runs):6.0f} MB  ({statistics.median(run[2] for run in runs):.2f} s of processors)",
          flush=True)


def make_files(options, folder, kind):
    place = folder / kind
    if len(list(place.glob("*.json"))) != options.files:
        subprocess.run([sys.executable, HERE / "make_results.py", options.template, place, "--files", str(options.files), "--steps",
                        str(options.steps), "--kind", kind, "--drift", "3"], check=True, stdout=subprocess.DEVNULL)
    for path in place.glob("*.json"):
        path.read_bytes()
    return place


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("template", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--kinds", default="dates,repetitions,configurations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or pathlib.Path(scratch)
        for kind in options.kinds.split(","):
            place = make_files(options, folder, kind)
            output = ["--output", scratch + "/output", "--quiet"]
            report(f"compare, {kind}", [options.program, "compare", str(place), *output], options.rounds)
            index = place / ".tprimat-history.sqlite"
            index.unlink(missing_ok=True)
            report(f"compare --history, {kind}, no index yet", [options.program, "compare", "--history", str(place), *output], 1)
            report(f"compare --history, {kind}", [options.program, "compare", "--history", str(place), *output], options.rounds)


if __name__ == "__main__":
    main()
