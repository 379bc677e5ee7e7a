#!/usr/bin/env python3
"""How well `tprimat claim` tells true rates from mistaken ones.

usage: check_claims.py PROGRAM TABLE... [--seeds N] [--rows N] [--show]

Draws true published rows by seed, judges each against the published runs of other sources, models or GPUs (--unseen),
and the same number of rows with one mistake made on purpose. Prints how many true rows come out typical or record and
in how many doctored ones the right mistake is named first. Exit status 1 below five sixths, or where a true row is
called impossible.
"""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

FIGURES = ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu_pct", "hfu_pct")
KINDS = ("dense", "sparse", "amd", "mlperf")
SHARE = 5 / 6


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k and v} for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def judge(program, rows):
    columns = sorted({key for row in rows for key in row} | {"model", "gpu"})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.tsv"
        lines = ["\t".join(columns)] + ["\t".join(row.get(c, "") for c in columns) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run([program, "claim", "--table", path, "--unseen", "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 5):
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def kind_of(row, report, sparse):
    if "MLPerf" in row.get("framework", ""):
        return "mlperf"
    if row["gpu"].startswith("MI"):
        return "amd"
    return "sparse" if sparse else "dense"


def by_convention(report):
    return {each["convention"]: each["tflops_per_gpu"] for each in report["conventions"]}


class Doctored:
    """One mistake made in a true row; `rate` is what was measured."""

    def __init__(self, row, report):
        self.plain = {key: value for key, value in row.items() if key not in FIGURES and key != "flop_convention"}
        self.plain["seq"] = str(report["sequence_length"])
        self.rate = report["tokens_per_second_per_gpu"]
        self.flops = by_convention(report)
        self.gpus = report["gpus"]

    def tokens(self, rate):
        return {**self.plain, "tokens_per_s_per_gpu": f"{rate:.6g}" if rate < 1e6 else f"{rate:.0f}"}

    def teraflops(self, value, convention="full"):
        return {**self.plain, "tflops_per_gpu": f"{value:.5g}" if value < 1e5 else f"{value:.0f}", "flop_convention": convention}

    def sparse_peak(self, draw):
        doubled = self.teraflops(2 * self.flops["full"])
        return {**doubled, **self.tokens(self.rate)} if draw.random() < 0.5 else doubled

    def other_convention(self, draw):
        counted = draw.choice(["full", "recompute_full"])
        stated = self.teraflops(self.flops[counted], "causal")
        name = "other_convention" if counted == "full" else "recompute_counted"
        worth = self.flops[counted] > 1.06 * self.flops["causal"]
        return ({**stated, **self.tokens(self.rate)}, name) if worth else None

    def aggregate_for_gpu(self, draw):
        return self.tokens(self.rate * self.gpus) if self.gpus > 1 else None

    def node_for_gpu(self, draw):
        return self.tokens(self.rate * 8) if self.gpus > 8 else None

    def double_length(self, draw):
        return self.tokens(2 * self.rate)

    def experts_dense(self, draw):
        counted = draw.choice(["experts_dense", "6n_total"])
        return self.teraflops(self.flops[counted]) if counted in self.flops else None


def doctor(row, report, draw, mistake):
    made = getattr(Doctored(row, report), mistake)(draw)
    if made is None:
        return None
    return made if isinstance(made, tuple) else (made, mistake)


MISTAKES = ("sparse_peak", "other_convention", "aggregate_for_gpu", "node_for_gpu", "double_length", "experts_dense")


def usable(row, report):
    notes = row.get("notes", "")
    weak = "CHECK" in notes or "not steady" in notes or "ACTIVATION" in notes
    return "verdict" in report and report["verdict"] and not weak


def draw_rows(pool, draw, count):
    """As many of each kind, as far as there are."""
    chosen = []
    kinds = {kind: [each for each in pool if each[2] == kind] for kind in KINDS}
    for each in kinds.values():
        draw.shuffle(each)
    while len(chosen) < count and any(kinds.values()):
        for kind in KINDS:
            if kinds[kind] and len(chosen) < count:
                chosen.append(kinds[kind].pop())
    return chosen


def check_true(program, chosen, show):
    verdicts = [report["verdict"] for report in judge(program, [row for row, _, _ in chosen])]
    for (row, _, kind), verdict in zip(chosen, verdicts):
        if show and verdict in ("suspicious", "impossible"):
            print(f"  true {kind} row called {verdict}: {row['model']} {row['gpu']} {row.get('source', '')}")
    return sum(v in ("typical", "record") for v in verdicts), verdicts.count("impossible")


def check_doctored(program, chosen, draw, show):
    made = []
    for row, report, kind in chosen:
        options = list(MISTAKES)
        draw.shuffle(options)
        found = next(filter(None, (doctor(row, report, draw, each) for each in options)))
        made.append((*found, kind))
    right = 0
    for (row, mistake, kind), report in zip(made, judge(program, [row for row, _, _ in made])):
        named = [each["mistake"] for each in report["suspicions"]]
        good = report["verdict"] in ("suspicious", "impossible") and named[:1] == [mistake]
        right += good
        if show and not good:
            print(f"  {mistake} in a {kind} row: {report['verdict']} {named}: {row['model']} {row['gpu']} {report['reason']}")
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    rows = [row for path in options.tables for row in read_rows(path) if row.get("model") and row.get("gpu")]
    reports = judge(options.program, rows)
    pool = [(row, report, kind_of(row, report, any(e["convention"] == "6n_total" for e in report["conventions"])))
            for row, report in zip(rows, reports) if usable(row, report)]
    failed = False
    for seed in range(1, options.seeds + 1):
        draw = random.Random(seed)
        true = draw_rows(pool, draw, options.rows)
        plausible, impossible = check_true(options.program, true, options.show)
        right = check_doctored(options.program, draw_rows(pool, draw, options.rows), draw, options.show)
        print(f"seed {seed}: {plausible} of {len(true)} true rows typical or record, {impossible} impossible; "
              f"{right} of {options.rows} mistakes named first")
        failed |= impossible > 0 or min(plausible, right) < SHARE * len(true)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
