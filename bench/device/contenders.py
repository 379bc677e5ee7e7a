"""Who trains a cell: our trainer and its peers, each in the setting that is the fastest as far as is known."""

import json
import re
import statistics

import parts
import programs
from trainings import WARMUP, make_spec, out_of_memory

RECOMPUTE = ("none", "selective", "full")  # the first that fits is the fastest
TRY_STEPS = 3  # timed, of a setting that is tried
# Seconds below which a process is not worth a start: it fills the card with a model of 8 billion, then compiles.
NEEDED = {"native": 30, "no": 25, "blocks": 40, "whole": 60}


class Contender:
    """One that trains a cell: its runs, and why it cannot go on."""

    def __init__(self, options, cell, name):
        self.options, self.cell, self.name = options, cell, name
        self.setting, self.runs, self.tried, self.failed = None, [], [], None

    def rounds(self):
        """Runs in the setting that counts now."""
        return [run for run in self.runs if self.setting in (None, run["setting"])]

    def needed(self):
        """Seconds below which a run is not worth a start; once there was one, what that took."""
        return min([run["wall_seconds"] for run in self.rounds()], default=self.least())

    def untried(self):
        return []

    def try_settings(self, save):
        """Nothing to try, where nothing is chosen."""

    def log(self, part=""):
        return f"{self.cell.file_name()}_{self.name}{part}"


class Native(Contender):
    """`tprimat train`: recomputation as little as fits. Memory is counted before the first step, so trying is cheap."""

    def __init__(self, options, cell, name="native"):
        super().__init__(options, cell, name)
        self.precision = {"precision": "fp8"} if name == "native-fp8" else {}

    def take_up(self, saved, stored):
        self.runs = saved.get("runs", {}).get(self.name, [])
        self.setting = self.runs[-1]["setting"] if self.runs else None

    def least(self):
        return NEEDED["native"]

    def run_one(self, setting, flags=(), part="", needed=None):
        folder, environment = self.options.work, self.options.programs.environment
        spec, steps = folder / f"{self.log(part)}.json", folder / f"{self.log(part)}.jsonl"
        spec.write_text(json.dumps({**make_spec(self.cell, self.options), **setting}))
        steps.unlink(missing_ok=True)
        command = [self.options.programs.find("tprimat"), "train", "--spec", spec, "--device", self.options.device]
        done = self.options.runner.run([*command, *flags], self.log(part), needed or self.needed(),
                                       {**environment, "TPRIMAT_STEPS": str(steps)})
        if done.failure():
            return {"failed": done.failure(), "wall_seconds": done.seconds}
        records = read_steps(steps)
        if len(records) != WARMUP + self.options.steps:
            return {"failed": f"the trainer recorded {len(records)} of {WARMUP + self.options.steps} steps",
                    "wall_seconds": done.seconds}
        allocated = re.search(r"allocated ([\d.]+) GB", done.output)
        attention = re.search(r"^kernels \| attention (.+) \|$", done.output, re.MULTILINE)
        return {"seconds": [record["time_seconds"] for record in records[WARMUP:]], "loss": records[-1].get("loss"),
                "losses": [record.get("loss") for record in records], "begin": done.begin, "setting": setting,
                "attention": attention.group(1) if attention else None,  # what ran, not what was asked for
                "allocated_bytes": float(allocated.group(1)) * 1e9 if allocated else None,
                "wall_seconds": done.seconds, "output": done.output}

    def run(self, flags=(), part=""):
        wanted = [self.setting] if self.setting else [{"recompute": kind, **self.precision} for kind in RECOMPUTE]
        for setting in wanted:
            outcome = self.run_one(setting, flags, part)
            if not out_of_memory(outcome.get("failed")):
                break
        if "failed" not in outcome:
            self.setting = outcome["setting"]
        return outcome


