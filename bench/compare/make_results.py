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


def make_series(steps, seconds, rng):
    times = [seconds * (1 + rng.gauss(0, 0.005)) for _ in range(steps)]
    times[0] *= 5
    losses = [2 + 8 * math.exp(-i / 80) + rng.gauss(0, 0.02) for i in range(steps)]
    rates = [3e-4 * min(1, (i + 1) / 20) for i in range(steps)]
    norms = [1 + abs(rng.gauss(0, 0.1)) for _ in range(steps)]
    memory = [60.5 + rng.random() / 100 for _ in range(steps)]
    return dict(zip(SERIES, (times, losses, rates, norms, memory)))


def make_result(template, index, options, rng):
    result = json.loads(template)
    for derived in ("statistics", "warmup", "performance_metrics"):  # the program derives them from the steps
        result.pop(derived, None)
    result["derived"] = {key: result.get("derived", {})[key] for key in ("peak", "usd_per_hour") if key in result.get("derived", {})}
    config = result["training_config"]
    if options.kind == "configurations":
        config["global_batch_size"] = 8 * (index + 1)
    if options.kind == "repetitions":
        config["global_batch_size"] = 64 * (1 + index % 4)
    config["max_steps"] = options.steps
    night = rng.gauss(0, 0.002) + (options.drift / 100 if index > options.files * 2 // 3 else 0)
    seconds_per_sequence = 0.16  # a rate that the template's devices can have
    result.update(make_series(options.steps, seconds_per_sequence * config["global_batch_size"] * (1 + night), rng))
    moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=index)
    result["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
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
