#!/usr/bin/env python3
"""The functions of the package tprimat against the program: what they return, what they raise, how they end.

  calls_test.py TPRIMAT
"""

import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
import unittest
import uuid
from unittest import mock

import paths
import tprimat

CASES = paths.HERE.parent / "cli"
TINY = CASES / "tiny.yaml"
RUNS = paths.HERE.parent / "golden/compare/clear_winner/runs"
HOSTILE = ["--output", "-h", "--", "-", "", " ", "$(touch touched)", "`touch touched`", "a\nb", "a'b\"c", "../../x",
           "x" * 9000, "a\0b", "\ud800", "--json=1", "@file", "é"]
RUN_FOREVER = """
import sys, tprimat
tprimat.run(config=sys.argv[1], steps=10000000, output="out", {})
"""


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = paths.enter_empty_folder(self)

    def refused(self, kind, call, *words, **options):
        with self.assertRaises(kind) as raised:
            call(*words, **options)
        return raised.exception


class Plans(InFolder):
    def test_the_best_layout_can_be_printed(self):
        best = tprimat.plan("llama3_8b", gpu="H100", gpus=64).best
        self.assertRegex(str(best), r"^(TP|PP|DP) .*: \d+\.\d+ s per step, [\d ]+ tokens/s per GPU, MFU \d\d\.\d %, ")

    def test_it_holds_what_the_program_prints(self):
        printed = json.loads(paths.run_program("plan", "llama3_8b", "--gpu", "H100", "--gpus", "64", "--json").stdout)
        plan = tprimat.plan("llama3_8b", gpu="H100", gpus=64)
        self.assertEqual(plan.to_json(), printed)
        self.assertEqual(plan.best.step_seconds, printed["plans"][0]["ranked"][0]["step_seconds"])
        self.assertEqual(len(str(plan).splitlines()), len(plan.layouts) + 3)

    def test_lists_and_mappings_are_options(self):
        plan = tprimat.plan("llama3_8b", gpu=["H100", "B200"], gpus=[8, 16], price={"H100": 2.5, "B200": 4}, top=1,
                            tokens=15e12, target_days=30)
        self.assertEqual([(each.gpu[:4], each.gpus) for each in plan.plans],
                         [("H100", 8), ("H100", 16), ("B200", 8), ("B200", 16)])
        self.assertIn("B200", plan.best and str(plan))

    def test_no_layout_fits(self):
        plan = tprimat.plan("llama3.1_405b", gpu="A100", gpus=1)
        self.assertIsNone(plan.best)

    def test_results_do_not_change(self):
        best = tprimat.plan("llama3_8b", gpu="H100", gpus=8, top=1).best
        with self.assertRaises(dataclasses.FrozenInstanceError):
            best.mfu = 1.0


class Numbers(InFolder):
    def test_of_models_and_what_others_published(self):
        flops = tprimat.estimate("llama3.1_8b", seq=2048)
        self.assertEqual(flops.to_json(), json.loads(
            paths.run_program("estimate", "--flops", "llama3.1_8b", "--seq", "2048", "--json").stdout))
        self.assertIn("8B", str(flops))
        entries = tprimat.published(model="llama3.1_8b", gpu="H100", sort="mfu")
        self.assertGreater(len(entries), 10)
        self.assertIn("H100", str(entries[0]))
        [memory] = tprimat.estimate_memory("tiny", config=TINY)
        self.assertGreater(memory.memory_bytes, 0)

    def test_an_impossible_claim_is_an_answer(self):
        self.assertEqual(tprimat.claim("llama3.1_8b", gpu="H100", gpus=64, mfu=170).verdict, "impossible")
        self.assertNotEqual(tprimat.claim("llama3.1_8b", gpu="H100", gpus=64, mfu=45).verdict, "impossible")


class Hostile(InFolder):
    """No value becomes an option, or a command."""

    def test_as_arguments(self):
        for word in HOSTILE:
            with self.subTest(word=word[:20]):
                self.refused(tprimat.InputError, tprimat.plan, word, gpu="H100", gpus=64)
                self.refused(tprimat.InputError, tprimat.estimate, word)
                self.refused(tprimat.TprimatError, tprimat.compare, word)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_as_values(self):
        for word in HOSTILE:
            with self.subTest(word=word[:20]):
                self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", gpu=word, gpus=64)
                self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", gpu="H100", gpus=word)
                if word:  # else no configuration is named
                    self.refused(tprimat.TprimatError, tprimat.plan, "llama3_8b", gpu="H100", gpus=8, config=word)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_log_may_be_called_like_an_option(self):
        pathlib.Path("--list-formats").write_bytes((CASES / "extract/megatron.log").read_bytes())
        self.assertGreater(tprimat.extract("--list-formats", output="-", progress=False).step_times[0], 0)


