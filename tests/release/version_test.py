#!/usr/bin/env python3
"""The version stands in CMakeLists.txt alone: the program and the Python package take it from there, no other file repeats it,
and the changelog is about it or what follows it.

usage: version_test.py SOURCE_DIR PROGRAM
"""

import pathlib
import re
import subprocess
import sys
import unittest

SOURCE, PROGRAM = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
VERSION = re.search(r"^project\(tprimat VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M).group(1)
# What tells of the past.
RECORDS = (":!CMakeLists.txt", ":!CHANGELOG.md", ":!tests/kept", ":!tests/golden", ":!*.tsv")


def ask(*command):
    return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True).stdout


class Version(unittest.TestCase):
    def test_the_program_says_it(self):
        self.assertEqual(ask(PROGRAM, "--version").split(), ["tprimat", VERSION])

    def test_the_python_package_takes_it(self):
        settings = (SOURCE / "python/pyproject.toml").read_text()
        self.assertIn('dynamic = ["version"]', settings)
        self.assertNotRegex(settings, r"(?m)^version")
        code = "import setuptools, runpy; setuptools.setup = lambda **all: print(all['version']); runpy.run_path('python/setup.py')"
        try:
            self.assertEqual(ask(sys.executable, "-c", code).strip(), VERSION)
        except subprocess.CalledProcessError as failure:
            if "No module named 'setuptools'" in failure.stderr:
                self.skipTest("setuptools is missing: pip install setuptools")
            raise

    def test_no_other_file_states_it(self):
        stated = rf"(tprimat|version)[^0-9]{{0,12}}{re.escape(VERSION)}([^0-9.]|$)"
        found = subprocess.run(["git", "grep", "-nIiE", stated, "--", ".", *RECORDS], cwd=SOURCE, capture_output=True, text=True)
        if found.returncode > 1:
            self.skipTest(f"git cannot list the files, so copies of the version are not looked for; git clone the sources: {found.stderr.strip()}")
        self.assertEqual(found.stdout, "")

    def test_the_changelog_is_about_it(self):
        heading = re.search(r"^## ([0-9.]+) \((unreleased|\d{4}-\d\d-\d\d)\)$", (SOURCE / "CHANGELOG.md").read_text(), re.M)
        numbers = [tuple(map(int, text.split("."))) for text in (heading.group(1), VERSION)]
        self.assertTrue(numbers[0] == numbers[1] or (heading.group(2) == "unreleased" and numbers[0] > numbers[1]), heading.group(0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
