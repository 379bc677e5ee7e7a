"""The calls that time trainings: rounds in turn, settings of the peers, operations, and losses beside the processor's."""

import argparse
import datetime
import json
import math
import re

import contenders
import programs
import table
import trainings

# Steps of a small model, here and there: in float32 the losses differ by rounding alone, in bf16 by its 8 bits.
PARITY = {"fp32": 1e-4, "bf16": 2e-2}
SMALL = {"name": "small", "full_name": "small", "num_layers": 4, "hidden_size": 256, "ffn_hidden_size": 512,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 4096,
         "max_position_embeddings": 512, "tied_embeddings": False, "qkv_bias": False, "linear_bias": False,
         "norm": "rms", "mlp": "swiglu", "position": "rope", "rope_theta": 10000.0, "norm_eps": 1e-5}
OPS_NEEDED = 60  # seconds


class Comparison:
    """All contenders of one cell, with what earlier calls measured."""

    def __init__(self, call, cell, names):
        self.call, self.cell = call, cell
        self.contenders = [contenders.make(call.options, cell, name) for name in names]
        saved = next((each for each in call.part["trainings"] if trainings.name_of(each) == cell.name()), {})
        stored = call.options.choices.get(cell.name(), {})
        for each in self.contenders:
            each.take_up(saved, stored.get(each.name))

    def save(self):
        others = [each for each in self.call.part["trainings"] if trainings.name_of(each) != self.cell.name()]
        self.call.part["trainings"] = [*others, self.as_json()]
        self.call.save()

    def as_json(self):
        def by_name(get):
            return {each.name: get(each) for each in self.contenders if get(each)}
        return {"model": self.cell.model, "sequence_length": self.cell.length, "sequences": self.cell.sequences,
                "formats": self.cell.formats, "tokens": self.cell.tokens(), "runs": by_name(lambda each: each.rounds()),
                "left_out": by_name(lambda each: each.failed), "choices": by_name(lambda each: each.setting),
                "tried": by_name(lambda each: each.tried), "untried": by_name(lambda each: each.untried())}

    def run_one(self, contender, turn):
        outcome = contender.run()
        outcome.pop("output", None)
        if "failed" in outcome:
            contender.failed = outcome["failed"]
        else:
            contender.runs.append({**outcome, "turn": turn})
        self.call.note(f"  {self.cell.name():32}{contender.name:11}{contenders.show(outcome)}")
        self.save()

    def run_round(self, number, turn):
        """Whoever lacks it, beside our trainer, each time another one first."""
        some = [each for each in self.contenders if not each.failed and len(each.rounds()) <= number]
        native = self.contenders[0]
        if some and native not in some and not native.failed:
            some = [native, *some]
        shift = number % max(1, len(some))
        for each in some[shift:] + some[:shift]:
            self.run_one(each, turn)

    def open_questions(self, rounds):
        for each in self.contenders:
            done = len(each.rounds())
            exhausted = each.tried and not each.setting  # nothing of it fits: that is an answer
            if done < rounds and not exhausted:
                yield (f"{self.cell.name()} {each.name}: {done} of {rounds} rounds"
                       + (f": {each.failed}" if each.failed else ""))
            others = filter(None, map(table.other_attention, each.rounds()))
            if each.name.startswith("native") and self.call.options.device != "cpu":
                yield from (f"{self.cell.name()} {each.name}: attention did not run on cuDNN: {ran}"
                            for ran in set(others))


def utc_now(precision="seconds"):
    return datetime.datetime.now(datetime.timezone.utc).isoformat(" ", precision)


def compare(call, names):
    return [Comparison(call, cell, names) for cell in call.options.cells]


def run_rounds(comparisons, begin, end):
    """Runs of the same turn are of the same minutes, and stand beside each other."""
    for number in range(begin, end):
        for each in comparisons:
            each.run_round(number, f"{utc_now('milliseconds')} round {number + 1}")


def open_questions(call, comparisons):
    return [question for each in comparisons for question in each.open_questions(call.options.rounds)]


def step(call):
    """A first figure of every cell, then where the time goes, then the other rounds."""
    comparisons = compare(call, ["native"])
    run_rounds(comparisons, 0, 1)
    found = [profile(call, each) for each in comparisons]
    run_rounds(comparisons, 1, call.options.rounds)
    if not found[0]["ops"] and (call.runner.budget.left() >= OPS_NEEDED or call.options.dry_run):
        time_peer_ops(call, comparisons[0].cell, found[0])
    unknown = [f"{trainings.name_of(each)}: its operations: {each.get('failed') or 'not timed'}"
               for each in found if not each["profile"]]
    return [*open_questions(call, comparisons), *unknown]


