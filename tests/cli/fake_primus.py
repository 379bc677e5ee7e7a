#!/usr/bin/env python3
"""A stand-in for a checkout of Primus.

  fake_primus.py make FOLDER   makes one, whose start script prints what Primus' back end megatron_bridge logs
  fake_primus.py print ARGS    what that start script does with its arguments

It trains as the experiment says, but leaves out the recomputation, which its recipe does not take, and beta2, for its type.
"""

import pathlib
import sys

PREFIX = "[20260822 10:00:00][rank-0/8][{level}] [--{place:-<20}] : {text}"
BACKEND = "primus/backends/megatron_bridge"


def make(folder):
    files = {f"{BACKEND}/megatron_bridge_pretrain_trainer.py": "", f"{BACKEND}/config_utils.py": "importlib.import_module(recipe)\n",
             "third_party/Megatron-Bridge/src/megatron/bridge/package_info.py": "MAJOR = 0\nMINOR = 3\nPATCH = 0\n", "VERSION": "26.5.1\n",
             "runner/primus-cli": f'#!/bin/bash\nexec {sys.executable} {pathlib.Path(__file__).resolve()} print "$@"\n'}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read_experiment(path):
    """"settings.train.train_iters" -> "50", of YAML as tprimat writes it."""
    values, levels = {}, []
    for line in path.read_text().splitlines():
        key, _, value = line.strip().partition(": ")
        indent = len(line) - len(line.lstrip())
        levels = [level for level in levels if level[0] < indent]
        name = ".".join([level[1] for level in levels] + [key])
        if line.endswith(":"):
            levels.append((indent, line.strip()[:-1]))
        else:
            values[name.removeprefix("modules.pre_trainer.overrides.")] = value
    return values


def log(text, level="INFO", place="module_utils.py:227"):
    print(PREFIX.format(level=level, place=place, text=text), flush=True)


def as_python(value):
    return {"true": "True (bool)", "false": "False (bool)", "null": "None (NoneType)"}.get(value, value.strip('"') + " (str)")


def print_table(title, values):
    log("-" * 80)
    log(f"{title}: ({len(values)} parameters)")
    for name, value in sorted(values.items()):
        log(f"  {name:<60} : {as_python(value)}")
    log("-" * 80)


def print_steps(settings):
    steps, batch, length = (int(settings[name]) for name in ("train.train_iters", "train.global_batch_size", "model.seq_length"))
    for step in range(1, steps + 1):
        log("Step Time : 0.50s GPU utilization: 400.0MODEL_TFLOP/s/GPU", "DEBUG")
        log(f" [2026-08-22 10:00:{step % 60:02d}] iteration {step:8d}/{steps:8d} | consumed samples: {step * batch:12d} | "
            f"elapsed time per iteration (ms): 500.0 | tokens per GPU (tokens/s/GPU): {batch * length / 4:.1f} | seq_length: {length} | "
            f"learning rate: {float(settings['optimizer.lr']):.6E} | global batch size: {batch:5d} | lm loss: {11 - step / 10:.6E} | "
            "loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |")


def print_log(arguments):
    experiment = read_experiment(pathlib.Path(arguments[arguments.index("--config") + 1]))
    print_table("Megatron-Bridge args", experiment)
    log("⚠️  Retry 1: Removing invalid parameter 'recompute_granularity' (20 params remaining) error_msg: unexpected")
    log("  ⚠️  Skipping config_container.model: type mismatch (target=LlamaModelProvider, source=str)")
    log("  ⚠️  Skipping config_container.optimizer.adam_beta2: type mismatch (target=float, source=str)")
    settings = {name.removeprefix("settings."): value for name, value in experiment.items() if name.startswith("settings.")}
    settings.update({"model.recompute_granularity": "null", "optimizer.adam_beta2": "0.999",
                     "model.vocab_size": settings["tokenizer.vocab_size"]})
    print_table("ConfigContainer", settings)
    print_steps(settings)


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[2])) if sys.argv[1] == "make" else print_log(sys.argv[2:])
