"""What the tests of this folder share: where the Python under test lies, and which program they were given."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "python"
sys.path[:0] = [str(SOURCES), str(HERE.parent / "parity")]
from chosen_python import SKIPPED, lacks, missing_packages as missing, use_chosen_python  # noqa: E402, of the folder just added

for name in ("TPRIMAT_STEPS", "TPRIMAT_FLASH_ATTENTION", "RANK", "WORLD_SIZE", "LOCAL_RANK", "PARALLEL"):
    os.environ.pop(name, None)  # nothing of the caller's settings reaches a test


def read_records(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert text.endswith("\n"), "the last record is not whole"
    return [json.loads(line) for line in text.splitlines()]


def enter_empty_folder(test):
    """The test's current folder until it ends."""
    temporary = tempfile.TemporaryDirectory()
    test.addCleanup(temporary.cleanup)
    test.addCleanup(os.chdir, os.getcwd())
    os.chdir(temporary.name)
    return pathlib.Path(temporary.name).resolve()


def run_program(*words):
    return subprocess.run([os.environ["TPRIMAT_PROGRAM"], *map(str, words)], capture_output=True, text=True)


def run_tests():
    """Run with the program as the only argument; exit status 77 where Python lacks a package."""
    program = sys.argv.pop(1)
    os.environ["TPRIMAT_PROGRAM"] = str(pathlib.Path(program).resolve())
    unittest.main(module="__main__", verbosity=2, warnings="ignore")


def run_tests_with(*packages):
    use_chosen_python()
    if lacks(*packages):
        sys.exit(SKIPPED)
    run_tests()