class Errors(InFolder):
    def test_have_problem_place_and_remedy(self):
        error = self.refused(tprimat.InputError, tprimat.plan, "nonsense", gpu="H100", gpus=64)
        self.assertEqual((error.problem, error.place, error.remedy, error.exit_status), (
            "neither the configuration nor the catalogue has a model 'nonsense'", "MODEL",
            "docs/models.md lists the catalogue", 2))
        self.assertEqual(str(error).splitlines()[1], "  docs/models.md lists the catalogue")
        self.assertIsInstance(error, ValueError)

    def test_of_a_configuration_name_the_line(self):
        pathlib.Path("config.yaml").write_text("training:\n  data: {seq_len: 3}\n  steps: x\n")
        error = self.refused(tprimat.InputError, tprimat.run)
        self.assertEqual(len(error.problems), 2)
        self.assertRegex(error.place, r"^config\.yaml:2:")

    def test_unknown_options_are_named_before_anything_starts(self):
        error = self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", gpux="H100")
        self.assertIn("did you mean 'gpu'", error.remedy)
        self.assertIsNone(error.exit_status)
        self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", gpu=True)
        self.refused(tprimat.InputError, tprimat.plan, "llama3_8b", lora=3)

    def test_of_a_missing_program(self):
        with mock.patch.dict(os.environ, TPRIMAT_PROGRAM="/nowhere/tprimat"):
            error = self.refused(tprimat.MissingComponent, tprimat.plan, "llama3_8b")
            self.assertEqual(error.place, "TPRIMAT_PROGRAM")
        pathlib.Path("broken").write_text("no program")
        os.chmod("broken", 0o755)
        with mock.patch.dict(os.environ, TPRIMAT_PROGRAM=str(pathlib.Path("broken").resolve())):
            self.assertIn("cannot be started", str(self.refused(tprimat.MissingComponent, tprimat.plan, "llama3_8b")))

    def test_of_another_programs_output(self):
        fake = pathlib.Path("fake")
        for printed in ("{}", "[]", "not JSON", '{"plans": 3, "frontier": [], "answers": [], "assumptions": []}'):
            fake.write_text(f"#!/bin/sh\necho '{printed}'\n")
            fake.chmod(0o755)
            with mock.patch.dict(os.environ, TPRIMAT_PROGRAM=str(fake.resolve())), self.subTest(printed=printed):
                self.refused(tprimat.TprimatError, tprimat.plan, "llama3_8b")

    def test_of_a_killed_program(self):
        fake = pathlib.Path("fake")
        fake.write_text("#!/bin/sh\nkill -9 $$\n")
        fake.chmod(0o755)
        with mock.patch.dict(os.environ, TPRIMAT_PROGRAM=str(fake.resolve())):
            self.assertIn("signal 9", str(self.refused(tprimat.TprimatError, tprimat.plan, "llama3_8b")))

    def test_of_result_files(self):
        self.assertEqual(self.refused(tprimat.InputError, tprimat.load_result, "none.json").place, "none.json")
        for text in ("", "{", "[]", "{}", '{"schema_version": 1, "step_times": "x"}'):
            pathlib.Path("a.json").write_text(text)
            with self.subTest(text=text):
                self.refused(tprimat.TprimatError, tprimat.load_result, pathlib.Path("a.json"))


class Results(InFolder):
    def test_train_then_compare(self):
        report = tprimat.run(config=TINY, output="results", runs=2, progress=False)
        self.assertEqual([(each.status, each.steps) for each in report.runs], [("complete", 3)] * 2)
        results = report.results
        self.assertEqual({each.model for each in results}, {"tiny"})
        self.assertTrue(all(each.tokens_per_second > 0 and len(each.step_times) == 3 for each in results))
        self.assertEqual(results[0], tprimat.load_result(pathlib.Path(report.runs[0].result)))
        self.assertEqual(len(tprimat.load_results("results")), 2)
        self.assertIn("tokens/s", str(report))
        comparison = tprimat.compare("results")
        self.assertEqual([[pathlib.Path(each).resolve() for each in one.files] for one in comparison.contenders],
                         [[each.path for each in results]])

    def test_a_failed_run_is_an_exception_that_holds_the_rest(self):
        error = self.refused(tprimat.RunFailed, tprimat.run, config=TINY, steps=10000000, timeout=1,
                             progress=False)
        self.assertEqual(error.exit_status, 1)
        self.assertNotEqual(error.output.runs[0].status, "complete")
        self.assertTrue(error.problem)

    def test_verdicts(self):
        comparison = tprimat.compare(RUNS, output=self.folder)
        [pair] = comparison.pairs
        self.assertEqual((pair.verdict, round(float(pair.ratio), 3)), ("slower", 0.906))
        self.assertIn("AMD Primus is 1.104x faster", str(comparison))
        different = tprimat.compare(RUNS.parent.parent / "different_work/runs", output=self.folder)
        self.assertIsNone(different.pairs[0].verdict)

    def test_gates(self):
        error = self.refused(tprimat.GateFailed, tprimat.compare, RUNS, output=self.folder, baseline="prim",
                             fail_if="tokens_per_second < -3%")
        self.assertEqual(error.output.gates[0].outcome, "failed")
        tprimat.compare(RUNS, output=self.folder, baseline="nemo", fail_if=["tokens_per_second < -3%", "mfu < -90%"])

    def test_logs(self):
        log = CASES / "extract/megatron.log"
        result = tprimat.extract(log, output=self.folder / "a.json", set={"training.data.seq_length": 1024})
        self.assertEqual(tprimat.load_result("a.json").step_times, result.step_times)
        self.assertEqual(tprimat.extract(str(log), output="-").step_times, result.step_times)
        self.assertEqual(len(tprimat.extract_all(CASES / "extract", output="all")), 2)
        self.assertEqual(len(tprimat.extract_all(log, CASES / "extract/oom.log", output="all")), 2)
        self.assertIn("extract_all", self.refused(tprimat.InputError, tprimat.extract, CASES / "extract").remedy)
        self.assertEqual(tprimat.extract(CASES / "extract/oom.log", output="-").status, "failed")

    def test_what_a_newer_program_adds_is_kept(self):
        data = tprimat.load_result(next(RUNS.glob("*.json"))).to_json()
        data["invented"] = {"a": 1}
        data["status"] = "invented"
        pathlib.Path("a.json").write_text(json.dumps(data))
        result = tprimat.load_result("a.json")
        self.assertEqual((result.extra["invented"], result.status), ({"a": 1}, "invented"))
        self.assertEqual(result.to_json(), data)


