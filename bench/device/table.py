#!/usr/bin/env python3
"""The tables of measurements: table.py FOLDER

Figures that were not measured are blank, and so are floors and MFU where the catalogue does not know the card. Ratios
are medians of the rounds' ratios; ~ marks those of runs that did not take turns.
"""

import pathlib
import statistics
import sys

import parts
import roofline
import shapes

RATES = {"FLOP/s": "TFLOP/s", "bytes/s": "TB/s"}


def median(values):
    return statistics.median(values) if values else None


def shown(value, form):
    return "" if value is None else format(value, form)


def over(value, divisor):
    return value / divisor if value is not None and divisor else None


def step_of(runs):
    """Median of the rounds' median steps, in seconds."""
    return median([statistics.median(run["seconds"]) for run in runs])


def pairs_of(theirs, ours):
    """Their runs with ours of the same turn; where there is none, in the order of the rounds."""
    same = [(a, b) for a in theirs for b in ours if a.get("turn") and a.get("turn") == b.get("turn")]
    return same or list(zip(theirs, ours)), bool(same)


def ratio(theirs, ours):
    pairs, _ = pairs_of(theirs, ours)
    found = [over(statistics.median(a["seconds"]), statistics.median(b["seconds"])) for a, b in pairs]
    return median([each for each in found if each is not None])


def sizes_of(cell, known):
    model = known.get(cell["model"]) or shapes.read_model(cell["model"])
    return roofline.Sizes(model, cell["sequence_length"], cell["sequences"])


def other_attention(run):
    """What computed attention in our step, if not cuDNN; None where it was cuDNN."""
    ran = run.get("attention") or "unknown"
    return None if ran in ("cudnn", "cudnn-unordered") else ran


def rows_of(cell, known, machine):
    """One row per contender, the fastest first."""
    s, native = sizes_of(cell, known), cell["runs"].get("native", [])
    bf16_floor = machine and sum(each.floor(machine) for each in roofline.operations(s, cell["formats"]))
    for name, runs in sorted(cell["runs"].items(), key=lambda item: step_of(item[1])):
        step = step_of(runs)
        rate = over(roofline.model_flops(s), step)
        peak, floor = (None, None) if name == "native-fp8" else (machine and machine["flops"], bf16_floor)
        clocks = [run.get("card", {}) for run in runs]
        yield {"model": cell["model"], "batch": f"{cell['sequence_length']}x{cell['sequences']}",
               "formats": cell["formats"], "contender": name, "rounds": len(runs), "step_ms": step * 1e3,
               "tokens_per_second": over(cell["tokens"], step), "tflops": over(rate, 1e12), "mfu": over(rate, peak),
               "time_over_floor": over(step, floor), "time_over_native": ratio(runs, native) if native else None,
               "took_turns": pairs_of(runs, native)[1],
               "allocated_gb": median([run["allocated_bytes"] / 1e9 for run in runs if run.get("allocated_bytes")]),
               "sm_mhz": median([each["sm_mhz"] for each in clocks if "sm_mhz" in each]),
               "watts": median([each["watts"] for each in clocks if "watts" in each]),
               "setting": setting_of(runs[-1]),
               "other_attention": name.startswith("native") and next(filter(None, map(other_attention, runs)), None)}


def setting_of(run):
    """As asked for, and which attention ran where the program says so."""
    ran = {"attention": run["attention"]} if run.get("attention") else {}
    return {**(run.get("setting") or {}), **ran} or None


def setting_text(setting):
    return " ".join(str(value) if key != "checkpoint" else f"again/{value}" for key, value in (setting or {}).items()
                    if value not in (0, "no"))


def training_lines(cells, known, machine, on_gpu=True):
    head = (f"{'model':13}{'batch':9}{'states':9}{'contender':12}{'ms/step':>9}{'tokens/s':>10}{'TFLOP/s':>9}{'MFU':>7}"
            f"{'/floor':>8}{'/native':>9}{'GB':>7}{'MHz':>6}{'W':>6}  setting")
    lines = [head]
    for cell in cells:
        for row in rows_of(cell, known, machine):
            flag = "  attention not on cuDNN" if on_gpu and row["other_attention"] else ""
            lines.append(f"{row['model']:13}{row['batch']:9}{row['formats']:9}{row['contender']:12}"
                         f"{row['step_ms']:9.2f}{shown(row['tokens_per_second'], '.0f'):>10}"
                         f"{shown(row['tflops'], '.1f'):>9}"
                         f"{shown(row['mfu'], '.1%'):>7}{shown(row['time_over_floor'], '.2f'):>8}"
                         f"{('' if row['took_turns'] else '~') + shown(row['time_over_native'], '.2f'):>9}"
                         f"{shown(row['allocated_gb'], '.1f'):>7}{shown(row['sm_mhz'], '.0f'):>6}"
                         f"{shown(row['watts'], '.0f'):>6}  {setting_text(row['setting'])}{flag}")
        for name, why in cell.get("left_out", {}).items():
            lines.append(f"left out: {cell['model']} {cell['sequence_length']}x{cell['sequences']} {name}: {why[:200]}")
        lines += claim_lines(cell)
    return lines


