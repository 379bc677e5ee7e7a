"""The part of the results that one call makes: taken up where an earlier call ended, written whole after every
measurement."""

import json

CALLS = {"attention": "a", "step": "b", "peers": "c", "parity": "d", "fp8": "e", "memcheck": "f"}


def stem(call):
    return f"{CALLS[call]}_{call}"


def read(folder, call):
    """None where the folder has no such part, or one that cannot be read."""
    try:
        return json.loads((folder / f"{stem(call)}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def folders_of(results, card):
    """The results of this card, the newest first: their names begin with the date."""
    return sorted(results.glob(f"*_{card}"), reverse=True)


def take_up(folders, call, revision):
    """The first part of the same program and a sentence on it; without one, the sentence says why nothing is taken."""
    note = None
    for folder in folders:
        found, path = read(folder, call), folder / f"{stem(call)}.json"
        if found and found.get("revision") == revision:
            return found, f"goes on from {path}"
        if found:
            note = note or (f"{path} is of revision {found.get('revision')}, this program of {revision}: "
                            "all is measured afresh")
    return None, note


def present(folders):
    """Every part, each from the first folder that has it."""
    found = ([read(folder, call) for folder in folders] for call in CALLS)
    return [part for part in (next(filter(None, parts), None) for parts in found) if part]
