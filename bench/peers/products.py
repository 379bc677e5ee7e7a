#!/usr/bin/env python3
"""The peak that `tprimat probe` measures beside the fastest product of PyTorch, in turns: a slow peak would flatter every MFU.

  products.py PROGRAM                   both formats, 5 rounds
  products.py PROGRAM --formats bf16 --rounds 3 --json products.json

PROGRAM is tprimat, release build; TPRIMAT_PYTHON names a Python with torch (2.13 or later), whose bf16 products are those
of the oneDNN inside it. Ratios are medians of the rounds' ratios; 1 or more: the probe's peak is at least PyTorch's.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import contenders

HERE = pathlib.Path(__file__).resolve().parent


def probe_peaks(options, folder):
    """Of all formats: one probe measures them."""
    output, _ = contenders.run_watched([options.program, "probe", "--json", "--threads", str(options.threads)], {}, folder)
    return {each["precision"]: each["flops_per_second"] for each in json.loads(output)["matmul"]}


def torch_peaks(options, settings, folder):
    return {kind: json.loads(contenders.run_watched([contenders.python(), HERE / "torch_products.py", kind], settings,
                                                    folder)[0]) for kind in options.formats}


def measure(options, settings, folder):
    rows = []
    for number in range(options.rounds):
        sides = [lambda: probe_peaks(options, folder), lambda: torch_peaks(options, settings, folder)]
        found = {side: sides[side]() for side in ((0, 1) if number % 2 == 0 else (1, 0))}
        for kind in options.formats:
            row = {"format": kind, "probe": found[0][kind], "torch": found[1][kind]["flops_per_second"], **found[1][kind]}
            rows.append(row)
            print(f"  {kind}  probe {row['probe'] / 1e9:7.0f}  PyTorch {row['torch'] / 1e9:7.0f} GFLOP/s, "
                  f"{row['form']} {row['shape']}   {row['probe'] / row['torch']:.2f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--formats", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    options.loss, options.allocator, options.mkl, options.instructions = "whole", "kept", "avx512", "all"
    with tempfile.TemporaryDirectory() as name:
        settings, said = contenders.torch_settings(options, pathlib.Path(name))
        print("; ".join(said[1:]))
        rows = measure(options, settings, pathlib.Path(name))
    for kind in options.formats:
        ratios = [row["probe"] / row["torch"] for row in rows if row["format"] == kind]
        print(f"{kind}: the probe's peak is {statistics.median(ratios):.2f} times PyTorch's fastest product")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    try:
        main()
    except contenders.Failed as failure:
        sys.exit(f"error: {failure}")
