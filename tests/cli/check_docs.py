#!/usr/bin/env python3
"""Holds docs/cli.md to what the program says of itself.

Every command and every option that --help prints stands in that command's section, no option stands in its table that
does not exist, and every exit status of src/base/exit_status.h is in the list.

usage: check_docs.py PROGRAM SOURCE_DIR
"""

import pathlib
import re
import subprocess
import sys

SHARED = "Every command"  # the section of the options that all have
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def help_of(program, words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} --help exits with {done.returncode}")
    return done.stdout


def block(text, title):
    """The indented lines under 'title:'."""
    lines = re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return lines.group(1).splitlines() if lines else []


def options_of(text):
    return {option for line in block(text, "Options") for option in OPTION.findall(line[:30])}


def commands_of(text):
    return [line.split()[0] for line in block(text, "Subcommands")]


def sections_of(page):
    """{heading: text under it}"""
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_command(program, command, sections):
    text = help_of(program, [command])
    parts = commands_of(text)
    printed = options_of(text).union(*(options_of(help_of(program, [command, part])) for part in parts))
    section = sections.get(f"tprimat {command}")
    if section is None:
        return [f"no section '## tprimat {command}'"]
    told = set(OPTION.findall(section))
    shared = set(OPTION.findall(sections[SHARED]))
    failures = [f"tprimat {command}: {option} is not explained" for option in sorted(printed - told - shared)]
    rows = [line for line in section.splitlines() if line.startswith("| `--")]  # of its own table of options
    failures += [f"tprimat {command}: there is no {option}" for line in rows
                 for option in OPTION.findall(line.split("|")[1]) if option not in printed]
    return failures + [f"tprimat {command} {part}: is not explained" for part in parts if f"`{part}" not in section]


def check_statuses(source, page):
    header = (source / "src/base/exit_status.h").read_text(encoding="utf-8")
    statuses = re.findall(r"^\s+\w+ = (\d+),", header, re.MULTILINE)
    if len(statuses) < 5:
        return ["exit_status.h could not be read"]
    return [f"exit status {status} is not explained" for status in statuses
            if not re.search(rf"^\| {status} \|", page, re.MULTILINE)]


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    page = (source / "docs/cli.md").read_text(encoding="utf-8")
    commands = commands_of(help_of(program, []))
    if not commands:
        raise SystemExit("tprimat --help lists no commands")
    sections = sections_of(page)
    failures = [failure for command in commands for failure in check_command(program, command, sections)]
    failures += check_statuses(source, page)
    print("\n".join(failures) or f"docs/cli.md explains {len(commands)} commands")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
