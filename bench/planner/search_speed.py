#!/usr/bin/env python3
"""How long `tprimat plan` takes, and a peer over the same layouts: seconds, peak resident MB, microseconds per layout.

usage: search_speed.py PROGRAM BENCH_PLANNER [--rounds 7] [--peer-python PYTHON]

First every legal layout of Llama 3.1 405B on 16,384 GPUs, whole processes on one core. Then GPT-3 175B on 1024 GPUs (the peer takes no
MLP whose width is not a multiple of the hidden size, so no Llama 3), taking turns with llm-analysis (PYTHON -m pip install
llm-analysis==0.2.2): ours over all legal layouts, the search alone (BENCH_PLANNER) and as a whole process with its start and its printing; the
peer's loop alone, without its import and its printing, over those of our fitting layouts that it can express (CP 1, VP 1). Both give memory
and time of each layout; the peer knows no interleaved schedule, no context parallelism and no calibration.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

PEER = """
import json, logging, sys, time
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis, logger
from llm_analysis.config import DtypeConfig, ModelConfig, ParallelismConfig, get_gpu_config_by_name
logger.setLevel(logging.CRITICAL)
request = json.load(sys.stdin)
model = ModelConfig(name="gpt_175b", num_layers=96, n_head=96, hidden_dim=12288, vocab_size=51200, max_seq_len=2048)
gpu = get_gpu_config_by_name("h100-sxm-80gb")
recompute = {"none": ActivationRecomputation.NONE, "selective": ActivationRecomputation.SELECTIVE, "full": ActivationRecomputation.FULL}
refused = 0
start = time.perf_counter()
for l in request:
    layout = ParallelismConfig(tp_size=l["tensor_model_parallel_size"], pp_size=l["pipeline_model_parallel_size"], dp_size=l["data_parallel_size"])
    analysis = LLMAnalysis(model, gpu, DtypeConfig(), layout, flops_efficiency=0.5, hbm_memory_efficiency=0.8)
    try:
        analysis.training(batch_size_per_gpu=l["micro_batch_size"], gradient_accumulation_steps=l["gradient_accumulation_steps"], seq_len=2048,
                          total_num_tokens=10**12, activation_recomputation=recompute[l["recompute"]], ds_zero=DSZeRO.STAGE_1)
    except AssertionError:  # where the layout does not fit by its count
        refused += 1
print(time.perf_counter() - start, refused)
"""


def plan(program, model, gpus, batch, length, *more):
    command = [program, "plan", model, "--gpu", "H100", "--gpus", str(gpus), "--gbs", str(batch), "--seq", str(length), *more]
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}))
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1000, output


def find_reports(document):
    return document if isinstance(document, list) else document.get("reports", document.get("plans", [document]))


def search_alone(program):
    lines = subprocess.run([program, "15"], capture_output=True, text=True, check=True).stdout.splitlines()
    line = next(line for line in lines if line.startswith("gpt_175b"))
    return float(line.split(" µs each")[0].split()[-1]) * 1e-6


def ask_peer(python, layouts):
    done = subprocess.run([python, "-c", PEER], input=json.dumps(layouts), capture_output=True, text=True, env={**os.environ, "TRANSFORMERS_VERBOSITY": "critical"})
    if done.returncode != 0:
        sys.exit(f"llm-analysis ended with {done.returncode}: {done.stderr[-2000:]}")
    seconds, refused = done.stdout.split()[-2:]
    return float(seconds), int(refused)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("bench_planner")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer-python")
    options = parser.parse_args()

    legal = find_reports(json.loads(plan(options.program, "llama3.1_405b", 16384, 2048, 8192, "--json")[2]))[0]["legal"]
    runs = [plan(options.program, "llama3.1_405b", 16384, 2048, 8192) for _ in range(options.rounds)]
    seconds = statistics.median(run[0] for run in runs)
    print(f"Llama 3.1 405B, 16384 GPUs, {legal} legal layouts: {seconds * 1e3:.0f} ms, {max(run[1] for run in runs):.0f} MB, "
          f"{seconds / legal * 1e6:.1f} µs per layout (whole process, one core)")
    if not options.peer_python:
        return

    report = find_reports(json.loads(plan(options.program, "gpt_175b", 1024, 1536, 2048, "--json", "--top", "10000")[2]))[0]
    layouts = [l for l in report["ranked"] if l["context_parallel_size"] == 1 and l["virtual_pipeline_size"] == 1]
    ours, whole, theirs = [], [], []
    for _ in range(options.rounds):
        ours.append(search_alone(options.bench_planner))
        whole.append(plan(options.program, "gpt_175b", 1024, 1536, 2048)[0] / report["legal"])
        seconds, refused = ask_peer(options.peer_python, layouts)
        theirs.append(seconds / len(layouts))
    mine, process, peer = (statistics.median(seconds) for seconds in (ours, whole, theirs))
    print(f"GPT-3 175B, 1024 GPUs: tprimat {mine * 1e6:.2f} µs per layout ({report['legal']} layouts; {process * 1e6:.1f} µs with start and printing), "
          f"llm-analysis {peer * 1e6:.0f} µs ({len(layouts)} layouts, {refused} of which it refuses early): {peer / mine:.0f} times "
          f"({peer / process:.0f})")


if __name__ == "__main__":
    main()
