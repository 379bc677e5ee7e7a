#!/usr/bin/env python3
"""Tokens per second and memory of the native trainer and of PyTorch on this machine's CPU, measured in one run.

  compare.py PROGRAM --json peers.json              the whole, and what docs/performance.md wants: two models, two
                                                    batches, two precisions, native, eager and compile, 3 rounds;
                                                    about 85 minutes on two Zen 5 cores
  compare.py PROGRAM --models llama --batches 4x512 --precisions bf16 --contenders native eager
                                                    a part: 3 minutes
  compare.py PROGRAM --models llama --batches 4x512 --precisions bf16 --bf16 weights --turns 9
                                                    side by side, in turns of two steps: 4 minutes
  compare.py PROGRAM --layers 1 --rounds 1 --steps 1 --batches 4x512
                                                    does it run at all: 3 minutes

PROGRAM is tprimat, release build; nothing else should run. TPRIMAT_PYTHON names a Python with torch (2.13 or later).

Without --turns, every contender trains the same shape in a process of its own. In one round each of a cell (model,
batch, precision) runs once, in an order that turns, so that a busy or throttled machine slows all alike. Of a process
the median step counts, the first one not (allocation, compilation); of the rounds the median again, and a ratio is
the median of the rounds' ratios. Memory is the largest resident set that the kernel saw, libraries and compilation
included. The allocator that makes PyTorch fast also makes it large, so after the rounds each of its contenders runs
two more steps with glibc as it comes, and the smaller of the two peaks counts (--without-memory-runs leaves that out).

With --turns the contenders of a cell live at once instead and take turns of two steps, the others stopped meanwhile: a
round is then one turn of each. On a machine whose speed changes within seconds only this compares what it should. Their
memory adds up: all three at 8x1024 take more than 24 GB, so name two (--contenders native eager --bf16 weights).

PyTorch gets its best: torch_step.py and contenders.py say how it is written and what it is told. In bf16 both of its
forms (autocast; bf16 weights with float32 masters) run in the first round; one that is clearly slower is then left
out, but not in turns.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import tempfile

import contenders
import turns

WARMUP = 1
STEPS_OF_TURN = 2
ENDLESS = 1_000_000  # steps of a process that is ended after its last turn
CLEARLY = 1.05  # a form this much slower than another in one round is not tried again
LLAMA = {"name": "llama124m", "full_name": "Llama shape of GPT-2's size", "num_layers": 12, "hidden_size": 768,
         "ffn_hidden_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64,
         "vocab_size": 50257, "max_position_embeddings": 1024, "tied_embeddings": True, "qkv_bias": False,
         "linear_bias": False, "norm": "rms", "mlp": "swiglu", "position": "rope", "rope_theta": 10000.0,
         "norm_eps": 1e-5}
GPT2 = {**LLAMA, "name": "gpt2", "full_name": "GPT-2 124M", "ffn_hidden_size": 3072, "linear_bias": True,
        "norm": "layer", "mlp": "gelu", "position": "learned"}
SMALL = {**LLAMA, "name": "llama_10m", "full_name": "Llama-shaped 10M of configs/default.yaml", "num_layers": 8,
         "hidden_size": 256, "ffn_hidden_size": 768, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 8192, "tied_embeddings": False}
MODELS = {"gpt2": GPT2, "llama": LLAMA, "small": SMALL}
BATCHES = {"4x256": (4, 256), "4x512": (4, 512), "8x1024": (8, 1024)}
OPTIMIZER = {"learning_rate": 3e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
             "clip_grad_norm": 1.0, "schedule": "constant"}


@dataclasses.dataclass
class Cell:
    """What is compared with each other."""
    model: str
    batch: str
    precision: str
    tokens: int  # per step
    spec: pathlib.Path
    runners: dict
    seconds: dict = dataclasses.field(default_factory=dict)  # contender to the median step of each round
    peaks: dict = dataclasses.field(default_factory=dict)  # contender to the largest peak of memory, bytes
    plain_peaks: dict = dataclasses.field(default_factory=dict)  # the same with glibc as it comes
    left_out: dict = dataclasses.field(default_factory=dict)  # contender to why

    def name(self):
        return f"{self.model:6}{self.batch:8}{self.precision}"

    def leave_out(self, name, why):
        self.left_out[name] = why
        for of in (self.runners, self.seconds, self.peaks):
            of.pop(name, None)

    def memory(self, name):
        return min(self.peaks[name], self.plain_peaks.get(name, self.peaks[name]))


def make_cell(options, settings, folder, place):
    """place: model, batch, precision. A large batch gets fewer steps, so that all take about as long."""
    model, batch, precision = place
    rows, length = BATCHES[batch]
    steps = max(min(2, options.steps), options.steps * 2048 // (rows * length))
    shape = {**MODELS[model], **({"num_layers": options.layers} if options.layers else {})}
    spec = folder / f"{model}_{batch}_{precision}.json"
    spec.write_text(json.dumps({
        "model": shape, "optimizer": OPTIMIZER, "sequence_length": length, "micro_batch_size": rows,
        "global_batch_size": rows, "seed": 42, "precision": precision, "steps": steps + WARMUP,
        "threads": options.threads}))
    runners = contenders.make_contenders(options, settings, precision)
    return Cell(model, batch, precision, rows * length, spec, runners)


def run_once(cell, name, folder):
    """Runs one contender; one that fails is out, and said to be."""
    try:
        outcome = cell.runners[name].run(cell.spec, folder)
    except contenders.Failed as failure:
        print(f"  {cell.name()}  {name} is left out: {failure}")
        return cell.leave_out(name, str(failure))
    seconds = statistics.median(outcome.seconds[WARMUP:])
    cell.seconds.setdefault(name, []).append(seconds)
    cell.peaks[name] = max(cell.peaks.get(name, 0), outcome.peak_bytes)
    print(f"  {cell.name()}  {name:17}{seconds:8.3f} s/step{outcome.peak_bytes / 1e9:7.2f} GB"
          f"   load {os.getloadavg()[0]:.1f}", flush=True)


def keep_faster_forms(cell):
    """Of eager/autocast and eager/weights the clearly slower one goes; of compile's likewise."""
    for kind in ("eager", "compile"):
        forms = sorted((name for name in cell.seconds if name.startswith(kind + "/")), key=lambda n: cell.seconds[n][0])
        for slower in forms[1:]:
            ratio = cell.seconds[slower][0] / cell.seconds[forms[0]][0]
            if ratio > CLEARLY:
                cell.leave_out(slower, f"{ratio:.2f} times the time of {forms[0]} in the first round")


