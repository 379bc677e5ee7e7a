#!/usr/bin/env python3
"""The peak that `tprimat probe` measures beside the fastest product of PyTorch, and of another oneDNN, in turns: a slow
peak would flatter every MFU.

  products.py PROGRAM                   both formats, 5 rounds
  products.py PROGRAM --formats bf16 --rounds 3 --json products.json
  products.py PROGRAM --onednn /tmp/onednn/lib/libdnnl.so.3
                                        the newest oneDNN too, after: python3 -m venv /tmp/onednn;
                                        /tmp/onednn/bin/pip install onednn (2 GB)

PROGRAM is tprimat, release build; TPRIMAT_PYTHON names a Python with torch (2.13 or later), whose bf16 products are those
of the oneDNN inside it. Ratios are medians of the rounds' ratios; 1 or more: the probe's peak is at least the other's.
Where neighbours slow whole rounds, the largest of all rounds are the better comparison.
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


def peer_peaks(options, settings, folder, script):
    """`script`: the program that measures one format, and its first arguments."""
    return {kind: json.loads(contenders.run_watched([contenders.python(), *script, kind], settings, folder)[0])
            for kind in options.formats}


def peers_of(options, settings, folder):
    """Name to what measures its peaks."""
    peers = {"PyTorch": lambda: peer_peaks(options, settings, folder, [HERE / "torch_products.py"])}
    if options.onednn:
        libraries = [str(options.onednn.resolve().parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        beside = {"LD_LIBRARY_PATH": ":".join(libraries), "GLIBC_TUNABLES": contenders.ALLOCATOR}
        driver = options.onednn.resolve().parent / "libintelocl.so"
        if driver.is_file():  # without it, PyPI's oneDNN sees no processor
            beside["OCL_ICD_FILENAMES"] = str(driver)
        script = [HERE / "onednn_products.py", options.onednn, options.threads]
        peers["oneDNN"] = lambda: peer_peaks(options, beside, folder, script)
    return peers


def measure(options, peers, folder):
    rows = []
    for number in range(options.rounds):
        sides = {"probe": lambda: probe_peaks(options, folder), **peers}
        found = {name: sides[name]() for name in (sides if number % 2 == 0 else reversed(sides))}
        for kind in options.formats:
            for name in peers:
                row = {"format": kind, "probe": found["probe"][kind], "peer": name, **found[name][kind]}
                rows.append(row)
                print(f"  {kind}  probe {row['probe'] / 1e9:7.0f}  {name} {row.get('version', '')} "
                      f"{row['flops_per_second'] / 1e9:7.0f} GFLOP/s, {row['form']} {row['shape']}   "
                      f"{row['probe'] / row['flops_per_second']:.2f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--formats", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--onednn", type=pathlib.Path, metavar="LIBRARY", help="libdnnl.so.3 of another oneDNN")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    if options.onednn and not options.onednn.is_file():
        parser.error(f"there is no file {options.onednn}: name the libdnnl.so.3 of another oneDNN")
    options.loss, options.allocator, options.mkl, options.instructions = "whole", "kept", "avx512", "all"
    with tempfile.TemporaryDirectory() as name:
        settings, said = contenders.torch_settings(options, pathlib.Path(name))
        print("; ".join(said[1:]))
        peers = peers_of(options, settings, pathlib.Path(name))
        rows = measure(options, peers, pathlib.Path(name))
    for kind in options.formats:
        for peer in peers:
            pairs = [(row["probe"], row["flops_per_second"]) for row in rows
                     if (row["format"], row["peer"]) == (kind, peer)]
            ratio = statistics.median(probe / theirs for probe, theirs in pairs)
            largest = max(probe for probe, _ in pairs) / max(theirs for _, theirs in pairs)
            print(f"{kind}: the probe's peak is {ratio:.2f} times {peer}'s fastest product; the largest of all rounds "
                  f"{largest:.2f} times theirs")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    try:
        main()
    except contenders.Failed as failure:
        sys.exit(f"error: {failure}")
