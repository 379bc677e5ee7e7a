#!/usr/bin/env python3
"""bench/device without a GPU: its counts against the program's, its choices with a peer that is made up, its tables;
calls_test.py, trouble_test.py and check_test.py beside it hold the tests of native.sh's calls and of check.sh.

usage: device_bench_test.py PROGRAM SOURCE_DIR [TEST...]
"""

import contextlib
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from stand_ins import NVIDIA_SMI, PROGRAM, SOURCE, TINY, Folder, write_program

import card
import comparison
import contenders
import gpu_tests
import parts
import programs
import roofline
import shapes
import table
import trainings

from calls_test import Peers, Script, Environment, Tests  # noqa: F401  unittest finds them here
from check_test import Check  # noqa: F401
from trouble_test import Devices, Endings, Inputs, Resumed  # noqa: F401

CONFIG = """
hardware: {platforms: {cpu: {gpu_model: auto, num_gpus: 1, framework: native}}}
models: {m: {name: "%s"}}
training:
  data: {seq_length: %d, micro_batch_size: %d, global_batch_size: %d}
  duration: {max_steps: 4}
  optimizer: {warmup_steps: 1}
"""


def tell(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


class Counts(unittest.TestCase):
    def test_parameters_and_flops_are_those_of_the_program(self):
        for model, length in (("llama3.1_8b", 8192), ("qwen2.5_7b", 2048), ("llama3.2_1b", 2048), ("gpt2", 1024)):
            told = json.loads(tell("estimate", "--flops", model, "--seq", str(length), "--json"))
            sizes = roofline.Sizes(shapes.read_model(model), length, 1)
            self.assertEqual(sizes.parameters, told["parameters"], model)
            flops = sum(part["forward"] + part["backward"] for part in told["parts"])
            self.assertAlmostEqual(roofline.model_flops(sizes) / sizes.tokens / flops, 1, 9, model)

    def test_memory_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.yaml"
            for model, length, rows in (("llama3.1_8b", 8192, 1), ("llama3.1_8b", 2048, 4), ("qwen2.5_7b", 2048, 2)):
                path.write_text(CONFIG % (model, length, rows, rows))
                for kind, formats in itertools.product(("none", "selective", "full"), trainings.FORMATS):
                    keys = [f"platform_optimizations.cpu.recompute={kind}",
                            f"training.optimizer.moments={'bf16' if formats == 'bf16' else 'fp32'}",
                            f"training.optimizer.master_weights={json.dumps(formats == 'masters')}"]
                    told = json.loads(tell("estimate", "--config", str(path), "--memory", "m", "--platform", "cpu",
                                           "--json", *(word for key in keys for word in ("--set", key))))
                    sizes = roofline.Sizes(shapes.read_model(model), length, rows)
                    counted = roofline.memory(sizes, kind, formats, 112 << 20)  # logits as on a processor
                    self.assertAlmostEqual(sum(counted.values()) / told[0]["memory_bytes"], 1, 4, (model, kind, formats))

    def test_operations_have_the_names_of_the_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = pathlib.Path(folder) / "spec.json"
            # In fp32: in bf16, a processor with AMX fuses SwiGLU into the products around it; the engine of a GPU does not.
            spec.write_text(json.dumps({"model": TINY, "sequence_length": 64, "micro_batch_size": 2,
                                        "global_batch_size": 2, "steps": 3, "precision": "fp32", "threads": 2}))
            lines = {line["operation"]: line for line in comparison.read_profile(tell("train", "--spec", spec, "--profile"))}
        wanted = {each.name: each for each in roofline.operations(roofline.Sizes(TINY, 64, 2))}
        self.assertEqual({name: lines[name]["calls"] for name in lines if name in wanted},
                         {name: each.calls for name, each in wanted.items()})

    def test_page_holds_what_the_script_prints(self):
        machine = shapes.read_machine("H200-SXM-141GB")
        text = roofline.render(shapes.read_model("llama3.1_8b"), machine, [(8192, 1), (2048, 4)])
        page = (SOURCE / "docs" / "gpu.md").read_text(encoding="utf-8")
        self.assertTrue(text in page, "put the output of bench/device/roofline.py into docs/gpu.md")


class Choices(Folder):
    def contender(self, name, outcomes):
        self.set_outcomes(outcomes)
        return contenders.make(self.options("peers"), trainings.parse_cell("tiny:64x2"), name)

    def tried(self, name, outcomes):
        peer = self.contender(name, outcomes)
        peer.take_up({}, None)
        with contextlib.redirect_stdout(io.StringIO()):
            peer.try_settings(lambda: None)
        return peer

    def test_fastest_setting_that_fits_is_taken(self):
        peer = self.tried("eager", {"cudnn whole no": {"seconds": [2, 2, 9]}, "flash chunked no": {"seconds": [1, 1, 8]}})
        self.assertEqual(peer.setting, {"attention": "flash", "loss": "chunked", "compile": "no"})
        self.assertEqual(len(peer.tried), 4)
        self.assertEqual(peer.run()["seconds"], [1, 1, 8])

    def test_recomputation_only_where_nothing_else_fits(self):
        peer = self.tried("hf", {"cudnn no 1": {"seconds": [3]}, "flash no 1": {"seconds": [4]}})
        self.assertEqual(peer.setting, {"attention": "cudnn", "compile": "no", "checkpoint": 1})

    def test_what_never_fits_is_said(self):
        self.assertIn("out of memory", self.tried("hf", {}).run()["failed"])

    def test_program_that_hangs_is_stopped(self):
        done = programs.run(["sleep", "60"], self.folder / "log", 0.2)
        self.assertIsNone(done.status)
        self.assertIn("ran out of time", done.failure())
        self.assertLess(done.seconds, 20)

    def test_memory_that_is_missing_is_recognised(self):
        self.assertTrue(trainings.out_of_memory("the training needs 144.5 GB of memory and NVIDIA H200 has 139.8 GB left"))
        self.assertFalse(trainings.out_of_memory("exit status 2: spec.json: unknown key"))
        self.assertFalse(trainings.out_of_memory(None))


class Tables(unittest.TestCase):
    def results(self, device):
        def run(*seconds):
            return {"seconds": list(seconds), "allocated_bytes": 50e9, "setting": {"attention": "cudnn", "checkpoint": 0},
                    "card": {"sm_mhz": 1700.0, "watts": 650.0}}
        cell = {"model": "llama3.1_8b", "sequence_length": 8192, "sequences": 1, "formats": "bf16", "tokens": 8192,
                "runs": {"eager": [run(0.9, 1.0, 1.1), run(1.6, 1.6, 9.0)],
                         "native": [run(0.8, 0.8, 0.8), run(0.8, 0.8, 0.9)]},
                "left_out": {"hf": "out of memory"}}
        operations = {"model": "llama3.1_8b", "sequence_length": 8192, "sequences": 1, "formats": "bf16",
                      "profile": [{"operation": "AdamW", "calls": 1, "ms": 31.5}],
                      "ops": [{"operation": "head forward", "seconds": {"cuBLAS": 0.012, "cuBLASLt": 0.011}},
                              {"operation": "attention forward", "seconds": {"failed": "cudnn: no"}},
                              {"operation": "peak of products", "seconds": {"FLOP/s": 780e12}}]}
        return {"call": "step", "device": device, "date": "today", "revision": "abc", "trainings": [cell],
                "operations": [operations],
                "tests": [{"name": "gpu_tests", "outcome": "passed", "seconds": 3.0, "detail": "9 passed"}],
                "failed": {"peers": "because"}}

    def test_the_attention_that_ran_stands_with_the_settings(self):
        asked = {"setting": {"recompute": "selective"}, "attention": "cudnn forward, own backward"}
        self.assertEqual(table.setting_text(table.setting_of(asked)), "selective cudnn forward, own backward")
        self.assertEqual(table.setting_of({"setting": {"recompute": "none"}, "attention": None}), {"recompute": "none"})
        self.assertIsNone(table.setting_of({}))

    def test_training_rows(self):
        found = self.results("NVIDIA H200, 580.1, 143771 MiB")
        machine = shapes.find_machine("NVIDIA H200")
        native, eager = table.rows_of(found["trainings"][0], {}, machine)
        self.assertEqual((native["contender"], eager["contender"]), ("native", "eager"))
        self.assertAlmostEqual(native["step_ms"], 800)
        self.assertAlmostEqual(eager["step_ms"], 1300)  # the middle of 1000 and 1600
        self.assertAlmostEqual(eager["time_over_native"], (1 / 0.8 + 1.6 / 0.8) / 2)
        self.assertAlmostEqual(native["tokens_per_second"], 8192 / 0.8)
        self.assertAlmostEqual(native["mfu"], 8192 * 51470401536 / 0.8 / 989e12)

    def test_whole_text(self):
        text = table.render([self.results("NVIDIA H200, 580.1, 143771 MiB")])
        for wanted in ("gpu_tests", "left out: llama3.1_8b 8192x1 hf: out of memory", "failed: peers: because",
                       "peak of products: 780.00 TFLOP/s"):
            self.assertIn(wanted, text)
        lines = {line[:34].strip(): line[34:].split() for line in text.splitlines()}
        self.assertEqual(lines["AdamW"], ["26.77", "31.50"])
        self.assertEqual(lines["head forward"], ["8.70", "11.00", "cuBLASLt"])
        self.assertEqual(lines["attention forward"], ["17.79"])

    def test_unknown_card_has_no_floors(self):
        found = self.results("Some Card 3000, 1, 2")
        self.assertIsNone(next(table.rows_of(found["trainings"][0], {}, shapes.find_machine("Some Card 3000")))["mfu"])
        self.assertNotIn("%", table.render([found]))

    def test_clocks_of_busy_moments(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gpu.csv"
            line = "2026/01/02 03:04:{:02d}.500, {} MHz, 3201 MHz, {} W, 40, {} %, 1000 MiB, 0x0\n"
            path.write_text("".join(line.format(*each) for each in ((1, 300, 90, 0), (2, 1700, 600, 99), (3, 1800, 640, 98)))
                            + "2026/01/02 03:04:04.000, torn")
            samples = card.read_samples(path)
            begin = card.seconds_of("2026/01/02 03:04:00.000")
            self.assertEqual(card.summarise(samples, begin, 10)["sm_mhz"], 1750)
            self.assertEqual(card.summarise(samples, begin, 2.6)["watts"], 600)
            self.assertEqual(card.summarise(samples, begin + 60, 10), {})

    def test_outcomes_of_tests(self):
        def done(status, output):
            return programs.Done(status, output, "", 0, 1)
        self.assertEqual(gpu_tests.judge(done(0, "[  PASSED  ] 12 tests.")), "passed")
        self.assertEqual(gpu_tests.judge(done(0, "[  PASSED  ] 0 tests.")), "failed")
        self.assertEqual(gpu_tests.judge(done(0, "skipped: this process sees no GPU\n")), "skipped")
        self.assertEqual(gpu_tests.judge(done(86, "[  PASSED  ] 12 tests.")), "failed")
        late = programs.Done(None, "[       OK ] Op.One (3 ms)\n[ RUN      ] Op.Two\n", "", 0, 5, True)
        self.assertEqual(gpu_tests.judge(late), "no time")
        self.assertIn("1 passed", gpu_tests.describe(late))
        self.assertIn("Op.Sum", gpu_tests.describe(done(1, "[  FAILED  ] Op.Sum\n[  PASSED  ] 3 tests.")))


class OnTheProcessor(Folder):
    """The calls that need no GPU, with the program itself."""

    def native(self, call):
        (self.folder / "shapes.json").write_text(json.dumps({"tiny": TINY}))
        smi = write_program(self.folder / "smi/nvidia-smi", NVIDIA_SMI)
        return subprocess.run(
            [SOURCE / "bench/device/native.sh", call, "--device", "cpu", "--again", "--cells", "tiny:64x2",
             "tiny:64x2:bf16", "--shapes", self.folder / "shapes.json", "--rounds", "2", "--steps", "2"],
            env={**os.environ, "OUT": str(self.folder / "out"), "PROGRAMS": str(PROGRAM.parent), "PYTHON": sys.executable,
                 "PATH": f"{smi.parent}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=250)

    def test_step_and_parity(self):
        for call in ("step", "parity"):
            done = self.native(call)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (step, parity), notes = parts.present([self.folder / "out"])
        self.assertEqual(notes, [])
        self.assertEqual({each["name"]: each["outcome"] for each in parity["tests"]},
                         {f"losses match the CPU's, {kind}": "passed" for kind in ("fp32", "bf16")})
        masters, short = step["trainings"]
        self.assertEqual([len(cell["runs"]["native"]) for cell in (masters, short)], [2, 2])
        self.assertEqual(step["device"], "cpu")  # the card beside it is not sampled
        self.assertLess(short["runs"]["native"][0]["allocated_bytes"], masters["runs"]["native"][0]["allocated_bytes"])
        self.assertIn("AdamW", [line["operation"] for line in step["operations"][0]["profile"]])
        self.assertEqual((self.folder / "out/table.txt").read_text(), table.render([step, parity]))
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()},
                         {"table.txt", *(f"{name}{end}" for name in ("b_step", "d_parity")
                                         for end in (".json", "_logs.tar.gz"))})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