def measure_in_turns(options, cells, folder):
    """Fills cells as measure() does; the first steps of a process do not count."""
    for cell in cells:
        def report(name, played):
            cell.seconds.setdefault(name, []).append(statistics.mean(played))
            print(f"  {cell.name()}  {name:17}{statistics.mean(played):8.3f} s/step   load {os.getloadavg()[0]:.1f}",
                  flush=True)

        cell.spec.write_text(json.dumps({**json.loads(cell.spec.read_text()), "steps": ENDLESS}))
        peaks, failed = turns.take_turns(cell.runners, cell.spec, folder, options.turns, STEPS_OF_TURN, report)
        cell.peaks.update(peaks)
        for name, why in failed.items():
            print(f"  {cell.name()}  {name} is left out: {why}")
            cell.leave_out(name, why)


def measure(options, cells, folder):
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}")
        for cell in cells:
            order = list(cell.runners)
            shift = number % max(1, len(order))
            for name in order[shift:] + order[:shift]:
                run_once(cell, name, folder)
            if number == 0:
                keep_faster_forms(cell)


def measure_memory(cells, folder):
    """PyTorch once more with glibc's own ways."""
    short = folder / "short.json"
    print("memory with glibc as it comes")
    for cell in cells:
        short.write_text(json.dumps({**json.loads(cell.spec.read_text()), "steps": 2}))
        for name, runner in cell.runners.items():
            if isinstance(runner, contenders.Torch):
                cell.plain_peaks[name] = runner.with_plain_allocator().run(short, folder).peak_bytes
                print(f"  {cell.name()}  {name:17}{cell.plain_peaks[name] / 1e9:7.2f} GB", flush=True)


