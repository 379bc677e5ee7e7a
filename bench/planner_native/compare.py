#!/usr/bin/env python3
"""How wrong is the planner about our own trainer? Random shapes and layouts on this machine's processor.

  compare.py PROGRAM                       40 trainings to calibrate with and 20 others to test, about 5 minutes
  compare.py PROGRAM --out DIR             keeps results and parameters; what is there already is not measured again
  compare.py PROGRAM --rounds 3            each training so often, rounds in turn; the fastest counts, for what
                                           disturbs a measurement only lengthens it
  compare.py PROGRAM --memory              the bytes alone: two steps of each, nothing is fitted

PROGRAM is tprimat, release build. Each training runs a few seconds on 1 to 8 ranks (mpirun where there are several;
ranks beyond the processors share them). The planner's parameters are fitted to the former (`tprimat plan --calibrate`)
and held against the latter (`tprimat plan --validate`). Nothing else should run meanwhile.

Exit status: 0 when every memory is within 5 % and the 90th percentile of the tested step times' errors within 15 %,
1 when not.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

MEMORY_LIMIT, TIME_LIMIT = 0.05, 0.15


def draw_shape(rng):
    heads = rng.choice([4, 8])
    head_dim = rng.choice([16, 32, 64])
    return {"num_layers": rng.choice([4, 8]), "hidden_size": heads * head_dim,
            "ffn_hidden_size": heads * head_dim * rng.choice([2, 3, 4]), "num_attention_heads": heads,
            "num_key_value_heads": rng.choice([2, 4]), "head_dim": head_dim,
            "vocab_size": rng.choice([512, 2048, 8192]), "max_position_embeddings": 1024,
            "tied_embeddings": rng.choice([True, False])}


def draw_layout(rng, ranks, layers):
    """TP x PP x CP x DP = ranks, each a power of two."""
    layout = {"TP": 1, "PP": 1, "CP": 1, "DP": 1}
    while ranks > 1:
        layout[rng.choice(list(layout))] *= 2
        ranks //= 2
    layout["TP"], layout["DP"] = (2, layout["DP"] * layout["TP"] // 2) if layout["TP"] > 2 else (layout["TP"], layout["DP"])
    layout["PP"], layout["DP"] = (4, layout["DP"] * layout["PP"] // 4) if layout["PP"] > 4 else (layout["PP"], layout["DP"])
    if layout["PP"] > 1 and layers % (2 * layout["PP"]) == 0 and rng.random() < 0.3:
        layout["VP"] = 2
    layout["SP"] = layout["TP"] > 1 and rng.random() < 0.5
    layout["ZeRO"] = rng.choice([0, 1, 2, 3]) if layout["DP"] * layout["CP"] > 1 else 0
    return layout


def draw_training(rng, index):
    model = draw_shape(rng)
    ranks = [1, 1, 2, 2, 4, 8][index % 6]
    layout = draw_layout(rng, ranks, model["num_layers"])
    micro = rng.choice([1, 2, 4])
    accumulation = layout["PP"] * rng.choice([1, 2]) if layout["PP"] > 1 else rng.choice([1, 2, 4])
    return {"model": model, "layout": layout, "ranks": ranks, "micro": micro,
            "batch": micro * layout["DP"] * accumulation, "length": rng.choice([128, 256, 512]),
            "precision": ["bf16", "fp32"][index // 6 % 2], "recompute": rng.choice(["none", "none", "selective", "full"])}


def write_config(path, name, training, steps):
    """YAML is a superset of JSON."""
    config = {
        "experiment": {"methodology": "drawn"},
        "hardware": {"platforms": {"cpu": {"gpu_model": "auto", "num_gpus": training["ranks"], "framework": "native"}}},
        "models": {name: training["model"]},
        "training": {"data": {"seq_length": training["length"], "micro_batch_size": training["micro"],
                              "global_batch_size": training["batch"]},
                     "duration": {"max_steps": steps}, "optimizer": {"warmup_steps": 1},
                     "precision": {"default": training["precision"]}},
        "parallelism": {"drawn": {name: {"cpu": training["layout"]}}},
        "platform_optimizations": {"cpu": {"recompute": training["recompute"]}},
        # Peaks are measured by a probe for all: a stated one spares each run its own.
        "benchmarking": {"warmup": "2" if steps > 4 else "1",
                         "enhanced_metrics": {"hardware_specs": {"cpu_auto": {
                             "peak_tflops_bf16": 1e12, "peak_tflops_fp32": 1e12}}},
                         "output": {"filename_format": "train_{platform}_{framework}_{model}.json"}}}
    path.write_text(json.dumps(config, indent=1))


def measure(program, folder, name, training, steps):
    result = folder / f"train_cpu_native_{name}.json"
    if result.exists():
        return
    config = folder / f"{name}.yaml"
    write_config(config, name, training, steps)
    done = subprocess.run([program, "run", "--config", config, "--output", folder, "--platform", "cpu"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} {training}:\n{done.stdout}{done.stderr}")


def median_time(path):
    return json.loads(path.read_text())["statistics"]["median"]


def measure_round(options, folder, trainings, number):
    for index, training in enumerate(trainings):
        measure(options.program, make(folder / "rounds" / str(number)), f"m{index:02d}", training, options.steps)
        print(f"\r{folder.name}: round {number + 1}, {index + 1} of {len(trainings)} ", end="", file=sys.stderr)
    print(file=sys.stderr)


def keep_fastest(options, folder, count):
    """Of each training the round that was fastest: what disturbs a measurement only lengthens it."""
    for index in range(count):
        name = f"train_cpu_native_m{index:02d}.json"
        rounds = (folder / "rounds" / str(n) / name for n in range(options.rounds))
        shutil.copy(min(rounds, key=median_time), folder / name)


def probe(program, path):
    if not path.exists():
        done = subprocess.run([program, "probe", "--json"], capture_output=True, text=True, check=True)
        path.write_text(done.stdout)
    return json.loads(path.read_text())


def fastest_probe(probes):
    """All trainings are predicted with the same figures of the machine: of each kind the fastest."""
    def fastest(entries, kind, figure):
        best = {}
        for entry in entries:
            best[entry[kind]] = max(best.get(entry[kind], entry), entry, key=lambda each: each[figure])
        return list(best.values())

    whole = probes[0]
    whole["matmul"] = fastest([e for each in probes for e in each["matmul"]], "precision", "flops_per_second")
    whole["memory"]["kinds"] = fastest([e for each in probes for e in each["memory"]["kinds"]], "kind", "bytes_per_second")
    return json.dumps(whole)


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def planned(program, *words):
    done = subprocess.run([program, "plan", "--json", *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def quantiles(errors):
    ordered = sorted(abs(each) for each in errors)
    at = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))]
    return f"median {at(0.5):6.1%}  90th percentile {at(0.9):6.1%}  largest {ordered[-1]:6.1%}", at(0.9), ordered[-1]


def print_worst(rows):
    """Trainings beyond the limit, by layout: chance slows one of them, a lacking term all of a kind."""
    for row in sorted((row for row in rows if abs(row.get("error") or 0) > TIME_LIMIT), key=lambda row: row["error"]):
        print(f"    {row['error']:+6.1%}  {row['measured_seconds']:.3f} s  {row['precision']} {row['layout']}")


def memory_errors(folder):
    errors = []
    for path in sorted(folder.glob("train_*.json")):
        result = json.loads(path.read_text())
        measured = result["memory_metrics"]["peak_memory_allocated_gb"]
        errors.append(result["prediction"]["memory_gb"] / measured - 1)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--calibration", type=int, default=40, help="trainings to calibrate with")
    parser.add_argument("--tested", type=int, default=20, help="trainings to test with")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.memory:
        options.steps = 3
    out = options.out or pathlib.Path(tempfile.mkdtemp(prefix="planner_native_"))
    sets, trainings = {}, {}
    for name in ("tested",) if options.memory else ("calibration", "tested"):
        sets[name] = make(out / name)
        rng = random.Random(f"{name} {options.seed}")
        trainings[name] = [draw_training(rng, i) for i in range(getattr(options, name))]
    probes = []
    for number in range(options.rounds):
        probes.append(probe(options.program, out / f"probe_{number}.json"))
        for name, folder in sets.items():
            measure_round(options, folder, trainings[name], number)
    machine = fastest_probe(probes)
    for name, folder in sets.items():
        keep_fastest(options, folder, len(trainings[name]))
        (folder / "probe.json").write_text(machine)
    text, _, worst = quantiles([e for folder in sets.values() for e in memory_errors(folder)])
    print(f"memory, all trainings      {text}")
    good = worst <= MEMORY_LIMIT
    if not options.memory:
        parameters = out / "parameters.tsv"
        planned(options.program, "--calibrate", sets["calibration"], "--output", parameters)
        for title, words in (("built-in", []), ("calibrated", ["--parameters", parameters])):
            for name, folder in sets.items():
                rows = planned(options.program, "--validate", folder, *words)["results"]["rows"]
                errors = [row["error"] for row in rows if row.get("error") is not None]
                text, p90, _ = quantiles(errors)
                print(f"time, {title:10} {name:11} {text}")
                print_worst(rows)
                if (title, name) == ("calibrated", "tested"):
                    good = good and p90 <= TIME_LIMIT
    if options.out is None:
        shutil.rmtree(out)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
