#!/usr/bin/env python3
"""Tests and times the trainer on this machine's GPU, beside PyTorch; native.sh calls it and says what its options are."""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import traceback

import card
import programs
import table
import trainings

PARTS = ("tests", "parity", "train", "peers", "ops")
SANITIZERS = ("memcheck", "racecheck")
# Steps of a small model, here and there: in float32 the losses differ by rounding alone, in bf16 by its 8 bits.
PARITY = {"fp32": 1e-4, "bf16": 2e-2}
SMALL = {"name": "small", "full_name": "small", "num_layers": 4, "hidden_size": 256, "ffn_hidden_size": 512,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 4096,
         "max_position_embeddings": 512, "tied_embeddings": False, "qkv_bias": False, "linear_bias": False,
         "norm": "rms", "mlp": "swiglu", "position": "rope", "rope_theta": 10000.0, "norm_eps": 1e-5}


class Measurement:
    def __init__(self, options):
        self.options, self.budget = options, programs.Budget(options.budget)
        self.folder, self.work = options.results, options.work
        self.results = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                        "parts": options.only, "budget_seconds": options.budget, "tests": [], "trainings": [],
                        "operations": [], "failed": {}, "shapes": options.shapes, "device": options.device_name,
                        "program": self.version()}

    def version(self):
        program = self.options.programs.find("tprimat")
        if program is None:
            return "no tprimat"
        done = programs.run([program, "--version"], self.work / "version", 30,
                            self.options.programs.environment)
        return done.output.strip() or done.failure()

    def save(self):
        samples = card.read_samples(self.folder / "gpu.csv")
        for cell in self.results["trainings"]:
            for run in (run for runs in cell["runs"].values() for run in runs):
                run["card"] = card.summarise(samples, run["begin"], run["wall_seconds"])
        kept = self.folder / "results.json.new"
        kept.write_text(json.dumps(self.results, indent=1))
        kept.replace(self.folder / "results.json")
        (self.folder / "table.txt").write_text(table.render(self.results))

    def note_test(self, name, outcome, seconds, detail=""):
        self.results["tests"].append({"name": name, "outcome": outcome, "seconds": seconds, "detail": detail})
        print(f"  {name:42}{outcome:10}{seconds:7.1f} s  {detail}", flush=True)
        self.save()

    def run_tests(self, name, seconds, wrapper=(), label=""):
        program, title = self.options.programs.find(name), f"{name}{label}"
        if program is None:
            return self.note_test(title, "missing", 0.0, f"not in {self.options.programs.folder}")
        flags = [f"--gtest_filter={self.options.filter}"] if self.options.filter else []
        done = programs.run([*wrapper, program, *flags], self.work / title.replace(" ", "_"), seconds,
                            self.options.programs.environment)
        self.note_test(title, judge_tests(done), done.seconds, describe_tests(done))

    def tests(self):
        names = ("gpu_tests", "gpu_engine_tests")
        for name in names:
            self.run_tests(name, self.budget.left())
        watched = [(tool, name) for tool in SANITIZERS for name in names] if self.options.sanitize else []
        for number, (tool, name) in enumerate(watched):  # slow: each gets its part of what is left
            self.run_tests(name, self.budget.left() / (len(watched) - number),
                           ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86"], f" {tool}")

    def losses(self, precision, device):
        cell = trainings.Cell("small", 256, 4, "masters")
        wanted = argparse.Namespace(**{**vars(self.options), "device": device, "shapes": {"small": SMALL}})
        outcome = trainings.Native(wanted, cell).run_one({"precision": precision}, self.budget.left(), self.work)
        return outcome, outcome.get("wall_seconds", 0.0)

    def parity(self):
        for precision, limit in PARITY.items():
            here, first = self.losses(precision, "cpu")
            there, second = self.losses(precision, self.options.device)
            failures = [each["failed"] for each in (here, there) if "failed" in each]
            if failures:
                self.note_test(f"losses as on the processor, {precision}", "failed", first + second, failures[0])
                continue
            worst = max(abs(a - b) / abs(b) for a, b in zip(there["losses"], here["losses"]))
            self.note_test(f"losses as on the processor, {precision}", "passed" if worst <= limit else "failed",
                           first + second, f"largest relative difference {worst:.1e}, allowed {limit:.0e}")

    def compare(self, names):
        chosen = trainings.read_choices(self.options.choices)
        for cell in self.options.cells:
            comparison = trainings.Comparison(self.options, cell, names)
            comparison.adopt(chosen)
            self.results["trainings"].append(comparison.as_json())

            def save(comparison=comparison):
                self.results["trainings"][-1] = comparison.as_json()
                self.results.setdefault("choices", {})[comparison.cell.name()] = comparison.choices()
                self.save()
            comparison.measure(self.budget, self.work, save)

    def train(self):
        self.compare(["native", "native-fp8"])

    def peers(self):
        self.compare(self.options.contenders)

    def ops(self):
        for cell in self.options.cells[:1]:
            found = {"model": cell.model, "sequence_length": cell.length, "sequences": cell.sequences,
                     "formats": cell.formats, "profile": [], "ops": []}
            self.results["operations"].append(found)
            native = trainings.Native(self.options, cell)
            for kind in trainings.RECOMPUTE:
                outcome = native.run_one({"recompute": kind}, self.budget.left(), self.work, ["--profile"])
                if not trainings.out_of_memory(outcome.get("failed")):
                    break
            found["profile"] = read_profile(outcome.get("output", ""))
            if "failed" in outcome:
                self.results["failed"]["ops of native"] = outcome["failed"]
            self.save()
            self.peer_ops(cell, found)
        self.own_benches()

    def peer_ops(self, cell, found):
        shape = ["--shape", json.dumps(self.options.shapes[cell.model])] if cell.model in self.options.shapes else []
        done = programs.run([self.options.python, programs.HERE / "ops.py", "--model", cell.model, "--batch",
                             f"{cell.length}x{cell.sequences}", "--device",
                             "cpu" if self.options.device == "cpu" else "cuda", *shape],
                            self.options.log(cell, "ops"), self.budget.left(), self.options.torch_environment)
        lines = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
        found["ops"] = [line for line in lines if "operation" in line]
        troubles = [f"{line['group']}: {line['failed']}" for line in lines if "failed" in line]
        if done.failure() or troubles:
            self.results["failed"]["ops of PyTorch"] = "; ".join(filter(None, [done.failure(), *troubles]))
        self.save()

    def own_benches(self):
        for program in self.options.programs.benches():
            done = programs.run([program], self.work / program.name, self.budget.left(),
                                self.options.programs.environment)
            print(done.output, end="")
            self.note_test(program.name, "failed" if done.failure() else "passed", done.seconds, done.failure() or "")

    def run(self):
        for part in self.options.only:
            print(f"{part} ({self.budget.left():.0f} s left)", flush=True)
            try:
                getattr(self, part)()
            except Exception as failure:  # the parts after it still count
                self.results["failed"][part] = f"{type(failure).__name__}: {failure}"
                traceback.print_exc()
            self.save()
        print("\n" + table.render(self.results), end="", flush=True)
        good = ("passed", "skipped") if self.options.device == "cpu" else ("passed",)  # a GPU that is not seen is bad
        bad = [each for each in self.results["tests"] if each["outcome"] not in good]
        return 1 if bad or self.results["failed"] else 0


def judge_tests(done):
    """The sanitizers' own status is 86."""
    if done.status is None:
        return "no time" if "ran out" in done.failure() or "no time" in done.failure() else "failed"
    if done.status != 0:
        return "failed"
    if "skipped: " in done.output:
        return "skipped"
    return "passed" if re.search(r"\[  PASSED  \] [1-9]\d* tests?", done.output) else "failed"


def describe_tests(done):
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", done.output)
    failed = sorted(set(re.findall(r"\[  FAILED  \] ([\w./]+)", done.output)))
    found = re.findall(r"========= ((?:ERROR|RACECHECK) SUMMARY: .*)", done.output)
    well = len(re.findall(r"^\[       OK \]", done.output, re.MULTILINE))
    parts = [f"{passed.group(1) if passed else well} passed", f"failed: {' '.join(failed[:8])}" if failed else "",
             found[-1] if found else "", done.failure() or "" if not failed else ""]
    return "; ".join(part for part in parts if part)[:400]


def read_profile(text):
    """The lines of `tprimat train --profile`: name, calls, ms of a step."""
    lines = re.findall(r"^  (\S.*?) +(\d+) +(\d+\.\d+) +\d+\.\d+%", text, re.MULTILINE)
    return [{"operation": name, "calls": int(calls), "ms": float(ms)} for name, calls, ms in lines]


def name_device():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "no GPU"
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else "no GPU"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, type=programs.Programs, metavar="FOLDER")
    parser.add_argument("--results", required=True, type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--work", required=True, type=pathlib.Path, metavar="FOLDER", help="for logs and specifications")
    parser.add_argument("--only", default=PARTS, type=lambda text: text.split(","), metavar="PART[,PART...]")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS")
    parser.add_argument("--device", choices=("nvd", "cpu"), default="nvd")
    parser.add_argument("--cells", nargs="+", type=trainings.parse_cell, default=trainings.CELLS,
                        metavar="MODEL:LENGTHxSEQUENCES[:bf16|:masters]")
    parser.add_argument("--contenders", nargs="+", choices=trainings.CONTENDERS, default=list(trainings.CONTENDERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="timed steps of a process")
    parser.add_argument("--sanitize", action="store_true", help="tests again, under compute-sanitizer")
    parser.add_argument("--filter", help="of the tests, as --gtest_filter")
    parser.add_argument("--choices", metavar="RESULTS.json", help="settings of peers that an earlier call found")
    parser.add_argument("--shapes", type=lambda path: json.loads(pathlib.Path(path).read_text()), default={},
                        metavar="FILE", help="further models: JSON, name to shape")
    options = parser.parse_args()
    unknown = [part for part in options.only if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; the parts are {', '.join(PARTS)}")
    return options


def main():
    options = read_options()
    for folder in (options.results, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    options.python, options.torch_environment = trainings.python(), trainings.torch_environment()
    options.log = lambda cell, name: options.work / f"{cell.file_name()}_{name}"
    options.device_name = name_device()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    raise SystemExit(Measurement(options).run())


if __name__ == "__main__":
    main()
