#!/usr/bin/env python3
"""Writes python/tprimat/_generated/options.py: the options of the commands that Python calls, from --help.

    scripts/generate_options.py PROGRAM            writes it
    scripts/generate_options.py PROGRAM --check    fails where it is out of date
"""

import pathlib
import re
import subprocess
import sys
import textwrap

FILE = pathlib.Path(__file__).resolve().parent.parent / "python/tprimat/_generated/options.py"
WIDTH = 120
# For people, or decided by the call itself.
ALWAYS_LEFT_OUT = {"help", "quiet", "verbose", "no-color", "json", "config", "version"}
# The commands, and their options that give another output than the call returns, or that the call states itself.
COMMANDS = {
    "run": {"dry-run"},
    "extract": {"list-formats", "follow"},
    "compare": {"history", "metric", "last", "markdown", "csv"},
    "why": {"all"},
    "plan": {"yaml", "validate", "calibrate", "fit", "output", "rows", "folds", "folds-by", "intervals"},
    "estimate": {"flops", "memory", "validate"},
    "probe": {"collectives"},
    "claim": {"table", "unseen"},
    "published list": {"csv"},
}
WHOLE = {"INT", "UINT"}
REAL = {"N", "FLOAT", "PERCENT", "HOURS", "DAYS", "USD", "MINUTES", "FACTOR", "GB", "GB/S", "GBIT/S", "SECONDS"}
LINE = re.compile(r"  (?:-\w,)?--([a-z][a-z-]*)(?: (\S+))?(?: +(.*))?$")
HEAD = '''"""The options of the commands, by their names in Python."""

# Written by scripts/generate_options.py; do not edit.

from __future__ import annotations

from tprimat.words import Amount, CallOptions, Place, Values, Whole
'''


def read_options(program, command):
    """name, kind of value, sentence; in the order of --help."""
    text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.split("\nOptions:\n")[1].split("\n\n")[0].splitlines():
        if match := LINE.fullmatch(line):
            found.append([match[1], match[2] or "", match[3] or ""])
        elif found and line.startswith(" " * 20):
            found[-1][2] = f"{found[-1][2]} {line.strip()}".strip()
        else:
            sys.exit(f"error: tprimat {command} --help has a line that is not an option's: {line}")
    return [each for each in found if each[0] not in ALWAYS_LEFT_OUT | COMMANDS[command]]


def choose_type(kind):
    if not kind:
        return "bool"
    if kind.startswith("["):  # its value may be left out
        return "bool | Place"
    if kind in WHOLE:
        return "Whole"
    if kind in REAL:
        return "Amount"
    return "Place" if kind in ("FILE", "DIR", "PREFIX") else "Values"


def name_class(command):
    return "".join(word.capitalize() for word in command.split()) + "Options"


def write_class(command, options):
    lines = ["", "", f"class {name_class(command)}(CallOptions, total=False):",
             f'    """Options of `tprimat {command}`."""', ""]
    for name, kind, doc in options:
        lines += [f"    # {each}" for each in textwrap.wrap(doc, WIDTH - 6, break_long_words=False)]
        lines.append(f"    {name.replace('-', '_')}: {choose_type(kind)}")
    return lines


def choose_separator(kind):
    if not kind:
        return "None"
    return '"?"' if kind.startswith("[") else '","' if "LIST" in kind or "," in kind else '""'


def write_table(tables):
    lines = ["", "", "# By command: what separates the words of a list. Empty: each repeats the option; None: it takes",
             "# no value; ?: its value may be left out.", "SEPARATORS: dict[str, dict[str, str | None]] = {"]
    for command, options in tables.items():
        lines.append(f'    "{command}": {{')
        for name, kind, _ in options:
            lines.append(f'        "{name.replace("-", "_")}": {choose_separator(kind)},')
        lines.append("    },")
    return [*lines, "}"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tables = {command: read_options(sys.argv[1], command) for command in COMMANDS}
    lines = [line for command, options in tables.items() for line in write_class(command, options)]
    text = HEAD + "\n".join(lines + write_table(tables)) + "\n"
    if "--check" in sys.argv:
        if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
            sys.exit("error: python/tprimat/_generated/options.py is out of date\n"
                     "  run scripts/generate_options.py build/release/tprimat")
        return
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {sum(map(len, tables.values()))} options of {len(tables)} commands")


if __name__ == "__main__":
    main()
