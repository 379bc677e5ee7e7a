#!/usr/bin/env python3
"""The revision of the sources that our programs are built from: revision.py prints it.

The last commit that changed one of them; "-dirty-" and a hash of them all where they differ from it. So a commit of
documents or results leaves it as it is.
"""

import hashlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "src", "tests/unit/gpu", "tests/unit/op_values.h")


def ask_git(root, *words):
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def hash_sources(root):
    total = hashlib.sha256()
    for name in sorted((ask_git(root, "ls-files", "-co", "--exclude-standard", "--", *SOURCES) or "").splitlines()):
        if (root / name).is_file():
            total.update(name.encode() + b"\0" + hashlib.sha256((root / name).read_bytes()).digest())
    return total.hexdigest()[:12]


def revision_of(root=ROOT):
    """None outside of a git checkout."""
    commit = ask_git(root, "log", "-1", "--format=%H", "--", *SOURCES)
    if not commit:
        return None
    changed = ask_git(root, "status", "--porcelain", "--", *SOURCES)
    return f"{commit[:12]}-dirty-{hash_sources(root)}" if changed else commit[:12]


def revision_of_programs(folder):
    """What bundle.sh noted beside them; else of the sources here; else a hash of the programs."""
    if (folder / "revision").is_file():
        return (folder / "revision").read_text().strip()
    found = [folder / name for name in ("tprimat", "tprimat-train") if (folder / name).is_file()]
    hashed = hashlib.sha256(b"".join(program.read_bytes() for program in found)).hexdigest()[:12]
    return revision_of() or (f"program-{hashed}" if found else "no program")


if __name__ == "__main__":
    print(revision_of() or sys.exit("error: this is no git checkout, so its revision is not known"))
