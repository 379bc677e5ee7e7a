#!/usr/bin/env python3
"""Holds the project's text to the field's words, of which docs/glossary.md explains the right ones.

usage: words.py SOURCE_DIR
"""

import pathlib
import re
import subprocess
import sys

# A pattern, and what an engineer says instead. A part of an identifier counts as a word: `rank_meeting`, `RankMeeting`.
NOT_OURS = [
    (r"(?<!importlib\.)machinery", "mechanism, or the name of the part"),
    ("staircase", "Pareto frontier"),
    ("turned", "transposed, rotated, reversed"),
    ("meetings?", "rendezvous"),
    ("reception", "listener"),
    ("guests?", "peer"),
    ("lifeline", "failure detector, heartbeat"),
    ("surroundings", "environment, context"),
    ("rooms?", "memory, space, capacity"),
    (r"(?<!set )(?<!schema_)arrows?(?! [0-9])", "edge"),  # but for gnuplot's and pyarrow's
    (r"k_(?:\w+_)?(?:most|least)(?![a-z])", "k_max_, k_min_"),
    ("words_of", "names_of, format_..."),
    (r"(?:say|hear)(?=\()", "send_message, receive_message"),
]
READ = {".h", ".cpp", ".cu", ".py", ".sh", ".md", ".cmake", ".txt", ".yaml", ".test", ".tsv", ".css", ".js", ".html"}
DATA = re.compile(r"^(tests/(fuzz/corpus|golden|cli/extract|cli/malformed|unit/.*/fixtures)|bench/results)/")


def pattern():
    parts = "|".join(f"(?P<w{i}>{word})" for i, (word, _) in enumerate(NOT_OURS))
    return re.compile(rf"(?<![a-z])(?:{parts})(?![a-z])")


def spread(line):
    """CamelCase becomes snake_case of the same places, so that its parts are words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", line).lower()


def check(path, text, wanted):
    for number, line in enumerate(text.splitlines(), 1):
        for found in wanted.finditer(spread(line)):
            instead = NOT_OURS[int(found.lastgroup[1:])][1]
            yield f"{path}:{number}: '{found.group(0)}' is not the field's word; say {instead}"


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = pattern()
    files = [p for p in listed if pathlib.Path(p).suffix in READ and p != "tests/style/words.py" and not DATA.match(p)]
    findings = [each for path in files if (root / path).exists()
                for each in check(path, (root / path).read_text(errors="replace"), wanted)]
    print("\n".join(findings) or f"{len(files)} files use the field's words")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main())
