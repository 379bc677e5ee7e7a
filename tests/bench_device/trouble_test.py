"""The calls of native.sh in trouble: wrong input, results of others, cards without cuDNN, signals, hanging programs."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import unittest
from unittest import mock

from stand_ins import NVIDIA_SMI, SOURCE, TINY, Folder, write_program

import card
import comparison
import gpu_tests
import programs
import provide
import table

H200 = "NVIDIA H200, 580.1, 143771 MiB"


class Native(Folder):
    def native(self, *words, **environment):
        done = subprocess.run([SOURCE / "bench/device/native.sh", *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "OUT": "out", "PROGRAMS": "bin", "PYTHON": sys.executable, **environment},
                              cwd=self.folder)
        self.assertNotIn("Traceback", done.stderr)
        return done


class Inputs(Native):
    def refused(self, words, wanted, status=2, **environment):
        done = self.native(*words, **environment)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        self.assertRegex(done.stderr, "^error: .*" + wanted)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(self.started(), [])

    def write(self, name, value):
        (self.folder / name).write_text(json.dumps(value))
        return name

    def test_wrong_input_is_one_sentence(self):
        known = r"choose attention \(a\), .* or memcheck \(f\); see native.sh --help"
        self.refused(["tests"], f"unknown call 'tests'; {known}")
        self.refused(["b", "--cells", "none:64x2"], "unknown model 'none'; the models are llama3.1_8b")
        self.refused(["b", "--cells", "gpt2:64x2:fp4"], "unknown formats 'fp4'")
        self.refused(["b", "--cells", "gpt2:0x2"], "must be positive")
        self.refused(["b", "--cells", "gpt2"], "'gpt2' is no MODEL:LENGTHxSEQUENCES")
        for budget in ("nan", "inf", "-1", "x"):
            self.refused(["b", "--budget", budget], "--budget")
        self.refused(["b", "--steps", "0"], "--steps must be positive")
        self.refused(["b", "--resume", "nowhere"], "there is no folder nowhere")
        self.refused(["b", "--shapes", "nowhere"], "nowhere cannot be read")
        self.refused(["b", "--shapes", self.write("shapes.json", {"tiny": 3})], "shapes.json must map")
        self.refused(["b", "--choices", self.write("c.json", {"choices": {"x": {"eager": {"attention": "own"}}}})],
                     "unknown setting attention=own")
        self.refused(["b"], "name another folder in OUT", OUT=str(self.bin / "tprimat/out"))

    def test_peers_have_no_norms_of_queries(self):
        self.refused(["c", "--cells", "qwen3_8b:2048x1"], "qwen3_8b has qk_norm")

    def test_missing_components(self):
        self.refused(["d"], "is no Python 3.10", 4, PYTHON="/bin/false")
        self.refused(["d"], "holds neither tprimat nor", 4, PROGRAMS="nowhere")
        (self.folder / "programs.tar.xz").write_bytes(b"\xfd7zXZ\0torn")
        self.refused(["d"], "cannot be unpacked: .*; pack it again", 4, PROGRAMS=".")
        (self.folder / "programs.tar.xz").unlink()
        if not importlib.util.find_spec("torch"):
            self.refused(["c"], "has no torch", 4)

    def test_help(self):
        done = self.native("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        for wanted in ("native.sh attention    a", "--budget SECONDS", "Changes no GPU settings"):
            self.assertIn(wanted, done.stdout)

    def test_an_archive_without_base_is_unpacked_once(self):
        with tarfile.open(self.folder / "programs.tar.xz", "w:xz", preset=0) as packed:
            packed.add(self.bin / "tprimat", "./tprimat")
        first = provide.unpack(self.folder / "programs.tar.xz")
        (first / "mark").touch()
        self.assertTrue((provide.unpack(self.folder / "programs.tar.xz") / "mark").is_file())
        self.assertEqual(len(list(self.folder.glob("unpack*"))), 1)


class Resumed(Folder):
    def test_results_of_another_device_are_moved_aside(self):
        self.ask("attention", device_name=H200)
        self.started()
        _, part, printed = self.ask("attention", device_name="cpu")
        self.assertIn("was measured on NVIDIA H200, this device is cpu; starting over", printed)
        self.assertIn("a_attention.json is kept as a_attention_1.json", printed)
        self.assertEqual(len(part["calls"]), 1)
        self.assertEqual(json.loads((self.folder / "out/a_attention_1.json").read_text())["device"], H200)
        self.assertEqual(len(list((self.folder / "out").glob("a_attention_logs*.tar.gz"))), 2)
        self.assertEqual(self.ask("parity", device_name=H200)[2].count("attention:"), 0)  # nor in its table

    def test_malformed_parts_are_kept_and_said(self):
        out = self.folder / "out"
        out.mkdir()
        for text in ('{"call": "attention", "rev', "[]", '{"call": "attention", "tests": [1]}'):
            (out / "a_attention.json").write_text(text)
            (out / "b_step.json").write_text(text)
            status, _, printed = self.ask("attention")
            self.assertEqual(status, 0)
            self.assertIn("a_attention.json cannot be read as results; starting over", printed)
            self.assertIn("b_step.json cannot be read as results and is ignored", (out / "table.txt").read_text())
        self.assertTrue((out / "a_attention_3.json").is_file())

    def test_again_keeps_the_earlier_results(self):
        self.ask("attention")
        self.ask("attention", again=True)
        self.assertTrue((self.folder / "out/a_attention_1.json").is_file())

    def test_a_table_that_cannot_be_made_ends_nothing(self):
        self.assertIn("step: cannot be shown: KeyError", table.render([{"call": "step", "device": "x"}]))
        self.assertIsNone(table.ratio([{"seconds": [1.0]}], [{"seconds": [0.0]}]))

    def test_a_doctor_of_another_shape(self):
        write_program(self.bin / "tprimat", "#!/bin/sh\necho '{\"findings\": 3}'\n")
        status, part, _ = self.ask("attention")
        self.assertEqual((status, part["open"]), (1, ["tprimat doctor printed no findings"]))


class Devices(Folder):
    def test_losses_that_are_none_fail(self):
        good = {"losses": [1.0, 2.0]}
        self.assertEqual(comparison.judge_losses(good, good, 1e-4)[0], "passed")
        for wrong in ([1.0], [1.0, None], [1.0, float("nan")]):
            outcome, sentence = comparison.judge_losses(good, {"losses": wrong}, 1e-4)
            self.assertEqual(outcome, "failed")
            self.assertRegex(sentence, "not finite|recorded 2 losses, the device 1")

    def test_attention_without_cudnn_stays_open(self):
        trainer = self.bin / "tprimat"
        trainer.write_text(trainer.read_text().replace("attention cudnn", "attention own"))
        _, part, printed = self.ask("step", device_name=H200)
        self.assertIn("tiny:64x2:masters native: attention did not run on cuDNN: own", part["open"])
        self.assertIn("attention not on cuDNN", printed)
        self.assertNotIn("cuDNN", " ".join(self.ask("step", device="cpu", device_name="cpu")[1]["open"]))

    def test_fp8_has_no_peak_of_bf16(self):
        run = {"seconds": [1.0], "setting": {}}
        cell = {"model": "tiny", "sequence_length": 64, "sequences": 2, "formats": "bf16", "tokens": 128,
                "runs": {"native-fp8": [run]}}
        row = next(table.rows_of(cell, {"tiny": TINY}, {"flops": 1e12, "bandwidth": 1e12}))
        self.assertEqual((row["mfu"], row["time_over_floor"]), (None, None))

    def test_the_card_is_sampled(self):
        smi = write_program(self.folder / "smi/nvidia-smi", NVIDIA_SMI)
        with mock.patch.dict(os.environ, {"PATH": f"{smi.parent}:{os.environ['PATH']}"}):
            self.assertEqual(card.name_device(), H200)
            path = self.folder / "gpu.csv"
            with card.Sampler(path, H200):
                end = time.monotonic() + 20
                while not card.read_samples(path) and time.monotonic() < end:
                    time.sleep(0.05)
        self.assertEqual(card.read_samples(path)[0]["clocks.sm"], 1755.0)


class Endings(Native):
    def begin(self):
        """A call whose tests hang."""
        for path in self.tests:
            path.write_text(f"#!/bin/sh\necho $$ >{self.folder}/child\nexec sleep 60\n")
        call = subprocess.Popen([sys.executable, SOURCE / "bench/device/measure.py", "a"], cwd=self.folder,
                                env={**os.environ, "OUT": "out", "PROGRAMS": "bin", "PYTHON": sys.executable},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(call.wait)
        self.addCleanup(call.kill)
        child = self.folder / "child"
        self.wait_until(lambda: child.is_file() and child.read_text().strip())
        return call, int(child.read_text())

    def wait_until(self, holds):
        end = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def lives(self, process):
        try:
            with open(f"/proc/{process}/stat") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_signals_end_a_call_with_its_children(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL):
            call, child = self.begin()
            call.send_signal(number)
            status = call.wait(30)
            self.assertEqual(status, -number if number == signal.SIGKILL else 128 + number)
            self.wait_until(lambda: not self.lives(child))
            (self.folder / "child").unlink()
        self.assertEqual(len(list((self.folder / "out").glob("a_attention_logs*.tar.gz"))), 2)

    def test_two_calls_do_not_share_a_folder(self):
        call, _ = self.begin()
        done = self.native("a")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"process {call.pid} writes its results to", done.stderr)

    def test_a_slice_that_hangs_leaves_time_to_the_others(self):
        write_program(self.bin / "gpu_tests", "#!/bin/sh\nsleep 60\n")
        with mock.patch.object(gpu_tests, "NEEDED", 0.1):
            _, part, _ = self.ask("attention", budget=6)
        outcomes = {each["name"]: each["outcome"] for each in part["tests"]}
        self.assertEqual(list(outcomes.values()), ["no time", "no time", "passed"])
        with mock.patch.object(gpu_tests, "NEEDED", 0.1):
            self.started()
            self.ask("attention", budget=1)
        self.assertEqual(self.started()[1:], [])  # what passed is not repeated

    def test_long_output_loses_its_middle(self):
        with mock.patch.object(programs, "KEPT", 100):
            done = programs.run(["seq", "100000"], self.folder / "log", 20)
        self.assertIn("bytes left out", done.output)
        self.assertTrue(done.output.startswith("1\n") and done.output.endswith("100000\n"))
        self.assertLess((self.folder / "log.out").stat().st_size, 300)

    def test_the_chosen_python_wins(self):
        with mock.patch.dict(os.environ, {"VIRTUAL_ENV": "/mine", "PYTHON": sys.executable}):
            self.assertEqual(programs.Programs(self.bin).environment["VIRTUAL_ENV"], sys.prefix)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
