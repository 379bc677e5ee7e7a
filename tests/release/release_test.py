#!/usr/bin/env python3
"""scripts/release.sh in a repository of its own, whose tests and packages are fakes: what it refuses, and what it leaves.

usage: release_test.py SOURCE_DIR
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
CHANGES = "# Changelog\n\n## 7.2.0 (unreleased)\n\n- More.\n\n## 7.1.0 (2026-01-02)\n\n- Less.\n"
FAKE = '#!/bin/sh\necho "{name} $*" >>../calls\ngrep -h "^project" CMakeLists.txt >>../calls\n[ ! -e ../{name}-fails ]\n'


class Release(unittest.TestCase):
    def setUp(self):
        place = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_release_"))
        self.addCleanup(shutil.rmtree, place)
        self.place, self.tree = place, place / "tree"
        (self.tree / "scripts").mkdir(parents=True)
        for name in ("scripts/release.sh", "scripts/build.sh"):
            shutil.copy2(SOURCE / name, self.tree / name)
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.24)\nproject(tprimat VERSION 7.1.0 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", CHANGES)
        self.write(".gitignore", "build/\n")
        for name, file in (("test", "test.sh"), ("package", "scripts/package.sh")):
            self.write(file, FAKE.format(name=name))
            (self.tree / file).chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "All")

    def write(self, name, text):
        (self.tree / name).write_text(text, encoding="utf-8")

    def run_in_tree(self, *command):
        environment = {**os.environ, "HOME": str(self.place), "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "Releaser", f"GIT_{who}_EMAIL": "releaser@example.org"}
        return subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False)

    def git(self, *words):
        done = self.run_in_tree("git", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def release(self, *words):
        return self.run_in_tree("scripts/release.sh", *words)

    def calls(self):
        file = self.place / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def assert_refused(self, words, sentence):
        before = self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")
        done = self.release(*words)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, sentence)
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")), before)
        self.assertNotIn("v7.2.0", self.git("tag"))

    def test_a_release_is_tested_committed_tagged_and_packed(self):
        done = self.release("7.2.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        of_version = "project(tprimat VERSION 7.2.0 LANGUAGES CXX)"
        self.assertEqual(self.calls(), ["test ", of_version, "package wheel wheel-nvd sdist deb tar sbom sums", of_version])
        self.assertRegex((self.tree / "CHANGELOG.md").read_text(), r"^# Changelog\n\n## 7\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n- More\.\n\n## 7\.1\.0 ")
        self.assertEqual(self.git("log", "-1", "--format=%s"), "Release 7.2.0\n")
        self.assertEqual(self.git("describe"), "v7.2.0\n")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertIn("git push origin main v7.2.0", done.stderr)

    def test_tests_that_have_passed_are_not_run_again(self):
        self.assertEqual(self.release("7.2.0", "--tested").returncode, 0)
        self.assertNotIn("test ", self.calls())

    def test_tests_that_fail_leave_everything_as_it_was(self):
        (self.place / "test-fails").touch()
        self.assert_refused(["7.2.0"], "the tests fail, and nothing was released")

    def test_packages_that_fail_say_how_to_go_on(self):
        (self.place / "package-fails").touch()
        done = self.release("7.2.0", "--tested")
        self.assertEqual(done.returncode, 1)
        self.assertIn("go on: scripts/package.sh wheel", done.stderr)
        back = re.search(r"start again: (.*)$", done.stderr, re.M).group(1)
        self.assertEqual(self.run_in_tree("sh", "-c", back).returncode, 0)
        self.assertEqual(self.git("log", "--format=%s"), "All\n")
        (self.place / "package-fails").unlink()
        self.assertEqual(self.release("7.2.0", "--tested").returncode, 0)

    def test_what_is_not_to_be_released_is_refused(self):
        self.assert_refused([], "name the version")
        self.assert_refused(["v7.2"], "name the version")
        self.assert_refused(["07.2.0"], "name the version")
        self.assert_refused(["7.2.0", "--fast"], "unknown option --fast")
        self.assert_refused(["7.0.9"], "version 7.0.9 is before 7.1.0")
        self.write("new", "")
        self.assert_refused(["7.2.0"], r"(?s)differs from its last commit.*\?\? new")
        (self.tree / "new").unlink()
        self.git("switch", "-q", "-c", "other")
        self.assert_refused(["7.2.0"], "this is other: git switch main")

    def test_a_version_is_released_once(self):
        self.assertEqual(self.release("7.2.0", "--tested").returncode, 0)
        self.assertIn("there is a tag v7.2.0", self.release("7.2.0", "--tested").stderr)
        self.assertIn("CHANGELOG.md has nothing new", self.release("7.3.0", "--tested").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
