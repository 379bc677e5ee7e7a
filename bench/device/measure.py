#!/usr/bin/env python3
"""Runs one call of native.sh: resumes from earlier results and saves each measurement.

The results of a call are LETTER_CALL.json, LETTER_CALL_gpu.csv, LETTER_CALL_logs.tar.gz and, of all calls, table.txt;
peers adds choices.json.
"""

import contextlib
import datetime
import fcntl
import importlib.util
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
import command_line
import comparison
import gpu_tests
import parts
import programs
import provide
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

    def note(self, text):
        if not self.options.dry_run:
            programs.note(text)

    def take_up(self):
        """What is resumed; a part in the way is moved aside, never overwritten."""
        folders = [] if self.options.again else [self.folder, *self.options.earlier]
        found, path, note = parts.take_up(folders, self.name, self.options.device_name, self.revision)
        if note:
            self.note(note)
        own = parts.path_of(self.folder, self.name)
        if own.exists() and own != path and not self.options.dry_run:
            self.note(parts.move_aside(own))
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
        return table.render(*parts.present([self.folder, *self.options.earlier], self.options.device_name))

    def choices(self):
        """What a later call starts with; what was not measured here stays as it was."""
        measured = {trainings.name_of(cell): {name: cell["choices"][name] for name, tried in cell["tried"].items()
                                              if name in cell["choices"] and any(each.get("seconds") for each in tried)}
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
        self.note(f"  {name:58}{outcome:10}{seconds:7.1f} s  {detail}")
        self.save()

    def ask(self):
        """Sentences that say what stays open."""
        try:
            return ASK[self.name](self)
        except Exception as failure:  # what was measured before it is kept
            traceback.print_exc()
            return [f"{self.name} ended early: {type(failure).__name__}: {failure}"]

    def keep_logs(self):
        path = parts.free_name(self.folder, f"{parts.stem(self.name)}_logs", ".tar.gz")
        new = path.with_name(path.name + ".new")
        with tarfile.open(new, "w:gz") as logs:
            logs.add(self.options.work, ".")
        new.replace(path)

    def run(self):
        try:
            with card.Sampler(self.folder / f"{parts.stem(self.name)}_gpu.csv", self.options.device_name):
                self.part["open"] = self.ask()
            self.save()
        finally:
            self.keep_logs()
        self.note("\n" + self.table() + f"\nresults in {self.folder}")
        return 1 if self.part["open"] else 0


def end_on_signals():
    """The logs are kept, and what was started ends, too; nohup stays what it is."""
    known = [each for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]

    def end(number, _):
        for each in known:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)
    for each in known:
        signal.signal(each, end)


@contextlib.contextmanager
def locked(folder):
    """One call at a time writes there. The file holds the number of its process, and goes with it."""
    path = folder / ".lock"
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = os.path.samestat(os.fstat(file.fileno()), os.stat(path))  # else its holder just took it away
        except (BlockingIOError, FileNotFoundError):
            free = False
        if not free:
            file.seek(0)
            programs.refuse(1, f"process {file.read().strip() or 'of another call'} writes its results to {folder}; "
                               "wait for it, or name another folder in OUT")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def check_torch(options):
    absent = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
    if options.call == "peers" and absent and not options.dry_run:
        programs.refuse(4, f"{sys.executable} has no {' and no '.join(absent)}; name a Python with torch and "
                           "transformers in PYTHON")


def prepare(options, work):
    """Where results go and come from, and what starts programs."""
    options.device_name = "cpu" if options.device == "cpu" else card.NO_GPU if options.dry_run else card.name_device()
    folder = card.folder_name(options.device_name)
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    options.out = pathlib.Path(os.environ.get("OUT") or RESULTS / f"{today}_{folder}").absolute()
    if not options.dry_run:
        command_line.check_writable(options.out)
    check_torch(options)
    options.programs = provide.find(options.programs, options.dry_run)
    options.earlier = [options.resume.absolute()] if options.resume else parts.folders_of(RESULTS, folder)
    options.work, options.runner = work, programs.Runner(programs.Budget(options.budget), work, options.dry_run)
    options.python, options.torch_environment = sys.executable, trainings.torch_environment()
    return options


def print_commands(call):
    programs.note("$ " + shlex.join(card.sampling(card.QUERY)))
    raise SystemExit(1 if any("ended early" in each for each in call.ask()) else 0)


def main():
    asked = command_line.read_options(__doc__)
    end_on_signals()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with tempfile.TemporaryDirectory() as work:
        options = prepare(asked, pathlib.Path(work))
        if options.dry_run:
            print_commands(Call(options))
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            programs.refuse(2, f"{failure}; name another folder in OUT")
        with locked(options.out):
            raise SystemExit(Call(options).run())


if __name__ == "__main__":
    main()
