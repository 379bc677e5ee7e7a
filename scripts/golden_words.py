#!/usr/bin/env python3
"""Shows that the goldens of HEAD differ from those of another commit in words only: same files, numbers and structure,
and the same exit statuses in tests/cli.

usage: scripts/golden_words.py COMMIT
"""

import json
import re
import subprocess
import sys

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, errors="replace")


def text_at(commit, path):
    shown = git("show", f"{commit}:{path}")
    return shown.stdout if shown.returncode == 0 else None


def structure(value):
    """A JSON value with each text reduced to the numbers in it."""
    if isinstance(value, dict):
        return {key: structure(each) for key, each in value.items()}
    if isinstance(value, list):
        return [structure(each) for each in value]
    return NUMBER.findall(value) if isinstance(value, str) else value


def reduced(path, text):
    if text is None:
        return None
    if path.startswith("tests/cli/"):
        return re.findall(r"^exit .*$", text, re.MULTILINE)
    return structure(json.loads(text)) if path.endswith(".json") else NUMBER.findall(text)


def main():
    commit = sys.argv[1]
    paths = git("diff", "--name-only", "--no-renames", commit, "HEAD", "--", "tests/golden", "tests/cli/*.test").stdout.split()
    other = [path for path in paths if reduced(path, text_at(commit, path)) != reduced(path, text_at("HEAD", path))]
    print("\n".join(f"differs in more than words: {path}" for path in other) or f"{len(paths)} files differ in words only")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
