#!/usr/bin/env python3
"""One call of native.sh, which says what each one asks: takes up earlier results, measures, keeps every measurement.

The results of a call are LETTER_CALL.json, LETTER_CALL_gpu.csv, LETTER_CALL_logs.tar.gz and, of all calls, table.txt;
peers adds choices.json.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import signal
import sys
import tarfile
import tempfile
import traceback

import card
import comparison
import gpu_tests
import parts
import programs
import revision
import table
import trainings

RESULTS = programs.HERE.parents[1] / "bench" / "results"
ASK = {"attention": gpu_tests.attention, "step": comparison.step, "peers": comparison.peers,
       "parity": comparison.parity, "fp8": comparison.fp8, "memcheck": gpu_tests.memcheck}


class Call:
    """One call with its part of the results."""

    def __init__(self, options):
        self.options, self.name, self.folder = options, options.call, options.out
        self.runner, self.programs = options.runner, options.programs
        self.begin, self.revision = comparison.utc_now(), revision.revision_of_programs(options.programs.folder)
        self.part = self.take_up()
        self.part["calls"].append({"begin": self.begin, "budget_seconds": options.budget})

    def say(self, text):
        if not self.options.dry_run:
            print(text, flush=True)

    def take_up(self):
        folders = [] if self.options.again else [self.folder, *self.options.earlier]
        found, note = parts.take_up(folders, self.name, self.revision)
        if note:
            self.say(note)
        fresh = {"call": self.name, "revision": self.revision, "calls": [], "tests": [], "trainings": [],
                 "operations": [], "failed": {}}
        return {**(found or fresh), "date": self.begin, "device": self.options.device_name,
                "shapes": {**(found or {}).get("shapes", {}), **self.options.shapes}}

    def save(self):
        if self.options.dry_run:
            return
        samples = card.read_samples(self.folder / f"{parts.stem(self.name)}_gpu.csv")
        for run in (run for cell in self.part["trainings"] for runs in cell["runs"].values() for run in runs):
            run["card"] = card.summarise(samples, run["begin"], run["wall_seconds"]) or run.get("card", {})
        parts.write(self.folder / f"{parts.stem(self.name)}.json", json.dumps(self.part, indent=1))
        parts.write(self.folder / "table.txt", self.table())
        if self.name == "peers":
            parts.write(self.folder / "choices.json", json.dumps(self.choices(), indent=1))

    def table(self):
        return table.render(parts.present([self.folder, *self.options.earlier]))

    def choices(self):
        """What a later call starts with; what was not measured here stays as it was."""
        measured = {trainings.name_of(cell): {name: cell["choices"][name] for name, tried in cell["tried"].items()
                                              if any(each.get("seconds") for each in tried)}
                    for cell in self.part["trainings"]}
        return {"note": f"{', '.join(name for name in measured if measured[name]) or 'nothing'} measured on "
                        f"{self.part['device']}, {self.begin}, revision {self.revision}; the rest as it was",
                "choices": {name: {**self.options.choices.get(name, {}), **measured.get(name, {})}
                            for name in {**self.options.choices, **measured}}}

    def entry(self, test):
        return next((each for each in self.part["tests"] if each["name"] == test), None)

    def outcome_of(self, test):
        entry = self.entry(test)
        return entry and entry["outcome"]

    def sentence_of(self, test):
        """What is open about a test; None where it passed."""
        entry = self.entry(test)
        if not entry:
            return f"{test}: no time was left for it"
        return None if entry["outcome"] == "passed" else f"{test}: {entry['outcome']}: {entry['detail']}"

    def note_test(self, name, outcome, seconds, detail="", **more):
        entry = {"name": name, "outcome": outcome, "seconds": seconds, "detail": detail, **more}
        earlier = self.entry(name)
        if outcome == "no time" and not seconds and earlier:
            return
        self.part["tests"] = [each for each in self.part["tests"] if each is not earlier] + [entry]
        self.say(f"  {name:58}{outcome:10}{seconds:7.1f} s  {detail}")
        self.save()

    def ask(self):
        """Sentences that say what stays open."""
        try:
            return ASK[self.name](self)
        except Exception as failure:  # what was measured before it is kept
            traceback.print_exc()
            return [f"{self.name} ended early: {type(failure).__name__}: {failure}"]

    def run(self):
        try:
            with card.Sampler(self.folder / f"{parts.stem(self.name)}_gpu.csv"):
                self.part["open"] = self.ask()
            self.save()
        finally:
            with tarfile.open(self.folder / f"{parts.stem(self.name)}_logs.tar.gz", "w:gz") as logs:
                logs.add(self.options.work, ".")
        self.say("\n" + self.table() + f"\nresults in {self.folder}")
        return 1 if self.part["open"] else 0


def read_call(text):
    by_letter = {letter: call for call, letter in parts.CALLS.items()}
    call = by_letter.get(text, text)
    if call not in parts.CALLS:
        known = ", ".join(f"{name} ({letter})" for name, letter in parts.CALLS.items())
        raise argparse.ArgumentTypeError(f"there is no call {text}; the calls are {known}")
    return call


def read_json(text):
    return json.loads(pathlib.Path(text).read_text(encoding="utf-8"))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", type=read_call, help=", ".join(parts.CALLS) + ", or their letters a to f")
    parser.add_argument("--programs", required=True, type=programs.Programs, metavar="FOLDER")
    parser.add_argument("--budget", type=float, default=450, metavar="SECONDS")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FOLDER", help="earlier results to go on from")
    parser.add_argument("--again", action="store_true", help="go on from nothing")
    parser.add_argument("--dry-run", action="store_true", help="print the command lines, start none")
    parser.add_argument("--device", choices=("nvd", "cpu"), default="nvd")
    parser.add_argument("--cells", nargs="+", type=trainings.parse_cell, default=trainings.CELLS,
                        metavar="MODEL:LENGTHxSEQUENCES[:bf16|:masters]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="timed steps of a process")
    parser.add_argument("--choices", type=lambda path: read_json(path)["choices"], metavar="FILE",
                        default=str(programs.HERE / "choices.json"), help="settings of the peers to begin with")
    parser.add_argument("--shapes", type=read_json, default={}, metavar="FILE", help="further models: name to shape")
    return parser.parse_args()


def prepare(options, work):
    """Where results go and come from, and what starts programs."""
    options.device_name = "no GPU" if options.dry_run else card.name_device()
    folder = card.folder_name(options.device_name)
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    options.out = pathlib.Path(os.environ.get("OUT") or RESULTS / f"{today}_{folder}")
    options.earlier = [options.resume] if options.resume else parts.folders_of(RESULTS, folder)
    options.work, options.runner = work, programs.Runner(programs.Budget(options.budget), work, options.dry_run)
    options.python, options.torch_environment = sys.executable, trainings.torch_environment()
    return options


def main():
    options = read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started, too
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with tempfile.TemporaryDirectory() as work:
        call = Call(prepare(options, pathlib.Path(work)))
        if options.dry_run:
            print("$ " + shlex.join(card.sampling(card.QUERY)))
            raise SystemExit(1 if any("ended early" in each for each in call.ask()) else 0)
        options.out.mkdir(parents=True, exist_ok=True)
        raise SystemExit(call.run())


if __name__ == "__main__":
    main()