def read_profile(text):
    """The lines of `tprimat train --profile`: name, calls, ms of a step."""
    lines = re.findall(r"^  (\S.*?) +(\d+) +(\d+\.\d+) +\d+\.\d+%", text, re.MULTILINE)
    return [{"operation": name, "calls": int(calls), "ms": float(ms)} for name, calls, ms in lines]


def profile(call, comparison):
    """The operations of a step, as our trainer times them."""
    cell, operations = comparison.cell, call.part["operations"]
    found = next((each for each in operations if trainings.name_of(each) == cell.name()), None)
    if found is None:
        found = {"model": cell.model, "sequence_length": cell.length, "sequences": cell.sequences,
                 "formats": cell.formats, "profile": [], "ops": []}
        operations.append(found)
    if not found["profile"]:
        outcome = comparison.contenders[0].run(["--profile"], "_profile")
        found |= {"profile": read_profile(outcome.get("output", "")), "attention": outcome.get("attention"),
                  "failed": outcome.get("failed")}
        call.note(f"  {cell.name():32}{'profile':11}{found['failed'] or str(len(found['profile'])) + ' operations'}")
        call.save()
    return found


def time_peer_ops(call, cell, found):
    """PyTorch's forms of the same operations."""
    options = call.options
    shape = ["--shape", json.dumps(options.shapes[cell.model])] if cell.model in options.shapes else []
    done = call.runner.run([options.python, programs.HERE / "ops.py", "--model", cell.model, "--batch",
                            f"{cell.length}x{cell.sequences}", "--device", "cpu" if options.device == "cpu" else "cuda",
                            *shape], f"{cell.file_name()}_ops", OPS_NEEDED, options.torch_environment)
    lines = [contenders.read_object(line) for line in done.output.splitlines()]
    found["ops"] = [line for line in lines if "operation" in line]
    troubles = [f"{line['group']}: {line['failed']}" for line in lines if "failed" in line]
    call.part["failed"].pop("ops of PyTorch", None)
    if done.failure() or troubles:
        call.part["failed"]["ops of PyTorch"] = "; ".join(filter(None, [done.failure(), *troubles]))
    call.save()


def peers(call):
    """Rounds in the settings that are known best; the time that is left finds better ones, which then get rounds."""
    comparisons = compare(call, ["native", "compile", "eager", "hf"])
    run_rounds(comparisons, 0, call.options.rounds)
    for number in range(len(comparisons[0].contenders)):
        for each in comparisons:
            each.contenders[number].try_settings(each.save)
    run_rounds(comparisons, 0, call.options.rounds)
    return open_questions(call, comparisons)


def fp8(call):
    comparisons = compare(call, ["native", "native-fp8"])
    run_rounds(comparisons, 0, call.options.rounds)
    return open_questions(call, comparisons)


def losses(call, precision, device):
    options = argparse.Namespace(**{**vars(call.options), "device": device, "shapes": {"small": SMALL}})
    native = contenders.make(options, trainings.Cell("small", 256, 4, "masters"), "native")
    return native.run_one({"precision": precision}, part=f"_{precision}_{device}", needed=5)


def judge_losses(here, there, limit):
    """Outcome and a sentence: the steps of the processor beside those of the device."""
    failures = [each["failed"] for each in (here, there) if "failed" in each]
    if failures:
        return "failed", failures[0]
    counts = [len(each["losses"]) for each in (here, there)]
    if counts[0] != counts[1]:
        return "failed", f"the CPU recorded {counts[0]} losses, the device {counts[1]}"
    for name, each in (("CPU", here), ("device", there)):
        wrong = [loss for loss in each["losses"] if not isinstance(loss, (int, float)) or not math.isfinite(loss)]
        if wrong:
            return "failed", f"a loss of the {name} is not finite: {json.dumps(wrong[0])}"
    worst = max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(there["losses"], here["losses"]))
    return "passed" if worst <= limit else "failed", f"largest relative difference {worst:.1e}, allowed {limit:.0e}"


def parity(call):
    names = {f"losses match the CPU's, {precision}": precision for precision in PARITY}
    for name, precision in names.items():
        if call.outcome_of(name) != "passed":
            here, there = (losses(call, precision, device) for device in ("cpu", call.options.device))
            outcome, detail = judge_losses(here, there, PARITY[precision])
            call.note_test(name, outcome, here["wall_seconds"] + there["wall_seconds"], detail)
    return [question for question in map(call.sentence_of, names) if question]
