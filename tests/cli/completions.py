#!/usr/bin/env python3
"""Holds completions and manual pages to what --help prints, and uses them: bash and fish complete real lines, zsh loads its functions,
groff and mandoc read every page without a warning. What is not installed is named and left out.

usage: completions.py PROGRAM [BUILD_DIR of `cmake --install`]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_docs

# Words before the cursor, the word at it, and what bash must offer there.
BASH_CASES = [
    ("tprimat", "comp", "compare completion"),
    ("tprimat", "--ver", "--version"),
    ("tprimat run", "--plat", "--platform"),
    ("tprimat run --platform", "", "auto nvd amd cpu"),
    ("tprimat run --platform", "n", "nvd"),
    ("tprimat run --platform =", "a", "auto amd"),  # bash cuts --platform=a at the equals sign
    ("tprimat run --platform", "=", "auto nvd amd cpu"),
    ("tprimat run --framework", "nemo,me", "nemo,mega"),
    ("tprimat run --set a = b --launcher", "slu", "slurm"),
    ("tprimat run --config run --adapt", "", "strict nearest"),  # `run` is the value of --config
    ("tprimat config", "sh", "show"),
    ("tprimat config get", "--js", "--json"),  # an option of `config`
    ("tprimat config --json", "sh", "show"),
    ("tprimat export --format", "csv,par", "csv,parquet"),
    ("tprimat extract", "a", "a log.txt a_folder"),
    ("tprimat extract --format", "picotr", "picotron"),
    ("tprimat run --output", "a", "a_folder"),
    ("tprimat compare --html", "a", "a log.txt a_folder"),
    ("tprimat docker", "", "build run shell"),
    ("tprimat docker build", "", "nvd amd cpu"),
    ("tprimat train --dev", "", ""),
    ("tprimat train --device", "n", "nvd"),
    ("tprimat data encode --dtype", "u", "uint8 uint16"),
    ("tprimat completion", "f", "fish"),
    ("tprimat nosuch", "--zz", ""),
    ("tprimat run --", "--pl", ""),
]
FISH_CASES = [
    ("tprimat comp", {"compare", "completion"}),
    ("tprimat run --plat", {"--platform"}),
    ("tprimat run --platform ", {"auto", "nvd", "amd", "cpu"}),
    ("tprimat run --platform=a", {"--platform=auto", "--platform=amd"}),
    ("tprimat run --framework nemo,me", {"nemo,mega"}),
    ("tprimat run --config run --adapt ", {"strict", "nearest"}),
    ("tprimat config get --js", {"--json"}),
    ("tprimat docker build ", {"nvd", "amd", "cpu"}),
    ("tprimat run --output a", {"a_folder/"}),
    ("tprimat extract a", {"a log.txt", "a_folder/"}),
    ("tprimat data encode --dtype u", {"uint8", "uint16"}),
]
BASH_DRIVER = r'''
source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tprimat
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"; exit 0'''


def run(words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **options)


def print_of(program, *words):
    done = run([program, *words])
    if done.returncode != 0 or done.stderr:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def list_commands(program):
    """{"": options of the program, "run": ..., "config get": ...}, as --help prints them."""
    def add(path):
        text = check_docs.help_of(program, path.split())
        commands[path] = {word for line in check_docs.block(text, "Options") for word in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", line[:30])}
        for part in check_docs.commands_of(text):
            add(f"{path} {part}".strip())
    commands = {}
    add("")
    return commands


def complete_in_bash(script, words, folder):
    done = run(["bash", "--norc", "-c", BASH_DRIVER, "bash", script, *words], cwd=folder)
    return done.stdout.splitlines() if not done.stderr else [done.stderr]


def check_bash(script, commands, folder):
    failures = []
    for before, current, wanted in BASH_CASES:
        found = complete_in_bash(script, before.split() + [current], folder)
        if " ".join(sorted(found)) != " ".join(sorted(wanted.split())) and sorted(" ".join(found).split()) != sorted(wanted.split()):
            failures.append(f"bash: {before} {current}| gives {found}, not {wanted}")
    for path, options in commands.items():
        found = complete_in_bash(script, ["tprimat", *path.split(), "-"], folder)
        if not options or not options <= set(found):
            failures.append(f"bash: tprimat {path} -| lacks {sorted(options - set(found))}")
    return failures


def check_zsh(script, commands, folder):
    if not shutil.which("zsh"):
        print("not checked: the completion for zsh, which is not installed: apt-get install zsh")
        return []
    load = 'autoload -Uz compinit && compinit -u -d "$2" && source "$1" && print $_comps[tprimat] && print -l ${(ok)functions[(I)_tprimat*]}'
    done = run(["zsh", "-fc", load, "zsh", script, str(folder / "zcompdump")], env={**os.environ, "HOME": str(folder)})
    names = done.stdout.splitlines()
    wanted = ["_tprimat" + "".join(f"_{word}" for word in path.split()) for path in commands]
    if done.stderr or names[:1] != ["_tprimat"] or not set(wanted) <= set(names):
        return [f"zsh: {done.stderr or sorted(set(wanted) - set(names))}"]
    text = pathlib.Path(script).read_text(encoding="utf-8")
    bodies = dict(re.findall(r"^(_tprimat\w*)\(\) \{\n(.*?)^\}", text, re.M | re.S))
    return [f"zsh: {name} lacks {option}" for name, path in zip(wanted, commands) for option in sorted(commands[path])
            if not re.search(rf"['{{,*]{option}(?![\w-])", bodies[name])]


def check_fish(script, folder):
    if not shutil.which("fish"):
        print("not checked: the completion for fish, which is not installed: apt-get install fish")
        return []
    lines = "\n".join(f"echo '#'; complete -C '{line}'" for line, _ in FISH_CASES)
    done = run(["fish", "--no-config", "-c", f"source {script}\n{lines}"], cwd=folder, env={**os.environ, "HOME": str(folder)})
    answers = [{line.split("\t")[0] for line in block.splitlines()} for block in done.stdout.split("#\n")[1:]]
    failures = [done.stderr] if done.stderr or len(answers) != len(FISH_CASES) else []
    return failures + [f"fish: {line}| gives {sorted(found)}" for (line, wanted), found in zip(FISH_CASES, answers) if found != wanted]


def check_fish_options(script, commands):
    text = pathlib.Path(script).read_text(encoding="utf-8")
    failures = []
    for path, options in commands.items():
        lines = [line for line in text.splitlines() if f"-n '__tprimat_at {path}' " in line]
        failures += [f"fish: tprimat {path} lacks {option}" for option in sorted(options)
                     if not any(f" -{'l' if option.startswith('--') else 's'} {option.lstrip('-')} " in line for line in lines)]
    return failures


def check_pages(pages, commands):
    failures = []
    for path, options in commands.items():
        page = pages / ("tprimat" + (f"-{path.split()[0]}" if path else "") + ".1")
        if not page.exists():
            failures.append(f"no page {page.name}")
            continue
        text = page.read_text(encoding="utf-8").replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        failures += [f"{page.name}: lacks {option} of tprimat {path}" for option in sorted(options)
                     if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)]
        if path.count(" ") and f".SS tprimat {path}" not in text:
            failures.append(f"{page.name}: no section of tprimat {path}")
    tools = [(tool, words) for tool, words in (("groff", ["-man", "-Tutf8", "-ww", "-z"]), ("mandoc", ["-T", "lint", "-W", "warning"]))
             if shutil.which(tool)]
    for page in sorted(pages.iterdir()):
        for tool, words in tools:
            done = run([tool, *words, str(page)])
            if done.returncode != 0 or done.stdout or done.stderr:
                failures.append(f"{tool} {page.name}: {(done.stdout + done.stderr)[:400]}")
    print(f"pages read by {', '.join(tool for tool, _ in tools) or 'neither groff nor mandoc: apt-get install groff mandoc'}")
    return failures


def check_install(build, folder):
    prefix = folder / "prefix"
    done = run(["cmake", "--install", build, "--prefix", str(prefix)])
    if done.returncode != 0:
        return [f"cmake --install: {done.stdout[-300:]}{done.stderr[-300:]}"]
    program = prefix / "bin/tprimat"
    wanted = {"share/bash-completion/completions/tprimat": print_of(program, "completion", "bash"),
              "share/zsh/site-functions/_tprimat": print_of(program, "completion", "zsh"),
              "share/fish/vendor_completions.d/tprimat.fish": print_of(program, "completion", "fish"),
              "share/man/man1/tprimat-train.1": print_of(program, "man", "train")}
    failures = [f"installed {name} is not what the program prints" for name, text in wanted.items()
                if not (prefix / name).exists() or (prefix / name).read_text(encoding="utf-8") != text]
    return failures + ([] if "--spec" in wanted["share/man/man1/tprimat-train.1"].replace("\\-", "-") else ["tprimat-train.1 lacks --spec"])


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    commands = list_commands(program)
    with tempfile.TemporaryDirectory(prefix="tprimat_completions_") as name:
        folder = pathlib.Path(name)
        here = folder / "here"
        (here / "a_folder").mkdir(parents=True)
        (here / "a log.txt").touch()
        (folder / "tprimat").symlink_to(program)
        scripts = {}
        for shell in ("bash", "zsh", "fish"):
            scripts[shell] = str(folder / f"completion.{shell}")
            pathlib.Path(scripts[shell]).write_text(print_of(str(folder / "tprimat"), "completion", shell), encoding="utf-8")
        print_of(str(folder / "tprimat"), "man", "--quiet", "--output", str(folder / "pages"))
        failures = check_bash(scripts["bash"], commands, here) + check_zsh(scripts["zsh"], commands, folder)
        failures += check_fish(scripts["fish"], here) + check_fish_options(scripts["fish"], commands)
        failures += check_pages(folder / "pages", commands)
        failures += check_install(sys.argv[2], folder) if len(sys.argv) > 2 else []
    print("\n".join(failures) or f"{len(commands)} commands with {sum(map(len, commands.values()))} options are completed and explained")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
