#!/usr/bin/env python3
"""The package under mypy --strict, and scripts that use it: mypy accepts what is right and refuses what is wrong. What
other tests leave out where these packages are not there runs too.

  types_test.py TPRIMAT
"""

import os
import subprocess
import sys
import unittest

import paths

RIGHT = """
import pathlib
import tprimat

plan = tprimat.plan("llama3_8b", gpu=["H100", "B200"], gpus=64, tokens=15e12, config=pathlib.Path("a.yaml"))
if plan.best is not None:
    seconds: float = plan.best.step_seconds
report = tprimat.run(steps=20, progress=False, time_limit=60.0, set={"training.data.seq_length": 512})
rates: list[float | None] = [each.tokens_per_second for each in report.results]
for pair in tprimat.compare("a.json", pathlib.Path("b.json")).pairs:
    print(pair.verdict, float(pair.ratio) if pair.ratio else None)
result: float | None = tprimat.extract("train.log").mfu
for term in tprimat.why("a.json", pathlib.Path("b.json"), what_if=["overlap=full"]).largest:
    gap: float = term.seconds
try:
    tprimat.claim("llama3_8b", gpu="H100", gpus=8, mfu=45)
except tprimat.TprimatError as error:
    print(error.problem, error.place, error.remedy, error.exit_status)
"""
WRONG = """
import tprimat

tprimat.plan("llama3_8b", gpux="H100")
tprimat.plan(3)
tprimat.run(steps=[])
seconds: str = tprimat.estimate("llama3_8b").parameters
tprimat.plan("llama3_8b", gpu="H100").best.step_seconds
"""


class Types(unittest.TestCase):
    def setUp(self):
        self.folder = paths.enter_empty_folder(self)

    def mypy(self, *words):
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *map(str, words)],
                              capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(paths.SOURCES)})

    def test_of_the_package(self):
        done = self.mypy(paths.SOURCES / "tprimat")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_of_scripts_that_use_it(self):
        (self.folder / "right.py").write_text(RIGHT)
        (self.folder / "wrong.py").write_text(WRONG)
        done = self.mypy("right.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        faults = [line for line in self.mypy("wrong.py").stdout.splitlines() if ": error: " in line]
        lines = {int(line.split(":")[1]) for line in faults}
        self.assertEqual(lines, {4, 5, 6, 7, 8}, faults)


class OtherTests(unittest.TestCase):
    """Parts of them need these packages."""

    def run_test(self, *words):
        command = [sys.executable, str(paths.HERE / words[0]), os.environ["TPRIMAT_PROGRAM"], *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("left out", done.stdout)
        self.assertNotIn("skipped", done.stderr)

    def test_tables(self):
        self.run_test("calls_test.py", "Tables")

    def test_examples(self):
        self.run_test("examples_test.py", "docs")

    def test_notebooks_as_nbformat_reads_them(self):
        self.run_test("examples_test.py", "form")

    def test_outputs_as_jsonschema_reads_them(self):
        self.run_test("../schema/outputs_test.py")


if __name__ == "__main__":
    paths.run_tests_with("mypy", "pandas", "jsonschema", "nbformat")
