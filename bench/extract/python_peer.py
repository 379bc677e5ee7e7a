#!/usr/bin/env python3
"""The extractor that everybody writes first: seven regular expressions, tried on every line.

    bench/extract/python_peer.py LOG      prints the number of records and the seconds
"""
import re
import sys
import time

PATTERNS = {
    "step": re.compile(r"iteration\s+(\d+)/\s*(\d+)"),
    "time_ms": re.compile(r"elapsed time per iteration \(ms\):\s*([\d.]+)"),
    "tflops": re.compile(r"throughput per GPU \(TFLOP/s/GPU\):\s*([\d.]+)"),
    "learning_rate": re.compile(r"learning rate:\s*([\d.E+-]+)"),
    "loss": re.compile(r"lm loss:\s*([\d.E+-]+)"),
    "grad_norm": re.compile(r"grad norm:\s*([\d.]+)"),
    "batch": re.compile(r"global batch size:\s*(\d+)"),
}


def extract(path):
    records = []
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            record = {}
            for name, pattern in PATTERNS.items():
                match = pattern.search(line)
                if match:
                    record[name] = float(match.group(1))
            if "step" in record:
                records.append(record)
    return records


if __name__ == "__main__":
    start = time.perf_counter()
    count = len(extract(sys.argv[1]))
    print(count, time.perf_counter() - start)
