#!/usr/bin/env python3
"""`tprimat why` on real traces whose facts an independent script computed, and on nonsense made of them.

  real_pairs.py TPRIMAT SHARED_DATA

SHARED_DATA holds trace_pairs/ (MANIFEST.tsv has the facts) and traces/. Every pair closes to 5 % of its gap, its classes
per side are within 2 % or 0.05 ms per step of the facts, its terms have the signs of the story. Exit status: 0 all holds,
1 something does not, 77 the traces are not there.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
MAX_REMAINDER, MAX_RELATIVE, MAX_MILLISECONDS = 0.05, 0.02, 0.05
CLASSES = {"gemm": "matmul", "conv": "convolution", "comm": "collective", "reduce": "reduction"}  # others have our names
HOST = ("data", "synchronisation", "launch")
COMPUTE = ("products", "attention", "memory_bound", "one_sided", "work", "unknown_kernels")


class Checks:
    def __init__(self, tprimat, folder):
        self.tprimat, self.folder, self.failed = tprimat, folder, 0

    def expect(self, holds, what):
        self.failed += not holds
        if not holds:
            print(f"error: {what}", flush=True)

    def why(self, *words):
        return subprocess.run([self.tprimat, "why", *map(str, words)], capture_output=True, text=True, cwd=self.folder)

    def ledger(self, a, b):
        done = self.why(a, b, "--json")
        self.expect(done.returncode == 0, f"why {a} {b} ends with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def refuses(self, what, *words):
        """With one sentence, and no ledger."""
        done = self.why(*words)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        self.expect(done.returncode == 2 and len(lines) == 1 and not done.stdout,
                    f"{what}: exit status {done.returncode}, {done.stdout[:200]}{done.stderr[:400]}")
        print(f"ok   {what}: {lines[0][:110] if lines else ''}", flush=True)


def read_facts(folder):
    rows = [line.split("\t") for line in (folder / "MANIFEST.tsv").read_text().splitlines()[1:]]
    return {row[0]: row[3] for row in rows}


def classes_of(facts):
    """Milliseconds per step and by class: copies are memcpy and memset, by the copy engines or as kernels of the driver."""
    steps = int(re.search(r"steps (\d+):", facts).group(1))
    listed = re.search(r"by class \(ms/count\): ([^;]*);", facts).group(1)
    sums = {CLASSES.get(name, name): float(ms) for name, ms in re.findall(r"(\w+) ([\d.]+)/\d+", listed)}
    sums["copy"] = sum(float(ms) for ms in re.findall(r"mem(?:cpy|set) \d+ = ([\d.]+) ms", facts))
    return {name: total / steps for name, total in sums.items()}


def check_classes(checks, where, ledger, side, facts):
    found = {row["class"]: row[f"{side}_seconds"] * 1e3 for row in ledger["classes"]}
    expected = classes_of(facts)
    for name in sorted({*found, *expected}):
        one, other = found.get(name, 0.0), expected.get(name, 0.0)
        near = abs(one - other) <= max(MAX_RELATIVE * other, MAX_MILLISECONDS)
        checks.expect(near, f"{where}, side {side}: {name} takes {one:.3f} ms per step, {other:.3f} by the facts")


def check_closed(checks, where, ledger, facts):
    terms = {term["cause"]: term["seconds"] * 1e3 for term in ledger["terms"]}
    gap = ledger["gap_seconds"] * 1e3
    stated = float(re.search(r"ms per step: step ([+-][\d.]+)", facts).group(1))
    checks.expect(abs(gap - stated) <= 0.01, f"{where}: the gap is {gap:.3f} ms, {stated:.3f} by the facts")
    checks.expect(abs(sum(terms.values()) - gap) <= 1e-6, f"{where}: terms add up to {sum(terms.values())} ms, not {gap}")
    remainder = abs(terms["unexplained"]) / abs(gap)
    checks.expect(remainder <= MAX_REMAINDER, f"{where}: {remainder:.1%} of the gap is not explained")
    print(f"{where}: gap {gap:+.3f} ms = " + " ".join(f"{name} {ms:+.3f}" for name, ms in terms.items() if abs(ms) >= 5e-4),
          flush=True)
    return terms


def total(terms, names):
    return sum(terms[name] for name in names)


# What the manifest tells of each pair, in our terms.
STORIES = {
    "tracelens_qwen05b": lambda t: t["products"] > 1 and t["attention"] > 1 and total(t, ("memory_bound", "one_sided")) < -6,
    "tracelens_timesformer": lambda t: total(t, HOST) > 30 and total(t, ("memory_bound", "one_sided")) < -30,
    "tracelens_vit_nsfw": lambda t: total(t, HOST) < -0.5 < total(t, COMPUTE),
    "kineto_resnet50_workers": lambda t: t["data"] < -15 and abs(total(t, COMPUTE)) < 4,
    "hta_dlrm": lambda t: t["products"] + t["memory_bound"] + t["one_sided"] > 20 and total(t, HOST) < 10,
}


def check_pairs(checks, pairs, facts):
    for name, story in STORIES.items():
        sides = [path for path in facts if path.startswith(f"{name}/") and path.endswith(".json.gz")]
        ledger = checks.ledger(*(pairs / side for side in sides))
        if ledger is None:
            continue
        terms = check_closed(checks, name, ledger, facts[f"{name}/"])
        checks.expect(story(terms), f"{name}: the terms do not tell the story: {facts[f'{name}/']}")
        for side, path in zip("ab", sides):
            check_classes(checks, name, ledger, side, facts[path])


def check_reports(checks, pairs):
    """Two folders of CSV reports of TraceLens: the exposed communication is most of the difference."""
    folder = pairs / "rccl_threads_28ch_rank0"
    ledger = checks.ledger(folder / "256thread", folder / "512thread")
    if ledger is None:
        return
    terms = {term["cause"]: term["seconds"] for term in ledger["terms"]}
    largest = max(terms, key=lambda name: abs(terms[name]))
    checks.expect(largest in ("communication", "waiting"), f"{folder.name}: the largest term is {largest}: {terms}")
    share = terms["unexplained"] / ledger["gap_seconds"]
    checks.expect(abs(share) <= MAX_REMAINDER, f"{folder.name}: {share:.1%} is not explained")
    print(f"{folder.name}: {terms}", flush=True)


def check_reading(checks, traces):
    """Every trace is read: against itself it differs in nothing, or holds no steps, which is said."""
    for path in sorted(traces):
        done = checks.why(path, path, "--json")
        said = done.stderr.strip().splitlines()
        if done.returncode == 0:
            ledger = json.loads(done.stdout)
            zero = all(abs(term["seconds"]) < 1e-9 for term in ledger["terms"])
            checks.expect(zero, f"{path.name} differs from itself: {ledger['terms']}")
            print(f"ok   {path.name}: {ledger['a']['steps']} steps, {ledger['a']['step_seconds'] * 1e3:.3f} ms", flush=True)
        else:
            # read, but without steps: the one reason why a trace of a training has no ledger
            checks.expect(done.returncode == 2 and any("step" in line for line in said),
                          f"{path.name}: exit status {done.returncode}: {done.stderr[:400]}")
            print(f"ok   {path.name}: {said[0][:110] if said else ''}", flush=True)


def changed(path, change, to):
    trace = json.loads(gzip.decompress(path.read_bytes()))
    change(trace)
    to.write_bytes(gzip.compress(json.dumps(trace).encode(), 1))
    return to


def drop_steps(trace):
    trace["traceEvents"] = [event for event in trace["traceEvents"] if "ProfilerStep" not in str(event.get("name"))]


def stretch_kernels(trace):
    """As long as no stream could work them off one after the other."""
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] *= 50


def check_nonsense(checks, pairs):
    vit, qwen = pairs / "tracelens_vit_nsfw/h100.json.gz", pairs / "tracelens_qwen05b/h100.json.gz"
    checks.refuses("two models", vit, qwen)
    text = gzip.decompress(vit.read_bytes())
    half, cut = checks.folder / "half.json", checks.folder / "cut.json.gz"
    half.write_bytes(text[:len(text) // 2])
    cut.write_bytes(vit.read_bytes()[:100000])
    checks.refuses("half of a trace", half, vit)
    checks.refuses("a cut archive", vit, cut)
    checks.refuses("no steps", changed(vit, drop_steps, checks.folder / "no_steps.json.gz"), vit)
    checks.refuses("doctored durations", vit, changed(vit, stretch_kernels, checks.folder / "stretched.json.gz"))
    checks.refuses("no trace", vit, pairs / "README.md")
    checks.refuses("no file", vit, checks.folder / "absent.json")


def main():
    tprimat, shared = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    pairs = shared / "trace_pairs"
    if not (pairs / "MANIFEST.tsv").exists():
        print(f"skipped: {pairs} is missing: it is of the example data set, whose folder belongs at {shared.resolve()}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        checks = Checks(tprimat, pathlib.Path(name))
        facts = read_facts(pairs)
        check_pairs(checks, pairs, facts)
        check_reports(checks, pairs)
        check_reading(checks, [*(shared / "traces").glob("*.json.gz"), *(pairs / "single").glob("*.json.gz")])
        check_nonsense(checks, pairs)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
