#!/usr/bin/env python3
"""The package tprimat where something is wrong: programs that misbehave, damaged files, arguments of the wrong type.

  faults_test.py TPRIMAT
"""

import importlib.metadata
import json
import os
import pathlib
import sys
import sysconfig
import time
import unittest
import warnings
from unittest import mock

import paths
import tprimat
from tprimat import calls, program

CASES = paths.HERE.parent / "cli"
RESULT = next((paths.HERE.parent / "golden/compare/clear_winner/runs").glob("*.json"))


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = paths.enter_empty_folder(self)

    def refused(self, kind, call, *words, **options):
        with self.assertRaises(kind) as raised:
            call(*words, **options)
        return raised.exception

    def use_program(self, script):
        """A program of a shell's commands, until the test ends."""
        fake = self.folder / "fake"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        change = mock.patch.dict(os.environ, TPRIMAT_PROGRAM=str(fake))
        change.start()
        self.addCleanup(change.stop)


class Broken:
    def write(self, text):
        raise OSError("closed")


class Pipes(InFolder):
    def test_progress_without_a_stderr(self):
        """More than a pipe holds."""
        self.use_program("i=0; while [ $i -lt 4000 ]; do echo 'step: a line that is not short at all' >&2; "
                         "i=$((i+1)); done; echo '[]'")
        for stderr in (None, Broken()):
            with mock.patch.object(sys, "stderr", stderr):
                found = tprimat.published(progress=True, time_limit=100)
            self.assertEqual(len(found), 0)

    def test_what_the_program_started_may_keep_its_output_open(self):
        self.use_program("sleep 60 & echo $! > child; printf '[]'; exit 0")
        for options, patience in (({"time_limit": 2}, 30.0), ({}, 0.5)):
            start = time.monotonic()
            with mock.patch.object(program, "SECONDS_TO_READ", patience):
                self.assertEqual(len(tprimat.published(**options)), 0)
            self.assertLess(time.monotonic() - start, 25)
            os.kill(int(pathlib.Path("child").read_text()), 9)

    def test_a_line_of_errors_that_is_not_whole(self):
        for line in ('{"errors":[{"probl', '{"errors": [{"place": "x"}]}', '{"errors":3}', '{"errors":["x"]}'):
            self.use_program(f"echo '{line}' >&2; exit 2")
            error = self.refused(tprimat.InputError, tprimat.estimate, "llama3_8b")
            self.assertEqual(error.problem, "tprimat estimate ended with exit status 2")


class Programs(InFolder):
    def test_that_print_no_json(self):
        self.use_program("if [ \"$1\" = --version ]; then echo tprimat 0.0.1; fi")
        with mock.patch.object(importlib.metadata, "version", return_value="0.0.2"):
            error = self.refused(tprimat.TprimatError, tprimat.estimate, "llama3_8b")
        self.assertEqual((error.problem, error.exit_status), ("tprimat estimate printed no JSON", 0))
        self.assertRegex(error.remedy, "/fake is 0.0.1, the package 0.0.2: use the program and the package of one")
        with mock.patch.object(importlib.metadata, "version", return_value="0.0.1"):
            error = self.refused(tprimat.TprimatError, tprimat.estimate, "llama3_8b")
        self.assertEqual(error.remedy, "use the program and the package of one version")

    def test_are_found_beside_the_package(self):
        for library, scripts in (("lib/python3.11/site-packages", "bin"), ("lib64/python3.9/site-packages", "bin"),
                                 ("local/lib/python3.11/dist-packages", "local/bin"),
                                 ("lib/python3/dist-packages", "bin"), ("somewhere", "somewhere/bin")):
            with self.subTest(library=library), mock.patch.object(
                    program, "__file__", str(self.folder / library / "tprimat/program.py")):
                self.assertIn(self.folder / scripts, program.program_folders())
        package = pathlib.Path(sysconfig.get_path("purelib")) / "tprimat/program.py"
        with mock.patch.object(program, "__file__", str(package)):
            self.assertEqual(program.program_folders()[0], pathlib.Path(sysconfig.get_path("scripts")))

    def test_of_a_prefix_come_before_those_of_the_path(self):
        for place in ("prefix/bin", "path"):
            pathlib.Path(place).mkdir(parents=True)
            pathlib.Path(place, "tprimat").write_text("#!/bin/sh\n")
            pathlib.Path(place, "tprimat").chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{self.folder}/path:{os.environ['PATH']}", TPRIMAT_PROGRAM=""):
            module = self.folder / "prefix/lib/python3.11/site-packages/tprimat/program.py"
            with mock.patch.object(program, "__file__", str(module)):
                self.assertEqual(program.find_program(), str(self.folder / "prefix/bin/tprimat"))