class Peer(Contender):
    """peers.py: in each round the fastest setting that is known, else the stored one; then those that are left."""

    def settings(self):
        """The most promising first. Those with recomputation come in only where nothing else fits."""
        kernels = ("cudnn", "flash") if self.options.device != "cpu" else ("math",)
        if self.name == "hf":
            plain = [{"attention": kernel, "compile": kind} for kernel in kernels for kind in ("whole", "no")]
            return plain, [{**setting, "checkpoint": 1} for setting in plain]
        kinds = ("no",) if self.name == "eager" else ("whole", "blocks")
        plain = [{"attention": kernel, "loss": loss, "compile": kind}
                 for loss in ("whole", "chunked") for kernel in kernels for kind in kinds]
        tight = [{**setting, "checkpoint": every} for every in (2, 1) for setting in plain
                 if setting["loss"] == "chunked"]
        return plain, tight

    def take_up(self, saved, stored):
        self.tried = saved.get("tried", {}).get(self.name, [])
        self.runs = saved.get("runs", {}).get(self.name, [])
        self.choose(stored)

    def choose(self, stored=None):
        good = [each for each in self.tried if each.get("seconds")]
        if good:
            self.setting = min(good, key=lambda each: statistics.median(each["seconds"]))["setting"]
        elif stored and stored not in [each["setting"] for each in self.tried]:
            self.setting = stored
        else:
            self.setting = next(iter(self.untried()), None)

    def untried(self):
        known = [each["setting"] for each in self.tried]
        left = [[setting for setting in settings if setting not in known] for settings in self.settings()]
        fits = any(each.get("seconds") for each in self.tried)
        return left[0] if left[0] or fits else left[1]

    def least(self, setting=None):
        return NEEDED[(setting or self.setting or {}).get("compile", "no")]

    def note(self, outcome):
        """The longest measurement of a setting counts."""
        entry = {key: outcome.get(key) for key in ("setting", "seconds", "failed", "allocated_bytes")}
        earlier = next((each for each in self.tried if each["setting"] == entry["setting"]), None)
        if earlier and len(earlier.get("seconds") or ()) > len(entry["seconds"] or ()):
            return
        self.tried = [each for each in self.tried if each is not earlier] + [entry]

    def measure(self, settings, steps, needed, part, on_outcome):
        """Each outcome as soon as it is printed; returns how the process ended, and its versions."""
        folder, versions = self.options.work, {}
        case = folder / f"{self.log(part)}.json"
        case.write_text(json.dumps({"spec": make_spec(self.cell, self.options), "formats": self.cell.formats,
                                    "peer": "hf" if self.name == "hf" else "torch", "settings": settings,
                                    "steps": steps, "warmup": WARMUP}))
        if self.options.runner.dry_run:
            programs.note(f"# {self.cell.name()} {self.name}: {json.dumps(settings)}")

        def read(line):
            found = read_object(line)
            versions.update(found.get("versions", {}))
            return on_outcome(found) if "setting" in found else False
        command = [self.options.python, programs.HERE / "peers.py", case, "--device",
                   "cpu" if self.options.device == "cpu" else "cuda"]
        done = self.options.runner.run(command, self.log(part), needed, self.options.torch_environment, read)
        return done, versions

    def run(self):
        """One round."""
        if not self.setting:
            why = "; ".join(each["failed"] for each in self.tried if each.get("failed"))
            return {"failed": f"all settings failed: {why}"[:400]}
        found = []
        done, versions = self.measure([self.setting], self.options.steps, self.needed(), "", found.append)
        if not found:
            return {"failed": done.failure() or "the process printed nothing"}
        self.note(found[0])
        if "failed" in found[0]:
            self.choose()
        return {**found[0], "versions": versions, "begin": done.begin, "wall_seconds": done.seconds}

    def try_settings(self, save):
        """One process for all that are left, and another one behind a setting that ended it."""
        runner = self.options.runner

        def keep(outcome):
            """True where too little time is left for the next one."""
            self.note(outcome)
            self.choose()
            self.failed = None
            save()
            programs.note(f"  {self.cell.name():32}{self.name:11}{show(outcome)}  tried")
            following = self.untried()
            return bool(following) and runner.budget.left() < self.least(following[0])
        while self.untried():
            todo = self.untried()
            done, versions = self.measure(todo, TRY_STEPS, self.least(todo[0]), "_tries", keep)
            missing = [setting for setting in todo if setting not in [each["setting"] for each in self.tried]]
            if done.late or runner.dry_run:
                return
            if missing and not (versions and done.failure()):
                self.failed = done.failure() or "the process printed nothing"
                return
            if missing:
                keep({"setting": missing[0], "failed": f"the process died: {done.failure()}"[:400]})


def read_steps(path):
    """The records of `tprimat train` that are whole."""
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return [found for found in map(read_object, lines) if parts.fits(found, {"time_seconds": parts.NUMBER})]


def read_object(line):
    """A line of JSON; {} where it is any other line."""
    try:
        return json.loads(line) if line.startswith("{") else {}
    except ValueError:
        return {}


def show(outcome):
    """Milliseconds and setting, or why there are none."""
    text = outcome.get("failed") or f"{statistics.median(outcome['seconds']) * 1e3:10.2f} ms"
    return f"{text}  {json.dumps(outcome['setting'])}" if outcome.get("setting") else text


def make(options, cell, name):
    return Native(options, cell, name) if name.startswith("native") else Peer(options, cell, name)
