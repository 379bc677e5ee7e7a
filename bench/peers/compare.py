#!/usr/bin/env python3
"""Tokens per second of the native trainer and of PyTorch on this machine's CPU, measured in one run.

  compare.py PROGRAM [--rounds 5] [--steps 6] [--threads N] [--without-compile]     PROGRAM is tprimat, release build

Every contender trains the same shape in a process of its own. One round runs each of them once, in an order that turns, so that a busy or
throttled machine slows all alike. A process' first steps (allocation, compilation) do not count; of the others the median does, and of
the rounds' medians the median again. TPRIMAT_PYTHON names a Python with torch (2.13 or later).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WARMUP = 2
# A Llama of GPT-2's size, 123.6 M parameters: the shape of bench_train_step.
MODEL = {"name": "llama124m", "full_name": "Llama shape of GPT-2's size", "num_layers": 12, "hidden_size": 768, "ffn_hidden_size": 2048,
         "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "vocab_size": 50257, "max_position_embeddings": 1024,
         "tied_embeddings": True, "qkv_bias": False, "rope_theta": 10000.0, "norm_eps": 1e-5}
OPTIMIZER = {"learning_rate": 3e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_grad_norm": 1.0,
             "schedule": "constant"}
BATCH = {"sequence_length": 512, "micro_batch_size": 4, "global_batch_size": 4, "seed": 42}
# What PyTorch's processes get: an allocator that keeps its memory, in huge pages. The native trainer asks for them itself.
KEEP = 1 << 34
ALLOCATOR = f"glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold={KEEP}:glibc.malloc.trim_threshold={KEEP}:glibc.malloc.top_pad=268435456"


def run_native(program, spec, folder):
    steps = folder / "steps.jsonl"
    steps.unlink(missing_ok=True)
    environment = {**os.environ, "TPRIMAT_STEPS": str(steps)}
    subprocess.run([program, "train", "--spec", spec], check=True, stdout=subprocess.DEVNULL, env=environment)
    return [json.loads(line)["time_seconds"] for line in steps.read_text().splitlines()]


def run_torch(spec, threads, *flags):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "GLIBC_TUNABLES": ALLOCATOR}
    done = subprocess.run([python(), HERE / "torch_step.py", spec, *flags], check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def python():
    return os.environ.get("TPRIMAT_PYTHON", sys.executable)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def contenders(options, folder):
    """Name to a function that runs it once and returns its steps' seconds."""
    for precision in ("bf16", "fp32"):
        spec = folder / f"{precision}.json"
        spec.write_text(json.dumps({"model": MODEL, "optimizer": OPTIMIZER, **BATCH, "precision": precision,
                                    "steps": options.steps + WARMUP, "threads": options.threads}))
        yield f"native {precision}", lambda spec=spec: run_native(options.program, spec, folder)
        yield f"torch eager {precision}", lambda spec=spec: run_torch(spec, options.threads)
        if not options.without_compile:
            yield f"torch compile {precision}", lambda spec=spec: run_torch(spec, options.threads, "--compile")


def measure(options, folder):
    """Name to one median of seconds per round. A contender that fails once is out, and said to be."""
    runners = dict(contenders(options, folder))
    rounds = {name: [] for name in runners}
    for number in range(options.rounds):
        order = list(runners)
        shift = number % len(order)
        for name in order[shift:] + order[:shift]:
            try:
                seconds = statistics.median(runners[name]()[WARMUP:])
            except subprocess.CalledProcessError as error:
                print(f"{name} failed and is left out: {(error.stderr or '').strip()[-300:]}")
                del runners[name], rounds[name]
                continue
            rounds[name].append(seconds)
            print(f"round {number + 1}  {name:20}{seconds:8.3f} s/step   load {os.getloadavg()[0]:.1f}", flush=True)
    return rounds


def print_table(rounds):
    tokens = BATCH["sequence_length"] * BATCH["global_batch_size"]
    print(f"\n{'':22}{'tokens/s':>10}{'s/step':>9}{'fastest':>9}{'slowest':>9}{'native is faster by':>21}")
    for name, seconds in rounds.items():
        ours = rounds[f"native {name.split()[-1]}"]
        ratio = statistics.median(theirs / mine for theirs, mine in zip(seconds, ours))
        middle = statistics.median(seconds)
        print(f"{name:22}{tokens / middle:10.1f}{middle:9.3f}{min(seconds):9.3f}{max(seconds):9.3f}{ratio:20.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="timed steps per process")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--without-compile", action="store_true")
    options = parser.parse_args()
    try:
        torch_version = output_of(python(), "-c", "import torch; print(torch.__version__)")
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"{python()} has no torch: let TPRIMAT_PYTHON name a Python that has it (pip install torch numpy)")
    native_version = output_of(options.program, "--version")
    print(f"{native_version} and torch {torch_version}, {options.threads} threads, load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        print_table(measure(options, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
