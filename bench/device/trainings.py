"""Our trainer and its peers on one card: which settings each takes, rounds in turn, medians."""

import dataclasses
import json
import os
import pathlib
import re
import statistics
import sys

import programs
import shapes

OPTIMIZER = {"learning_rate": 3e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
             "clip_grad_norm": 1.0, "schedule": "constant"}
WARMUP = 3  # ours: allocation, choice of kernels, recording; PyTorch's: likewise
RECOMPUTE = ("none", "selective", "full")  # the first that fits is the fastest
CONTENDERS = ("native", "native-fp8", "eager", "compile", "hf")  # PyTorch has no 8-bit training of its own


@dataclasses.dataclass
class Cell:
    """What is compared: a model, tokens x sequences of a step, and the number formats of both sides."""
    model: str
    length: int
    sequences: int
    formats: str  # "bf16": weights and moments, no masters; "masters": masters and moments in float32

    def name(self):
        return f"{self.model}:{self.length}x{self.sequences}:{self.formats}"

    def file_name(self):
        return self.name().replace(":", "_")

    def tokens(self):
        return self.length * self.sequences


FORMATS = {"masters": {}, "bf16": {"optimizer": {"moments": "bf16", "master_weights": False}}}
# Most wanted first: time may end. 18 bytes a parameter with masters are too many for 7 and 8 billion on 141 GB.
CELLS = [Cell("llama3.1_8b", 8192, 1, "bf16"), Cell("gpt2", 1024, 32, "masters"), Cell("llama3.1_8b", 2048, 4, "bf16"),
         Cell("llama3.2_1b", 2048, 8, "masters"), Cell("qwen2.5_7b", 8192, 1, "bf16"),
         Cell("llama3.2_3b", 2048, 4, "masters"), Cell("gpt2_xl", 1024, 16, "masters")]


def parse_cell(text):
    """MODEL:LENGTHxSEQUENCES[:FORMATS]"""
    model, batch, *formats = text.split(":")
    length, sequences = batch.split("x")
    known = [cell.formats for cell in CELLS if cell.model == model]
    return Cell(model, int(length), int(sequences), formats[0] if formats else (known or ["masters"])[0])


def merge(base, extra):
    return {**base, **{key: merge(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict)
                       else value for key, value in extra.items()}}


def make_spec(cell, options):
    model = options.shapes.get(cell.model) or shapes.read_model(cell.model)
    spec = {"model": model, "optimizer": OPTIMIZER, "sequence_length": cell.length,
            "micro_batch_size": cell.sequences, "global_batch_size": cell.sequences, "seed": 42, "precision": "bf16",
            "deterministic": False,  # as PyTorch is: sums may change their order from one run to the next
            "steps": WARMUP + options.steps}
    return merge(spec, FORMATS[cell.formats])


def out_of_memory(text):
    return re.search(r"of memory and .* left|does not fit into memory|out of memory", text or "") is not None


class Native:
    """`tprimat train`: recomputation as little as fits."""

    def __init__(self, options, cell, name="native"):
        self.options, self.cell, self.name = options, cell, name
        self.setting = None
        self.precision = {"precision": "fp8"} if name == "native-fp8" else {}

    def run_one(self, setting, seconds, folder, flags=()):
        program = self.options.programs.find("tprimat")
        if program is None:
            return {"failed": f"there is no tprimat in {self.options.programs.folder}"}
        spec, steps = folder / "spec.json", folder / "steps.jsonl"
        spec.write_text(json.dumps({**make_spec(self.cell, self.options), **setting}))
        steps.unlink(missing_ok=True)
        done = programs.run([program, "train", "--spec", spec, "--device", self.options.device, *flags],
                            self.options.log(self.cell, self.name), seconds,
                            {**self.options.programs.environment, "TPRIMAT_STEPS": str(steps)})
        if done.failure():
            return {"failed": done.failure(), "begin": done.begin, "wall_seconds": done.seconds}
        records = [json.loads(line) for line in steps.read_text().splitlines()]
        allocated = re.search(r"allocated ([\d.]+) GB", done.output)
        attention = re.search(r"^kernels \| attention (.+) \|$", done.output, re.MULTILINE)
        return {"seconds": [record["time_seconds"] for record in records[WARMUP:]], "loss": records[-1].get("loss"),
                "losses": [record.get("loss") for record in records], "begin": done.begin, "setting": setting,
                "attention": attention.group(1) if attention else None,  # what ran, not what was asked for
                "allocated_bytes": float(allocated.group(1)) * 1e9 if allocated else None,
                "wall_seconds": done.seconds, "output": done.output}

    def run(self, seconds, folder):
        wanted = [self.setting] if self.setting else [{"recompute": kind, **self.precision} for kind in RECOMPUTE]
        for setting in wanted:
            outcome = self.run_one(setting, seconds, folder)
            if not out_of_memory(outcome.get("failed")):
                break
        if "failed" not in outcome:
            self.setting = outcome["setting"]
        return outcome

    def choose(self, seconds, folder):
        """Nothing to choose: memory is counted before the first step, so the first round finds what fits."""


