#!/usr/bin/env python3
"""Results, histories and archives of earlier versions are read by this one, and give the figures that they gave.

tests/kept/VERSION holds files that VERSION's own program wrote and, in said/, what it answered about them (make.py). The program
is asked the same: every property and column of the earlier answer is there with the same value. It may say more.

usage: check.py PROGRAM
"""

import csv
import io
import json
import math
import pathlib
import sys

import questions

HERE = pathlib.Path(__file__).resolve().parent
# What a program did to answer: another version's index of a folder of results is made again.
UNLIKE = {"index"}


def close(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(other, (int, float)) and math.isclose(one, other, rel_tol=1e-9)
    return one == other


def differences(earlier, now, place=""):
    """What `now` lacks of `earlier`, or says differently: (place, value then, value now)."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key, value in earlier.items():
            if key in UNLIKE:
                continue
            if key not in now:
                yield f"{place}.{key}", value, "nothing"
            else:
                yield from differences(value, now[key], f"{place}.{key}")
    elif isinstance(earlier, list) and isinstance(now, list) and len(earlier) == len(now):
        for index, value in enumerate(earlier):
            yield from differences(value, now[index], f"{place}[{index}]")
    elif not close(earlier, now):
        yield place, earlier, now


def read(name, text):
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".csv"):
        return list(csv.DictReader(io.StringIO(text)))
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in text.splitlines()}


def check(program, folder):
    statuses = json.loads((folder / "said/exit_statuses.json").read_text(encoding="utf-8"))
    wrong = []
    for name, (status, stdout, stderr) in questions.answers(program, folder).items():
        if status != statuses[name]:
            wrong.append(f"{folder.name} {name}: exit status {status}, it was {statuses[name]}\n{stderr[-2000:]}")
            continue
        earlier = (folder / "said" / name).read_text(encoding="utf-8")
        wrong += [f"{folder.name} {name}{place}: {then!r} then, {now!r} now"
                  for place, then, now in differences(read(name, earlier), read(name, stdout))]
    return wrong


def main():
    folders = sorted(path.parent for path in HERE.glob("*/said"))
    if not folders:
        raise SystemExit("error: no version's files are kept")
    wrong = [line for folder in folders for line in check(pathlib.Path(sys.argv[1]).resolve(), folder)]
    for line in wrong:
        print(line)
    print(f"{len(folders)} versions, {len(questions.QUESTIONS)} questions each: {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
