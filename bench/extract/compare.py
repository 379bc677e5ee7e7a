#!/usr/bin/env python3
"""How fast a log is read, beside the Python that everybody writes first; both in one run, interleaved.

    bench/extract/compare.py build/release/tprimat [--gigabytes 2] [--ranks 64] [--rounds 5]

Prints medians: GB/s of each on one core from the page cache, their ratio, peak memory, and the time for a 20 KB log with
the start of the process. The Python peer reads a twentieth of the log (its time is linear), the whole takes minutes.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent


def make_log(path, gigabytes, ranks):
    with open(path, "wb") as log:
        subprocess.run([sys.executable, HERE / "make_log.py", "--gigabytes", str(gigabytes), "--ranks", str(ranks)],
                       stdout=log, check=True)


def run_once(command):
    """Wall seconds, CPU seconds, peak resident MB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1: the synthetic run does not reach its last step
        sys.exit(f"{command} ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run_python(path):
    output = subprocess.run([sys.executable, HERE / "python_peer.py", path], capture_output=True, check=True, text=True)
    return float(output.stdout.split()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tprimat")
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})  # one core for everyone
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        whole, part, small = (os.path.join(folder, name) for name in ("whole.log", "part.log", "small.log"))
        make_log(whole, options.gigabytes, options.ranks)
        make_log(part, options.gigabytes / 20, options.ranks)
        make_log(small, 0.00002, options.ranks)
        extract = [options.tprimat, "extract", "--quiet", "--output", os.path.join(folder, "results")]
        run_once(extract + [whole]), run_once(extract + [small])  # into the page cache
        ours, cpu, memory, theirs, short = [], [], [], [], []
        for _ in range(options.rounds):
            seconds, busy, peak = run_once(extract + [whole])
            ours.append(os.path.getsize(whole) / seconds / 1e9)
            cpu.append(os.path.getsize(whole) / busy / 1e9)
            memory.append(peak)
            theirs.append(os.path.getsize(part) / run_python(part) / 1e9)
            short.extend(run_once(extract + [small])[0] * 1e3 for _ in range(5))
        fast, slow = statistics.median(ours), statistics.median(theirs)
        print(f"log: {os.path.getsize(whole) / 1e9:.2f} GB, {options.ranks} interleaved ranks; one core; "
              f"{options.rounds} rounds, medians")
        print(f"tprimat extract   {fast:7.3f} GB/s   ({statistics.median(cpu):.3f} GB per CPU second)")
        print(f"Python re         {slow:7.3f} GB/s")
        print(f"ratio             {fast / slow:7.1f}")
        print(f"peak memory       {max(memory):7.1f} MB")
        print(f"20 KB log         {statistics.median(short):7.2f} ms, process start included")


if __name__ == "__main__":
    main()
