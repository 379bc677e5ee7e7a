"""Turns the runs below this script's folder into offline runs of Weights & Biases: python3 import_wandb.py [PROJECT]; then wandb sync wandb/offline-run-*"""

import json
import pathlib
import sys

import wandb

for config in sorted(pathlib.Path(__file__).resolve().parent.glob("runs/*/config.json")):
    with wandb.init(project=(sys.argv[1:] or ["tprimat"])[0], name=config.parent.name, mode="offline",
                    config=json.loads(config.read_text(encoding="utf-8"))) as run:
        for line in open(config.parent / "history.jsonl", encoding="utf-8"):
            row = json.loads(line)
            run.log(row, step=row.pop("_step"))
        run.summary.update(json.loads((config.parent / "summary.json").read_text(encoding="utf-8")))
