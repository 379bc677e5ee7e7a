#!/usr/bin/env python3
"""How fast a profiler's trace is read, beside Python's json and, where they are installed, ijson and pysimdjson.

    bench/trace/compare.py build/release/bench/bench_read_trace TRACE.json [--rounds 5]

All on one core, interleaved; MB of text per second of processor time, medians. Every peer adds up the durations of the
kernels by name, the least that anyone wants of a trace.
"""
import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import time

PEERS = {
    "json": """
import json
with open(path) as file:
    events = json.load(file)["traceEvents"]
""",
    "pysimdjson": """
import simdjson
events = simdjson.Parser().load(path)["traceEvents"]
""",
    "ijson": """
import ijson
events = ijson.items(open(path, "rb"), "traceEvents.item")
""",
}
MODULES = {"json": "json", "pysimdjson": "simdjson", "ijson": "ijson"}
SUM = """
totals = {}
for event in events:
    if event.get("cat") == "kernel" or event.get("cat") == "Kernel":
        totals[event["name"]] = totals.get(event["name"], 0) + float(event["dur"])
"""


def read_with(peer, path):
    """MB/s and peak MB of one reading, in this process."""
    begin = time.process_time()
    exec(PEERS[peer] + SUM, {"path": path})
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(os.path.getsize(path) / seconds / 1e6, peak)


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("trace")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return read_with(options.peer, options.trace)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})  # one core for everyone
    rates = {}
    for _ in range(options.rounds):
        for line in run([options.program, options.trace, "1"]).splitlines():
            words = line.split()
            rates.setdefault(f"read_trace, {words[0]}", []).append((float(words[1]), float(words[-2])))
        for peer in (name for name, module in MODULES.items() if importlib.util.find_spec(module)):
            words = run([sys.executable, __file__, options.program, options.trace, "--peer", peer]).split()
            rates.setdefault(peer, []).append((float(words[0]), float(words[1])))
    print(f"{os.path.getsize(options.trace) / 1e6:.0f} MB of text, {options.rounds} rounds")
    for name, found in rates.items():
        speeds = [speed for speed, _ in found]
        print(f"{name:24} {statistics.median(speeds):7.0f} MB/s ({min(speeds):.0f} to {max(speeds):.0f}), "
              f"peak {max(peak for _, peak in found):6.0f} MB")


if __name__ == "__main__":
    main()
