#!/usr/bin/env python3
"""How far the planner's predictions are from published measurements: the tables of docs/planner.md.

    python3 bench/planner/accuracy.py build/release/tprimat                          prints them
    python3 bench/planner/accuracy.py build/release/tprimat --write docs/planner.md  replaces them in the page

The figures are those of `tprimat plan --validate published` and of `tprimat plan --calibrate published --folds 10
--folds-by rows|copies|sources|models|gpus`.
"""

import argparse
import json
import subprocess

BEGIN, END = "<!-- accuracy: begin -->\n", "<!-- accuracy: end -->\n"
FOLDS_BY = {"rows": "rows", "copies": "near copies", "sources": "sources", "models": "models", "gpus": "GPUs"}


def report(program, *options):
    done = subprocess.run([program, "plan", "--json", *options], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def percent(share, digits=1):
    return "" if share is None else f"{100 * share:.{digits}f} %"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Reports:
    """The fitted parameters on all rows, and fits to the other folds by each kind of fold."""

    def __init__(self, program, tables, folds):
        self.fitted = report(program, "--validate", *tables)
        self.unseen = {by: report(program, "--calibrate", *tables, "--folds", str(folds), "--folds-by", by)
                       for by in FOLDS_BY}

    @staticmethod
    def errors(document, name):
        return next((each for each in document["together"] if each["of"] == name), None)

    def of(self, name, by=None):
        return self.errors(self.unseen[by] if by else self.fitted, name)

    def names(self, prefix):
        """Groups by name, the one with most rows first."""
        found = [each for each in self.unseen["rows"]["together"] if each["of"].startswith(prefix)]
        return [each["of"] for each in sorted(found, key=lambda each: (-each["rows"], each["of"]))]


def spread(errors):
    return ["", ""] if errors is None else [percent(errors["median"]), percent(errors["p90"])]


def pair(errors):
    return "" if errors is None else f"{100 * errors['median']:.1f} / {percent(errors['p90'])}"


def by_kind(reports):
    header = ["median / P90", "rows", "fitted", *(f"unseen {name}" for name in FOLDS_BY.values()),
              "rows in the 80 % interval", "near copies in it"]
    rows = []
    for name in ["all", *reports.names("vendor ")]:
        cells = [name.removeprefix("vendor "), str(reports.of(name, "rows")["rows"]), pair(reports.of(name))]
        cells += [pair(reports.of(name, by)) for by in FOLDS_BY]
        rows.append(cells + [percent((reports.of(name, by) or {}).get("covered"), 0) for by in ("rows", "copies")])
    return table(header, rows)


def by_group(reports, prefix, title, show=str):
    header = [title, "rows", "fitted: median", "unseen rows: median", "P90", "bias", "in the 80 % interval"]
    rows = []
    for name in reports.names(prefix):
        unseen = reports.of(name, "rows")
        rows.append([show(name.removeprefix(prefix)), str(unseen["rows"]), percent(reports.of(name)["median"]),
                     *spread(unseen), f"{100 * unseen['bias']:+.1f} %", percent(unseen.get("covered"), 0)])
    return table(header, rows)


def memory(reports):
    rows = []
    for name in ["memory", *reports.names("memory, "), "activations"]:
        unseen = reports.of(name, "rows")
        if unseen:
            rows.append([name.replace("memory, ", "memory of "), str(unseen["rows"]),
                         *spread(reports.of(name)), *spread(unseen)])
    return table(["", "rows", "fitted: median", "P90", "unseen rows: median", "P90"], rows)


def closing(reports):
    ranking, weak = reports.unseen["rows"]["ranking"], reports.of("weak", "rows")
    text = (f"- Ranking: the median rank correlation (Spearman) over {ranking['sweeps']} sweeps of unseen rows is "
            f"{ranking['median_spearman']:.2f} ("
            + ", ".join(f"{kind}: {value:.2f}" for kind, value in sorted(ranking["by_kind"].items())) + ").\n")
    if weak:
        text += (f"- Weak rows: {weak['rows']} rows are predicted, but not fitted: median {percent(weak['median'])}, "
                 f"P90 {percent(weak['p90'])}.\n")
    return text


def in_code(name):
    program, _, kind = name.partition(", ")
    return f"`{program}`, {kind}" if kind else f"`{program}`"


def render(reports):
    kinds = by_group(reports, "gpu ", "GPU")
    lines = kinds.splitlines(keepends=True)
    gpus = "".join(lines[:2] + [line for line in lines[2:] if ", " in line.split("|")[1]])
    return "\n".join([by_kind(reports), gpus, by_group(reports, "program ", "program", in_code),
                      by_group(reports, "table ", "table", in_code), by_group(reports, "precision ", "precision"),
                      memory(reports), closing(reports)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tprimat")
    parser.add_argument("--tables", nargs="+", default=["published"], help="in place of the built-in ones")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--write", metavar="PAGE", help="replace the tables between the markers of this page")
    options = parser.parse_args()
    text = render(Reports(options.program, options.tables, options.folds))
    if not options.write:
        print(text)
        return
    with open(options.write, encoding="utf-8") as page:
        before, rest = page.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(options.write, "w", encoding="utf-8") as page:
        page.write(before + BEGIN + "\n" + text + "\n" + END + after)


if __name__ == "__main__":
    main()
