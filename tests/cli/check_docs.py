#!/usr/bin/env python3
"""Holds docs/cli.md, docs/formats.md and docs/compare.md to what the program says of itself.

Every command and every option that --help prints stands in that command's section, no option stands in its table that
does not exist, and every exit status of src/core/base/error.h is in the list. Likewise docs/formats.md: its table of
dialects is the list of `extract --list-formats`, and every figure that a dialect reads is explained. The table of audit rules in
docs/compare.md has a row for every rule of src/results/compare, with its severity.

usage: check_docs.py PROGRAM SOURCE_DIR
"""

import json
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
    header = (source / "src/core/base/error.h").read_text(encoding="utf-8")
    statuses = re.findall(r"^\s+\w+ = (\d+),", header, re.MULTILINE)
    if len(statuses) < 5:
        return ["the list of exit statuses could not be read"]
    return [f"exit status {status} is not explained" for status in statuses
            if not re.search(rf"^\| {status} \|", page, re.MULTILINE)]


def first_names(section):
    """What stands in backticks in the first column of its table."""
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def check_formats(program, source):
    done = subprocess.run([program, "extract", "--list-formats", "--json"], capture_output=True, text=True, timeout=30)
    dialects = json.loads(done.stdout)
    page = (source / "docs/formats.md").read_text(encoding="utf-8")
    sections = sections_of(page)
    told, known = first_names(sections["Dialects"]), [dialect["id"] for dialect in dialects]
    failures = [f"formats.md: the dialect {name} is not in the table" for name in known if name not in told]
    failures += [f"formats.md: there is no dialect {name}" for name in told if name not in known]
    explained = first_names(sections["Figures"])
    fields = {field for dialect in dialects for field in dialect["fields"]}
    failures += [f"formats.md: the figure {field} is not explained" for field in sorted(fields)
                 if field not in explained]
    texts = "".join(text for title, text in sections.items() if title != "Dialects")
    failures += [f"formats.md: nothing is said of {name}" for name in known if f"`{name}`" not in texts]
    return failures


def check_rules(source):
    rules = {}
    for name, file in (("Run", "run_rules.cpp"), ("Pair", "pair_rules.cpp")):
        text = (source / "src/results/compare" / file).read_text(encoding="utf-8")
        rules.update(re.findall(rf'{name}Rule\{{\s*"(\w+)", (\w+),', text))
    if len(rules) < 80:
        return ["the audit rules could not be read"]
    section = sections_of((source / "docs/compare.md").read_text(encoding="utf-8"))["Audit rules"]
    told = {cells[1].strip(" `"): cells[3].strip() for cells in
            (row.split("|") for row in section.splitlines() if row.startswith("| `"))}
    of_no_list = {"clock", "runs_differ"}  # made in verdict.cpp and audit.cpp
    failures = [f"compare.md: the rule {code} ({severity}) has no such row" for code, severity in rules.items()
                if told.get(code) != severity]
    return failures + [f"compare.md: there is no rule {code}" for code in told if code not in rules and code not in of_no_list]


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    page = (source / "docs/cli.md").read_text(encoding="utf-8")
    commands = commands_of(help_of(program, []))
    if not commands:
        raise SystemExit("tprimat --help lists no commands")
    sections = sections_of(page)
    failures = [failure for command in commands for failure in check_command(program, command, sections)]
    failures += check_statuses(source, page) + check_formats(program, source) + check_rules(source)
    print("\n".join(failures) or f"docs/cli.md explains {len(commands)} commands, docs/formats.md every dialect, "
          "docs/compare.md every audit rule")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
