#!/usr/bin/env python3
"""Makes N result files out of one, as if the run had been repeated: other noise in every step, other moments.

usage: make_results.py TEMPLATE FOLDER [--files 10000] [--steps 500] [--kind dates|repetitions|configurations] [--drift 0]

dates           every file its own name (..._00001.json): as a nightly job leaves them
repetitions     four configurations, repeated (..._r1.json)
configurations  every file trains another batch size: that many different runs
"""

import argparse
import datetime
import json
import math
import pathlib
import random

SERIES = ("step_times", "loss_values", "learning_rates", "grad_norms", "memory_values")


def quantile(ordered, p):
    position = (len(ordered) - 1) * p
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def make_series(steps, seconds, rng):
    times = [seconds * (1 + rng.gauss(0, 0.005)) for _ in range(steps)]
    times[0] *= 5
    losses = [2 + 8 * math.exp(-i / 80) + rng.gauss(0, 0.02) for i in range(steps)]
    rates = [3e-4 * min(1, (i + 1) / 20) for i in range(steps)]
    norms = [1 + abs(rng.gauss(0, 0.1)) for _ in range(steps)]
    memory = [60.5 + rng.random() / 100 for _ in range(steps)]
    return dict(zip(SERIES, (times, losses, rates, norms, memory)))


def describe(times):
    steady = times[1:]
    mean = sum(steady) / len(steady)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in steady) / (len(steady) - 1))
    half = 1.97 * deviation / math.sqrt(len(steady))
    ordered = sorted(steady)
    return {"count": len(steady), "median": quantile(ordered, 0.5), "mean": mean, "stddev": deviation, "p5": quantile(ordered, 0.05),
            "p95": quantile(ordered, 0.95), "cv": deviation / mean, "ci95_low": mean - half, "ci95_high": mean + half, "outliers": []}


def rate(tokens, statistics, factor):
    return {"value": tokens / statistics["mean"] * factor, "ci95_low": tokens / statistics["ci95_high"] * factor,
            "ci95_high": tokens / statistics["ci95_low"] * factor}


def derive(result, statistics):
    config, derived = result["training_config"], result["derived"]
    tokens = config["global_batch_size"] * config["sequence_length"]
    devices = config["num_gpus"]
    derived["tokens_per_second"] = rate(tokens, statistics, 1)
    derived["tokens_per_second_per_gpu"] = rate(tokens, statistics, 1 / devices)
    flops = derived.get("flops_per_token", {}).get(derived.get("headline_formula"))
    if flops:
        derived["tflops_per_gpu"] = rate(tokens, statistics, flops / devices / 1e12)
        if derived.get("peak"):
            derived["mfu"] = rate(tokens, statistics, flops / devices / derived["peak"]["flops_per_second"])


def make_result(template, index, options, rng):
    result = json.loads(template)
    config = result["training_config"]
    if options.kind == "configurations":
        config["global_batch_size"] = 8 * (index + 1)
    if options.kind == "repetitions":
        config["global_batch_size"] = 64 * (1 + index % 4)
    config["max_steps"] = options.steps
    night = rng.gauss(0, 0.002) + (options.drift / 100 if index > options.files * 2 // 3 else 0)
    seconds_per_sequence = 0.16  # a rate that the template's devices can have
    result.update(make_series(options.steps, seconds_per_sequence * config["global_batch_size"] * (1 + night), rng))
    statistics = describe(result["step_times"])
    result["statistics"] = statistics
    result["warmup"] = {"steps_excluded": 1, "method": "first_step", "reason": "the first step never counts; no later shift was found",
                        "steady": True}
    moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=index)
    result["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    derive(result, statistics)
    tokens = result["derived"]["tokens_per_second"]["value"]
    result["performance_metrics"] = {
        "total_steps": options.steps, "total_time_seconds": sum(result["step_times"]), "avg_step_time_seconds": statistics["mean"],
        "min_step_time_seconds": min(result["step_times"][1:]), "max_step_time_seconds": max(result["step_times"][1:]),
        "steps_per_second": 1 / statistics["mean"], "tokens_per_second": tokens, "tokens_per_second_per_gpu": tokens / config["num_gpus"]}
    return result


def file_name(stem, index, kind):
    return f"{stem}_gbs{index % 4}_r{index // 4 + 1}.json" if kind == "repetitions" else f"{stem}_{index:05}.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("template", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--kind", choices=("dates", "repetitions", "configurations"), default="dates")
    parser.add_argument("--drift", type=float, default=0, help="the last third is slower by this many percent")
    options = parser.parse_args()
    template = options.template.read_text(encoding="utf-8")
    stem = options.template.stem
    options.folder.mkdir(parents=True, exist_ok=True)
    for index in range(options.files):
        rng = random.Random(index)
        text = json.dumps(make_result(template, index, options, rng))
        (options.folder / file_name(stem, index, options.kind)).write_text(text, encoding="utf-8")
    print(f"{options.files} files of {options.steps} steps in {options.folder}")


if __name__ == "__main__":
    main()