def rows_of(cell):
    """One row per contender, the fastest first; ratios are to native, where it ran."""
    native = cell.seconds.get("native")
    for name, seconds in sorted(cell.seconds.items(), key=lambda item: statistics.median(item[1])):
        middle = statistics.median(seconds)
        ratio = statistics.median(theirs / ours for theirs, ours in zip(seconds, native)) if native else None
        yield {"model": cell.model, "batch": cell.batch, "precision": cell.precision, "contender": name,
               "tokens_per_second": cell.tokens / middle, "seconds_per_step": seconds,
               "peak_bytes": cell.memory(name), "peak_bytes_as_timed": cell.peaks[name], "time_over_native": ratio,
               "memory_over_native": cell.memory(name) / cell.memory("native") if native else None}


def print_table(cells):
    print(f"\n{'model':7}{'batch':8}{'format':8}{'contender':18}{'tokens/s':>9}{'s/step':>8}"
          f"{'fastest':>9}{'slowest':>9}{'GB':>7}{'time':>8}{'memory':>9}\n{'':68}{'times those of native':>24}")
    for cell in cells:
        for row in rows_of(cell):
            seconds = row["seconds_per_step"]
            ratios = [f"{row[key]:.2f}x" if row[key] else "" for key in ("time_over_native", "memory_over_native")]
            print(f"{row['model']:7}{row['batch']:8}{row['precision']:8}{row['contender']:18}"
                  f"{row['tokens_per_second']:9.1f}{statistics.median(seconds):8.3f}"
                  f"{min(seconds):9.3f}{max(seconds):9.3f}"
                  f"{row['peak_bytes'] / 1e9:7.2f}{ratios[0]:>8}{ratios[1]:>9}")
    for cell in cells:
        for name, why in cell.left_out.items():
            print(f"left out: {cell.name()} {name}: {why}")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["gpt2", "llama"])
    parser.add_argument("--batches", nargs="+", choices=BATCHES, default=["4x512", "8x1024"],
                        help="sequences x tokens")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["bf16", "fp32"])
    parser.add_argument("--contenders", nargs="+", choices=("native", "eager", "compile"),
                        default=["native", "eager", "compile"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, metavar="N", help="N turns of two steps each, instead of rounds")
    parser.add_argument("--steps", type=int, default=6,
                        help="timed steps of 2048 tokens; of larger ones fewer, at least 2")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bf16", choices=("faster", "autocast", "weights"), default="faster", help="PyTorch's form")
    parser.add_argument("--loss", choices=("whole", "chunked"), default="whole", help="PyTorch's cross entropy")
    parser.add_argument("--allocator", choices=("kept", "plain"), default="kept", help="plain: glibc as it comes")
    parser.add_argument("--without-memory-runs", action="store_true")
    parser.add_argument("--instructions", choices=("all", "avx2"), default="all",
                        help="avx2: no contender uses what came after it; not for compile, whose compiler looks itself")
    parser.add_argument("--mkl", choices=("avx512", "as-installed"), default="avx512")
    parser.add_argument("--layers", type=int, help="fewer than the models have: a trial, no measurement")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured")
    return parser.parse_args()


def compare(options, folder):
    settings, said = contenders.torch_settings(options, folder)
    versions = [contenders.run_watched(command, {}, folder)[0].strip() for command in
                ([options.program, "--version"], [contenders.python(), "-c", "import torch; print(torch.__version__)"])]
    print(f"{versions[0]}, torch {versions[1]}, {options.threads} threads, load before: {os.getloadavg()[0]:.1f}")
    print("; ".join(said))
    cells = [make_cell(options, settings, folder, (model, batch, precision))
             for model in options.models for batch in options.batches for precision in options.precisions]
    (measure_in_turns if options.turns else measure)(options, cells, folder)
    if options.allocator == "kept" and not options.without_memory_runs:
        measure_memory(cells, folder)
    print_table(cells)
    if options.json:
        options.json.write_text(json.dumps({
            "native": versions[0], "torch": versions[1], "threads": options.threads, "peer_settings": said,
            "layers": options.layers, "rows": [row for cell in cells for row in rows_of(cell)],
            "left_out": {f"{cell.model} {cell.batch} {cell.precision}": cell.left_out for cell in cells}}, indent=1))


def main():
    options = read_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            compare(options, pathlib.Path(folder))
    except contenders.Failed as failure:
        sys.exit(f"{failure}\n  TPRIMAT_PYTHON names a Python that has torch (pip install torch numpy)")


if __name__ == "__main__":
    main()
