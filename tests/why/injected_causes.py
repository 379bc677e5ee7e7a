#!/usr/bin/env python3
"""Causes of slowness that a test puts into trainings, and what `tprimat why` says of them.

  injected_causes.py TPRIMAT TRAINER SLOW_SOCKETS [--whole] [--framework native|tran] [--cause NAME] [--pairs N] [--keep DIR]

TRAINER is injected_trainer, SLOW_SOCKETS the library of slow_sockets.cpp. A pair is a plain training A and a training B
with one cause inside, step by step in turns. By the medians of the pairs, the term of the cause holds at least 80 % of the
injected time, the others together less than 10 %; the remainder is at most 5 % of the gap for all causes but one, which
the ledger calls unresolved. Pairs of equal trainings have no cause. Without --whole: three causes of the native trainer,
three pairs each; single slow steps, which are other programs', count only where they are the cause, and what equal
trainings of one machine differ by is allowed on top: the steps of the A of all pairs. Exit status: 0 all holds, 1 something does not.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "parity"))
import causes  # noqa: E402
from chosen_python import lacks, use_chosen_python  # noqa: E402
from injected_trainings import Programs, train  # noqa: E402

MIN_SHARE, MAX_OTHERS, MAX_REMAINDER = 0.8, 0.1, 0.05
QUICK = ("data loader", "copies", "slow steps")
QUICK_PAIRS, PAIRS, EQUAL_PAIRS = 3, 5, 10
TRIES = 6  # of a pair that is refused


@dataclasses.dataclass
class Explained:
    """One pair: seconds per step."""

    injected: float
    plain: float  # the step of A, which is the same training in every pair
    gap: float
    terms: dict
    resolved: bool
    named: list  # terms whose interval excludes 0 and which are more than noise

    def right(self, cause):
        return sum(self.terms.get(name, 0.0) for name in cause.terms)

    def others(self, cause, is_strict):
        left_out = {*cause.terms, "unexplained", *([] if is_strict else ["outliers"])}
        return sum(value for name, value in self.terms.items() if name not in left_out)


def explain(programs, a, b):
    """Nothing where other programs changed the machine between a side's recorded and its other steps."""
    command = [programs.folder / "tprimat", "why", str(a), str(b), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 2 and "the recorded steps take" in done.stderr:
        print(f"         refused: {done.stderr.splitlines()[0]}", flush=True)
        return None
    if done.returncode != 0:
        raise SystemExit(f"{command} failed with {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def named_terms(ledger):
    """What the ledger calls a finding."""
    return [term["cause"] for term in ledger["terms"] if term.get("sentence")]


def pair(programs, framework, cause, folder):
    for attempt in range(TRIES):
        a, b = train(programs, framework, cause, folder / f"try_{attempt}")
        ledger = explain(programs, a.explained, b.explained)
        if ledger:
            break
    else:
        raise SystemExit(f"{framework}, {cause.name}: {TRIES} pairs were refused one after the other")
    (folder / "why.json").write_text(json.dumps(ledger, indent=1))
    terms = {term["cause"]: term["seconds"] for term in ledger["terms"]}
    total = sum(terms.values())
    assert abs(total - ledger["gap_seconds"]) <= 1e-9 + 1e-6 * abs(total), f"terms add up to {total}, not {ledger['gap_seconds']}"
    injected = b.injected_seconds - a.injected_seconds if cause.reported else b.step_seconds - a.step_seconds
    return Explained(injected, a.step_seconds, ledger["gap_seconds"], terms, ledger["resolved"], named_terms(ledger))


def median(pairs, figure):
    return statistics.median(figure(each) for each in pairs)


@dataclasses.dataclass
class Row:
    framework: str
    cause: causes.Cause
    pairs: list
    is_strict: bool

    def figures(self):
        share = median(self.pairs, lambda p: p.right(self.cause) / p.injected)
        others = median(self.pairs, lambda p: p.others(self.cause, self.is_strict) / p.injected)
        remainder = median(self.pairs, lambda p: p.terms.get("unexplained", 0.0) / p.gap)
        return share, others, remainder

    def line(self):
        share, others, remainder = self.figures()
        injected, gap = (median(self.pairs, lambda p, name=name: getattr(p, name)) * 1e3 for name in ("injected", "gap"))
        term = median(self.pairs, lambda p: p.right(self.cause)) * 1e3
        return (f"{self.framework:<8} {self.cause.name:<14} {injected:>8.2f} {gap:>8.2f}  {'+'.join(self.cause.terms):<16} "
                f"{term:>8.2f} {share:>7.1%} {others:>+7.1%} {remainder:>+9.1%}  {len(self.pairs)}")

    def noise(self):
        """Of the injected time, what the machine's own changes between pairs may add to a term or take from it."""
        plain = [p.plain for p in self.pairs]
        return (max(plain) - min(plain)) / median(self.pairs, lambda p: p.injected)

    def problems(self):
        share, others, _ = self.figures()
        where, noise = f"{self.framework}, {self.cause.name}", 0 if self.is_strict else self.noise()
        if share < MIN_SHARE - noise:
            yield f"{where}: the term holds {share:.1%} of the injected time"
        if abs(others) >= MAX_OTHERS + noise:
            yield f"{where}: the other terms move by {others:+.1%} of it: {self.longest_others()}"

    def longest_others(self):
        names = sorted({name for p in self.pairs for name in p.terms} - {*self.cause.terms, "unexplained"})
        medians = {name: median(self.pairs, lambda p, n=name: p.terms.get(n, 0.0)) * 1e3 for name in names}
        largest = sorted(medians.items(), key=lambda item: -abs(item[1]))[:3]
        return ", ".join(f"{name} {value:+.2f} ms" for name, value in largest)


HEAD = (f"{'trainer':<8} {'cause':<14} {'injected':>8} {'gap':>8}  {'term':<16} {'ms':>8} {'share':>7} {'others':>7} "
        f"{'remainder':>9}  pairs\n{'':<23} {'ms':>8} {'ms':>8}")


def check_remainders(framework, rows):
    """At most one cause leaves more, and then the ledger says so."""
    open_rows = [row for row in rows if abs(row.figures()[2]) > MAX_REMAINDER]
    for row in open_rows:
        silent = [p for p in row.pairs if abs(p.terms.get("unexplained", 0.0)) > MAX_REMAINDER * abs(p.gap) and p.resolved]
        if silent:
            yield f"{framework}, {row.cause.name}: {len(silent)} ledgers hide a remainder of more than {MAX_REMAINDER:.0%}"
    if len(open_rows) > 1:
        yield f"{framework}: {', '.join(row.cause.name for row in open_rows)} leave more than {MAX_REMAINDER:.0%} unexplained"


def measure(programs, framework, chosen, pairs, folder, is_strict):
    rows = []
    for cause in chosen:
        done = []
        for number in range(pairs):
            done.append(pair(programs, framework, cause, folder / f"{framework}_{cause.name.replace(' ', '_')}_{number}"))
        rows.append(Row(framework, cause, done, is_strict))
        print(rows[-1].line(), flush=True)
    yield from (problem for row in rows for problem in row.problems())
    yield from check_remainders(framework, rows)


def check_equal(programs, framework, pairs, folder):
    """Trainings that are equal have no cause."""
    named = []
    for number in range(pairs):
        each = pair(programs, framework, causes.EQUAL[framework], folder / f"{framework}_equal_{number}")
        named += [f"pair {number}: {', '.join(each.named)}"] if each.named else []
    print(f"{framework:<8} {'equal':<14} {pairs} pairs, {len(named)} with a cause", flush=True)
    return [f"{framework}, equal trainings: {line}" for line in named]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=3, type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--framework", choices=("native", "tran"), action="append")
    parser.add_argument("--cause", action="append")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--keep", type=pathlib.Path)
    return parser.parse_args()


def check_framework(arguments, programs, framework, folder):
    known = causes.NATIVE if framework == "native" else causes.TORCH
    names = arguments.cause or ([cause.name for cause in known] + ["equal"] if arguments.whole else QUICK)
    pairs = arguments.pairs or (PAIRS if arguments.whole else QUICK_PAIRS)
    chosen = [cause for cause in known if cause.name in names]
    problems = list(measure(programs, framework, chosen, pairs, folder, arguments.whole))
    if "equal" in names:
        problems += check_equal(programs, framework, arguments.pairs or EQUAL_PAIRS, folder)
    return problems


def main():
    use_chosen_python()
    arguments = parse()
    frameworks = arguments.framework or (["native", "tran"] if arguments.whole else ["native"])
    if "tran" in frameworks and lacks("torch", "transformers", "accelerate"):
        frameworks.remove("tran")
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or pathlib.Path(name) / "pairs"
        programs = Programs(*(path.resolve() for path in arguments.programs), folder / "programs")
        programs.install()
        print(HEAD, flush=True)
        for framework in frameworks:
            problems += check_framework(arguments, programs, framework, folder)
    for problem in problems:
        print(f"error: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