class Tables(InFolder):
    def test_need_pandas(self):
        with mock.patch.dict(sys.modules, pandas=None):
            error = self.refused(tprimat.MissingComponent, tprimat.plan("llama3_8b", gpu="H100", gpus=8).to_pandas)
        self.assertEqual((error.problem, error.remedy), ("this Python has no pandas", "pip install pandas"))

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is missing: pip install pandas")
    def test_have_a_row_for_each(self):
        plan = tprimat.plan("llama3_8b", gpu="H100", gpus=[8, 16], top=3)
        self.assertEqual(list(plan.to_pandas()["rank"]), [1, 2, 3] * 2)
        comparison = tprimat.compare(RUNS, output=self.folder)
        self.assertEqual(list(comparison.to_pandas()["label"]), [each.label for each in comparison.contenders])
        self.assertEqual(len(tprimat.load_results(RUNS).to_pandas()), 2)


def processes_with(mark):
    """What runs with this word in its environment."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes() and (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


class Endings(InFolder):
    """A call that is given up ends what it started."""

    def start(self, options):
        mark = f"mark-{uuid.uuid4()}"
        child = subprocess.Popen([sys.executable, "-c", RUN_FOREVER.format(options), str(TINY)], stdin=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(paths.SOURCES), "CALLS_TEST": mark})
        self.addCleanup(child.stderr.close)
        return child, mark

    def wait_for_steps(self):
        end = time.monotonic() + 120
        while not any(each.stat().st_size for each in self.folder.rglob("*.jsonl")):
            self.assertLess(time.monotonic(), end, "nothing trains")
            time.sleep(0.02)

    def assert_ended(self, mark):
        end = time.monotonic() + 60
        while processes_with(mark):
            self.assertLess(time.monotonic(), end, "something still runs")
            time.sleep(0.05)

    def test_an_interrupted_run(self):
        child, mark = self.start("")
        self.assertIn("native tiny", child.stderr.readline())  # progress comes while it trains
        self.wait_for_steps()
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        self.assertNotEqual(child.wait(200), 0)
        self.assertIn("KeyboardInterrupt", rest)
        self.assert_ended(mark)
        [result] = tprimat.load_results("out")
        self.assertEqual(result.status, "interrupted")
        self.assertGreater(len(result.step_times), 0)

    def test_control_c_on_a_terminal(self):
        mark = f"mark-{uuid.uuid4()}"
        program, terminal = pty.fork()
        if program == 0:
            environment = {**os.environ, "PYTHONPATH": str(paths.SOURCES), "CALLS_TEST": mark}
            os.execve(sys.executable, [sys.executable, "-c", RUN_FOREVER.format(""), str(TINY)], environment)
        self.wait_for_steps()
        os.write(terminal, b"\x03")
        said = b""
        with contextlib.suppress(OSError):  # the terminal is gone
            while more := os.read(terminal, 4096):
                said += more
        os.close(terminal)
        self.assertNotEqual(os.waitpid(program, 0)[1], 0)
        self.assertIn(b"KeyboardInterrupt", said)
        self.assert_ended(mark)
        self.assertEqual([each.status for each in tprimat.load_results("out")], ["interrupted"])

    def test_a_run_that_takes_too_long(self):
        child, mark = self.start("time_limit=3, progress=False")
        said = child.stderr.read()
        child.wait(200)
        self.assertIn("TimeLimitReached: time_limit: tprimat run took longer than 3 s", said)
        self.assertNotIn("step ", said)
        self.assert_ended(mark)


class Generated(unittest.TestCase):
    """Out of date: the script that is named writes them again."""

    def check(self, script, *words):
        done = subprocess.run([sys.executable, str(paths.SOURCES.parent / "scripts" / script), *words, "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_dataclasses_are_those_of_the_schemas(self):
        self.check("generate_dataclasses.py")

    def test_options_are_those_of_the_program(self):
        self.check("generate_options.py", os.environ["TPRIMAT_PROGRAM"])


if __name__ == "__main__":
    paths.run_tests()
