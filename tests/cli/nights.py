#!/usr/bin/env python3
"""Writes a result once more for each night: other noise in every step, another moment. With --layers N the last has N layers.

usage: nights.py TEMPLATE FILE... [--layers N]
"""

import argparse
import json
import random

parser = argparse.ArgumentParser()
parser.add_argument("template")
parser.add_argument("files", nargs="+")
parser.add_argument("--layers", type=int)
options = parser.parse_args()

for night, path in enumerate(options.files, 1):
    with open(options.template) as file:
        result = json.load(file)
    noise = random.Random(night)
    mean = sum(result["step_times"][1:]) / (len(result["step_times"]) - 1)
    result["step_times"][1:] = [mean * (1 + noise.gauss(0, 0.002)) for _ in result["step_times"][1:]]
    result["timestamp"] = f"2026-03-{night:02}T00:00:00Z"
    for key in ("statistics", "derived", "warmup", "performance_metrics"):  # follow from the steps when it is read
        result.pop(key, None)
    if options.layers and night == len(options.files):
        result["model_info"]["shape"]["num_layers"] = options.layers
        result["model_info"].pop("num_parameters", None)
    with open(path, "w") as file:
        json.dump(result, file)