class Peer:
    """peers.py: all settings once in one process, then the fastest alone in each round."""

    def __init__(self, options, cell, name):
        self.options, self.cell, self.name = options, cell, name
        self.setting, self.tried = None, []

    def settings(self):
        """Those without recomputation first; that comes in only where nothing else fits."""
        kernels = ("cudnn", "flash") if self.options.device != "cpu" else ("math",)
        if self.name == "hf":
            plain = [{"attention": kernel, "compile": kind} for kernel in kernels for kind in ("no", "whole")]
            return plain, [{**setting, "checkpoint": 1} for setting in plain]
        losses = ("whole", "chunked")
        kinds = ("no",) if self.name == "eager" else ("blocks", "whole")
        plain = [{"attention": kernel, "loss": loss, "compile": kind}
                 for kind in kinds for loss in losses for kernel in kernels]
        tight = [{**setting, "checkpoint": every} for every in (2, 1) for setting in plain
                 if setting["loss"] == "chunked"]
        return plain, tight

    def run_all(self, settings, seconds, folder, steps):
        case = folder / "case.json"
        case.write_text(json.dumps({"spec": make_spec(self.cell, self.options), "formats": self.cell.formats,
                                    "peer": "hf" if self.name == "hf" else "torch", "settings": settings,
                                    "steps": steps, "warmup": WARMUP}))
        device = "cpu" if self.options.device == "cpu" else "cuda"
        done = programs.run([self.options.python, programs.HERE / "peers.py", case, "--device", device],
                            self.options.log(self.cell, self.name), seconds, self.options.torch_environment)
        found = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
        for outcome in found:
            outcome |= {"begin": done.begin, "wall_seconds": done.seconds}
        measured = [outcome for outcome in found if "setting" in outcome]
        return measured, done.failure(), next((each["versions"] for each in found if "versions" in each), None)

    def choose(self, seconds, folder):
        if self.setting:
            return
        for settings in self.settings():
            measured, failure, _ = self.run_all(settings, seconds, folder, 3)
            self.tried += [{key: each.get(key) for key in ("setting", "seconds", "failed", "allocated_bytes")}
                           for each in measured]
            if failure:
                self.tried.append({"failed": failure})
            good = [each for each in measured if "failed" not in each]
            if good:
                self.setting = min(good, key=lambda each: statistics.median(each["seconds"]))["setting"]
                return

    def run(self, seconds, folder):
        if not self.setting:
            why = "; ".join(each["failed"] for each in self.tried if each.get("failed"))
            return {"failed": f"no setting worked: {why}"[:400]}
        measured, failure, versions = self.run_all([self.setting], seconds, folder, self.options.steps)
        outcome = measured[0] if measured else {"failed": failure or "it printed nothing"}
        return {**outcome, "versions": versions}


class Comparison:
    """All contenders of one cell."""

    def __init__(self, options, cell, names):
        self.options, self.cell = options, cell
        self.contenders = [Native(options, cell, name) if name.startswith("native") else Peer(options, cell, name)
                           for name in names]
        self.runs, self.left_out = {}, {}

    def adopt(self, choices):
        for each in self.contenders:
            each.setting = choices.get(self.cell.name(), {}).get(each.name)

    def choices(self):
        return {each.name: each.setting for each in self.contenders if each.setting}

    def run_one(self, contender, budget, folder):
        outcome = contender.run(budget.left(), folder)
        outcome.pop("output", None)
        if "failed" in outcome:
            self.left_out[contender.name] = outcome["failed"]
            print(f"  {self.cell.name():32}{contender.name:11}{outcome['failed']}", flush=True)
            return
        self.runs.setdefault(contender.name, []).append(outcome)
        print(f"  {self.cell.name():32}{contender.name:11}{statistics.median(outcome['seconds']) * 1e3:10.2f} ms  "
              f"{json.dumps(contender.setting)}", flush=True)

    def needed(self):
        """Seconds of one more round, from the last."""
        return sum(runs[-1]["wall_seconds"] for runs in self.runs.values())

    def measure(self, budget, folder, save):
        for each in self.contenders:
            each.choose(budget.left() / 4, folder)  # the rounds need the rest
            save()
        for number in range(self.options.rounds):
            if number > 0 and self.needed() > budget.left():
                print(f"  {self.cell.name():32}no time is left for round {number + 1}", flush=True)
                break
            some = [each for each in self.contenders if each.name not in self.left_out]
            shift = number % max(1, len(some))
            for each in some[shift:] + some[:shift]:
                self.run_one(each, budget, folder)
                save()

    def as_json(self):
        return {"model": self.cell.model, "sequence_length": self.cell.length, "sequences": self.cell.sequences,
                "formats": self.cell.formats, "tokens": self.cell.tokens(), "runs": self.runs,
                "left_out": self.left_out, "choices": self.choices(),
                "tried": {each.name: each.tried for each in self.contenders if isinstance(each, Peer)}}


def read_choices(path):
    return json.loads(pathlib.Path(path).read_text())["choices"] if path else {}


def torch_environment():
    """Compiled kernels stay, so that only the first process waits for them."""
    cache = programs.HERE.parents[1] / "build" / "inductor"
    return {"TORCHINDUCTOR_CACHE_DIR": os.environ.get("TORCHINDUCTOR_CACHE_DIR", str(cache)),
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "TOKENIZERS_PARALLELISM": "false"}


def python():
    return os.environ.get("TPRIMAT_PYTHON", sys.executable)
