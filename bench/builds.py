#!/usr/bin/env python3
"""Is one build of tprimat as fast as another? Both do the same work in turn; prints medians and the ratio's median and spread.

    bench/builds.py OLD NEW [--rounds 9] [--only WORK,...]

OLD and NEW are programs (build/release/tprimat of two checkouts). WORK, by processor time: `start` (extract of a small log),
`extract` (0.25 GB of a Megatron log), `wordy` (0.38 GB: 200 000 steps, each followed by 12 lines that are no records), `compare` (600 results of 500 steps), `plan` (all layouts of Llama 3.1 405B on 16,384
GPUs); by the median step: `train fp32` and `train bf16` (a Llama of 4 layers, 256 wide). A ratio above 1 means NEW is slower.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "tests/golden/compare/clear_winner/runs/train_nvd_nemo_llama.json"
SPEC = {
    "model": {"name": "small", "num_layers": 4, "hidden_size": 256, "ffn_hidden_size": 688, "num_attention_heads": 8,
              "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 4096, "max_position_embeddings": 512},
    "sequence_length": 256, "micro_batch_size": 4, "global_batch_size": 8, "steps": 14}

WORKS = ["start", "extract", "wordy", "compare", "plan", "train fp32", "train bf16"]


def processor_seconds(command, times=1, ends=(0,)):
    total = 0.0
    for _ in range(times):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in ends:
            sys.exit(f"error: {' '.join(map(str, command))}: exit status {child.returncode}")
        total += usage.ru_utime + usage.ru_stime
    return total / times


def extract_seconds(program, log, folder):
    """Writes the result, as people do, to a folder that has none yet."""
    shutil.rmtree(folder / "extracted", ignore_errors=True)
    return processor_seconds([program, "extract", log, "-q", "--output", folder / "extracted"], ends=(1,))


def step_seconds(program, spec, folder):
    steps = folder / "steps.jsonl"
    steps.unlink(missing_ok=True)
    subprocess.run([program, "train", "--spec", spec, "-q"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "TPRIMAT_STEPS": str(steps)})
    records = [json.loads(line) for line in steps.read_text().splitlines()]
    return statistics.median([r["time_seconds"] for r in records if "time_seconds" in r][4:])


def make_works(folder):
    """Maps each work to a function that measures a program. The logs end before their last step: extract exits with status 1."""
    with open(folder / "large.log", "wb") as log:
        subprocess.run([sys.executable, ROOT / "bench/extract/make_log.py", "--gigabytes", "0.25", "--ranks", "8"],
                       stdout=log, check=True)
    with open(folder / "large.log", "rb") as log:
        (folder / "small.log").write_bytes(log.read(20000).rpartition(b"\n")[0] + b"\n")
    with open(folder / "wordy.log", "wb") as log:
        subprocess.run([sys.executable, ROOT / "bench/extract/make_log.py", "--gigabytes", "0.38", "--ranks", "1",
                        "--other-lines", "12"], stdout=log, check=True)
    subprocess.run([sys.executable, ROOT / "bench/compare/make_results.py", TEMPLATE, folder / "results", "--files", "600"],
                   check=True, stdout=subprocess.DEVNULL)
    for precision in ("fp32", "bf16"):
        (folder / f"{precision}.json").write_text(json.dumps({**SPEC, "precision": precision}))
    plan = ["plan", "llama3.1-405b", "--gpu", "H100", "--gpus", "16384", "--gbs", "2048", "--seq", "8192"]
    return {
        "start": lambda program: processor_seconds([program, "extract", folder / "small.log", "--json"], 20, ends=(1,)),
        "extract": lambda program: extract_seconds(program, folder / "large.log", folder),
        "wordy": lambda program: extract_seconds(program, folder / "wordy.log", folder),
        "compare": lambda program: processor_seconds([program, "compare", folder / "results", "--json"], ends=(0, 3)),
        "plan": lambda program: processor_seconds([program, *plan]),
        "train fp32": lambda program: step_seconds(program, folder / "fp32.json", folder),
        "train bf16": lambda program: step_seconds(program, folder / "bf16.json", folder),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="WORK,...", default=WORKS)
    asked = parser.parse_args()
    programs = [asked.old.resolve(), asked.new.resolve()]
    for missing in [program for program in programs if not os.access(program, os.X_OK)]:
        parser.error(f"{missing} is not an executable program")
    for unknown in set(asked.only) - set(WORKS):
        parser.error(f"--only: unknown work {unknown}; choose from {', '.join(WORKS)}")
    with tempfile.TemporaryDirectory(prefix="tprimat_builds_") as name:
        works = make_works(pathlib.Path(name))
        print(f"{'work':12} {'old':>10} {'new':>10} {'new/old':>8}   ratios of the rounds")
        for work in asked.only:
            rounds = []
            for number in range(asked.rounds):
                order = (0, 1) if number % 2 == 0 else (1, 0)
                measured = {each: works[work](programs[each]) for each in order}
                rounds.append((measured[0], measured[1]))
            old, new = (statistics.median(pair[each] for pair in rounds) for each in (0, 1))
            ratios = sorted(pair[1] / pair[0] for pair in rounds)
            quarter = len(ratios) // 4
            least = min(pair[1] for pair in rounds) / min(pair[0] for pair in rounds)
            print(f"{work:12} {old * 1e3:7.1f} ms {new * 1e3:7.1f} ms {statistics.median(ratios):8.3f}   "
                  f"{ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}, of the minima {least:.3f}", flush=True)


main()