class Arguments(InFolder):
    def test_too_long_for_a_program(self):
        error = self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", gpu="H" * (1 << 20))
        self.assertIn("too long", error.problem)

    def test_a_value_for_a_flag(self):
        for call, words, options in ((tprimat.plan, ["llama3_8b"], {"lora": "llama3_8b"}),
                                     (tprimat.compare, ["a", "b"], {"force": "no"}),
                                     (tprimat.compare, ["a", "b"], {"force": pathlib.Path("no")}),
                                     (tprimat.plan, ["llama3_8b"], {"lora": 1})):
            [name] = options
            error = self.refused(tprimat.InputError, call, *words, **options)
            self.assertIn(f"option '{name}' is a flag: True or False", error.problem)

    def test_of_a_wrong_type_are_named(self):
        for name, call, words, options in (
                ("model", tprimat.estimate, [None], {}), ("model", tprimat.estimate_memory, [None], {}),
                ("model", tprimat.plan, [5], {}), ("model", tprimat.claim, [None], {}),
                ("log", tprimat.extract, [None], {}), ("paths", tprimat.extract_all, [b"a.log"], {}),
                ("paths", tprimat.compare, [3], {}), ("path", tprimat.load_result, [None], {}),
                ("paths", tprimat.load_results, [3], {}), ("config", tprimat.plan, ["llama3_8b"], {"config": b"x"}),
                ("time_limit", tprimat.plan, ["llama3_8b"], {"time_limit": "5"}),
                ("time_limit", tprimat.plan, ["llama3_8b"], {"time_limit": float("nan")}),
                ("gpu", tprimat.plan, ["llama3_8b"], {"gpu": b"H100"}),
                ("gpu", tprimat.plan, ["llama3_8b"], {"gpu": [b"H100"]}),
                ("gpus", tprimat.plan, ["llama3_8b"], {"gpus": object()})):
            with self.subTest(call=call.__name__, words=words, options=options):
                error = self.refused(tprimat.InputError, call, *words, **options)
                self.assertEqual(error.place, name)
                self.assertIn(name, error.problem)


class Files(InFolder):
    def write(self, **changes):
        """A result as this version writes it."""
        pathlib.Path("a.json").write_text(json.dumps({**tprimat.load_result(RESULT).to_json(), **changes}))

    def test_numbers_that_json_does_not_have(self):
        for number in ("NaN", "Infinity", "-Infinity", "1e999"):
            self.write(step_times=["HERE"])
            text = pathlib.Path("a.json").read_text().replace('"HERE"', number)
            pathlib.Path("a.json").write_text(text)
            error = self.refused(tprimat.InputError, tprimat.load_result, "a.json")
            self.assertEqual((error.place, error.problem), ("a.json", f"{number} is no number of JSON"))

    def test_a_newer_schema_warns(self):
        result = tprimat.load_result(RESULT).to_json()  # as this version writes it, and as an earlier one did
        for data in (result, json.loads(RESULT.read_text())):
            pathlib.Path("a.json").write_text(json.dumps({**data, "schema_version": 2}))
            with self.assertWarnsRegex(UserWarning, "a.json: its schema_version is 2, and this package knows 1"):
                tprimat.load_result("a.json")
        self.write()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tprimat.load_result("a.json")

    def test_a_number_that_no_float_holds(self):
        self.write(step_times=[10**400])
        self.refused(tprimat.InputError, tprimat.load_result, "a.json")

    def test_a_deep_one(self):
        pathlib.Path("a.json").write_text('{"schema_version": ' + "[" * 100000 + "]" * 100000 + "}")
        self.assertEqual(self.refused(tprimat.InputError, tprimat.load_result, "a.json").place, "a.json")
        self.assertEqual(self.refused(tprimat.InputError, tprimat.load_results, self.folder).place,
                         str(self.folder / "a.json"))

    def test_what_is_no_file(self):
        self.write()
        pathlib.Path("sub.json").mkdir()
        pathlib.Path("link.json").symlink_to("nowhere")
        os.mkfifo("pipe.json")
        self.assertEqual([each.path.name for each in tprimat.load_results(self.folder)], ["a.json"])
        for name in ("sub.json", "link.json"):
            self.assertEqual(self.refused(tprimat.InputError, tprimat.load_result, name).place, name)

    def test_names_that_are_not_utf8(self):
        pathlib.Path("logs").mkdir()
        log = (CASES / "extract/megatron.log").read_bytes()
        for name in (b"a.log", b"b\xff\xfec.log"):
            pathlib.Path("logs", os.fsdecode(name)).write_bytes(log)
        results = tprimat.extract_all("logs", output="out")
        self.assertEqual([os.fsencode(each.path.name) for each in results], [b"a.log.json", b"b\xff\xfec.log.json"])
        pathlib.Path("out", os.fsdecode(b"b\xfe\xffc.log.json")).write_text("{}")
        error = self.refused(tprimat.InputError, calls.find_file, "out/b\ufffd\ufffdc.log.json")
        self.assertEqual(error.place, "out")
        self.assertIn("rename its log", error.remedy)


if __name__ == "__main__":
    paths.run_tests()