def claim_lines(cell):
    """Native beside the fastest PyTorch, with how many of its settings were tried and which were not."""
    tried, left = cell.get("tried", {}), cell.get("untried", {})
    theirs = {name: runs for name, runs in cell["runs"].items() if name in tried}
    if not theirs or not cell["runs"].get("native"):
        return []
    counts = ", ".join(f"{name} {len(tried.get(name, ()))} of {len(tried.get(name, ())) + len(left.get(name, ()))}"
                       for name in sorted({*tried, *left}))
    lines = [f"{cell['model']} {cell['sequence_length']}x{cell['sequences']}: {claim(cell, theirs, any(left.values()))}; "
             f"settings tried: {counts}"]
    return lines + [f"  untried: {name} {setting_text(setting)}" for name in sorted(left) for setting in left[name]]


def claim(cell, theirs, has_untried):
    """None that a setting without rounds, faster when it was tried, would refute."""
    tries = [(statistics.median(each["seconds"]), name, each["setting"]) for name, entries in cell["tried"].items()
             for each in entries if each.get("seconds")]
    best = min(theirs, key=lambda name: step_of(theirs[name]))
    seconds, name, setting = min(tries, key=lambda each: each[0], default=(None, best, None))
    if name not in theirs:
        return (f"no ratio yet: PyTorch's {name} took {seconds * 1e3:.2f} ms when it was tried with "
                f"{setting_text(setting)}, and its rounds are not measured")
    rank = "the fastest of those tried" if has_untried else "the best"
    times = shown(ratio(theirs[best], cell["runs"]["native"]), ".2f") or "?"
    return f"PyTorch's step, {rank} ({best}), takes {times} times native's"


def operation_lines(found, known, machine):
    """Floor, ours (train --profile) and PyTorch's best, in ms of a step."""
    ours = {line["operation"]: line["ms"] for line in found.get("profile", [])}
    theirs = {}
    for line in found.get("ops", []):
        forms = {form: value for form, value in line["seconds"].items() if isinstance(value, float)}
        if forms:
            form = min(forms, key=forms.get)
            theirs[line["operation"]] = (forms[form] * 1e3, form)
    lines = [f"{'operation':34}{'floor':>9}{'native':>9}{'PyTorch':>9}  form of PyTorch; ms of a step"]
    for each in roofline.operations(sizes_of(found, known), found.get("formats", "bf16")):
        their = theirs.get(each.name)
        floor = machine and each.floor(machine) * 1e3
        lines.append(f"{each.name:34}{shown(floor, '.2f'):>9}{shown(ours.get(each.name), '.2f'):>9}"
                     f"{shown(their and their[0], '.2f'):>9}  {their[1] if their else ''}")
    planned = {each.name for each in roofline.operations(sizes_of(found, known))}
    lines += [f"{name:34}{'':9}{value:9.2f}" for name, value in ours.items() if name not in planned]
    for line in found.get("ops", []):
        for unit, value in line["seconds"].items():
            if unit in RATES:
                lines.append(f"{line['operation']}: {value / 1e12:.2f} {RATES[unit]}")
    return lines


def test_lines(tests):
    return [f"{each['name']:58}{each['outcome']:10}{each['seconds']:7.1f} s  {each.get('detail', '')}" for each in tests]


def doctor_lines(doctor):
    """What is not in order, and which libraries of the GPU load."""
    return [f"{each['severity']:9}{each['area']}: {each['what']}" for each in doctor["findings"]
            if each["severity"] not in ("ok", "note") or "librar" in each["area"]]


def render_part(part):
    machine = shapes.find_machine(parts.card_of(part["device"]))
    on_gpu = part["device"] != "cpu"
    known = part.get("shapes", {})
    lines = [f"{part['call']}: {part['device']}, {part['date']}, revision {part['revision']}"]
    for title, found, make in (("doctor", part.get("doctor"), doctor_lines), ("tests", part["tests"], test_lines),
                               ("trainings", part["trainings"], lambda f: training_lines(f, known, machine, on_gpu))):
        if found:
            lines += ["", f"{title}:", *make(found)]
    for found in part["operations"]:
        lines += ["", f"operations of {found['model']} {found['sequence_length']}x{found['sequences']}:",
                  *operation_lines(found, known, machine)]
    lines += [f"failed: {what}: {why}" for what, why in part["failed"].items()]
    return "\n".join(lines + [f"open: {question}" for question in part.get("open", [])]) + "\n"


def render(found, notes=()):
    """A part that cannot be shown leaves the others alone: the table is written after every measurement."""
    texts = []
    for part in found:
        try:
            texts.append(render_part(part))
        except Exception as failure:
            texts.append(f"{part['call']}: cannot be shown: {type(failure).__name__}: {failure}\n")
    return "\n".join(texts + [f"{note}\n" for note in notes])


if __name__ == "__main__":
    print(render(*parts.present([pathlib.Path(sys.argv[1])])), end="")
