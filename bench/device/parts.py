"""The part of the results that one call makes: resumed where an earlier call ended, written whole after every
measurement."""

import itertools
import json

CALLS = {"attention": "a", "step": "b", "peers": "c", "parity": "d", "fp8": "e", "memcheck": "f"}
NUMBER = (int, float)
CELL = {"model": str, "sequence_length": int, "sequences": int, "formats": str}
RUN = {"seconds": [NUMBER], "begin": NUMBER, "wall_seconds": NUMBER, "setting": dict}
PART = {"call": str, "device": str, "date": str, "revision": str, "calls": [dict], "failed": {str: str},
        "shapes": {str: dict}, "tests": [{"name": str, "outcome": str, "seconds": NUMBER, "detail": str}],
        "trainings": [{**CELL, "tokens": int, "runs": {str: [RUN]}, "left_out": {str: str}, "choices": {str: dict},
                       "tried": {str: [{"setting": dict}]}, "untried": {str: [dict]}}],
        "operations": [{**CELL, "profile": [{"operation": str, "ms": NUMBER}],
                        "ops": [{"operation": str, "seconds": dict}]}]}
DOCTOR = {"findings": [{"severity": str, "area": str, "what": str}]}


def fits(value, shape):
    """[S]: a list of S; {str: S}: any names; {"name": S, ...}: at least these names; else a type."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(fits(each, shape[str]) for each in value.values())
    return all(name in value and fits(value[name], inner) for name, inner in shape.items())


def stem(call):
    return f"{CALLS[call]}_{call}"


def path_of(folder, call):
    return folder / f"{stem(call)}.json"


def card_of(device):
    """The card's name without driver and memory; "cpu" for the processor."""
    return device.split(",")[0].strip()


def read(folder, call):
    """None where the folder has no such part, or a malformed one."""
    try:
        found = json.loads(path_of(folder, call).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if fits(found, PART) and found["call"] == call else None


def write(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def free_name(folder, name, end):
    """NAME.END, or NAME_1.END and so on where that exists."""
    names = itertools.chain([f"{name}{end}"], (f"{name}_{number}{end}" for number in itertools.count(1)))
    return next(folder / each for each in names if not (folder / each).exists())


def move_aside(path):
    kept = free_name(path.parent, path.stem, path.suffix)
    path.rename(kept)
    return f"{path} is kept as {kept.name}"


def folders_of(results, card):
    """The results of this card, the newest first: their names begin with the date."""
    return sorted(results.glob(f"*_{card}"), reverse=True)


def why_not(found, path, device, revision):
    """Why a part is not resumed; None where it is."""
    if found is None:
        return f"{path} cannot be read as results; starting over"
    if card_of(found["device"]) != card_of(device):
        return f"{path} was measured on {card_of(found['device'])}, this device is {card_of(device)}; starting over"
    if found["revision"] != revision:
        return (f"{path} was measured with revision {found['revision']}, this program is revision {revision}; "
                "starting over")
    return None


def take_up(folders, call, device, revision):
    """The first part of the same card and program with its path, else None twice; and a sentence on it."""
    notes = []
    for folder in folders:
        found, path = read(folder, call), path_of(folder, call)
        if not path.exists():
            continue
        trouble = why_not(found, path, device, revision)
        if not trouble:
            return found, path, f"resuming from {path}"
        notes.append(trouble)
    return None, None, next(iter(notes), None)


def present(folders, device=None):
    """Every part of this card (None: of any), each from the first folder that has it; and sentences on malformed ones."""
    found, notes = [], []
    for call in CALLS:
        some = [(folder, read(folder, call)) for folder in folders if path_of(folder, call).exists()]
        notes += [f"{path_of(folder, call)} cannot be read as results and is ignored"
                  for folder, part in some if not part]
        found += [part for _, part in some
                  if part and (device is None or card_of(part["device"]) == card_of(device))][:1]
    return found, notes
