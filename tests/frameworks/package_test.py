#!/usr/bin/env python3
"""The package tprimat without PyTorch: step records, load_config against the program, installation.

  package_test.py TPRIMAT
"""

import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import types
import unittest
from unittest import mock

import paths
from tprimat import StepRecorder, load_config

ENDLESS = """
from tprimat import StepRecorder
recorder = StepRecorder(tokens_per_step=7, path="steps.jsonl")
while True:
    recorder.end_step(loss=1.25, learning_rate=0.5, grad_norm=2.0)
"""


class InFolder(unittest.TestCase):
    """Each test runs in an empty folder."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = pathlib.Path(temporary.name).resolve()
        os.chdir(self.folder)

    def program(self, *words):
        return subprocess.run([os.environ["TPRIMAT_PROGRAM"], *map(str, words)], capture_output=True, text=True)


class StepRecords(InFolder):
    def test_each_record_is_whole_at_once(self):
        recorder = StepRecorder(tokens_per_step=512)
        for step in range(1, 6):
            recorder.end_step(loss=3.5 / step, learning_rate=1e-3, grad_norm=0.25)
            records = paths.read_records("steps.jsonl")
            self.assertEqual([record["step"] for record in records], list(range(1, step + 1)))
        self.assertEqual({key: records[1][key] for key in ("loss", "learning_rate", "grad_norm", "tokens")},
                         {"loss": 1.75, "learning_rate": 1e-3, "grad_norm": 0.25, "tokens": 512})

    def test_a_killed_script_leaves_whole_records(self):
        child = subprocess.Popen([sys.executable, "-c", ENDLESS], env={**os.environ, "PYTHONPATH": str(paths.SOURCES)})
        end = time.monotonic() + 30
        while not (pathlib.Path("steps.jsonl").exists() and os.path.getsize("steps.jsonl") > 20000):
            self.assertLess(time.monotonic(), end, "nothing was written")
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
        records = paths.read_records("steps.jsonl")
        self.assertEqual([record["step"] for record in records], list(range(1, len(records) + 1)))

    def test_times_are_those_of_the_steps(self):
        start = time.perf_counter()
        recorder = StepRecorder()
        for _ in range(3):
            time.sleep(0.02)
            recorder.end_step()
        time.sleep(0.5)
        recorder.begin()  # a pause is no part of a step
        recorder.end_step()
        records = paths.read_records("steps.jsonl")
        times = [record["time_seconds"] for record in records]
        self.assertTrue(all(seconds >= 0.02 for seconds in times[:3]), times)
        self.assertLess(times[3], 0.5)
        self.assertLess(sum(times), time.perf_counter() - start - 0.5)
        ends = [record["unix_time"] for record in records]
        self.assertEqual(ends, sorted(ends))

    def test_figures_become_what_the_program_reads(self):
        recorder = StepRecorder(path="mine.jsonl")
        recorder.end_step(3, loss=float("nan"), grad_norm=None, skipped=True, tokens=40)
        recorder.end_step(loss=2, loss_scale=4096.0)
        first, second = paths.read_records("mine.jsonl")
        self.assertEqual((first["step"], second["step"]), (3, 4))
        self.assertIsNone(first["loss"])
        self.assertNotIn("grad_norm", first)
        self.assertIs(first["skipped"], True)
        self.assertEqual((first["tokens"], second["loss_scale"]), (40, 4096.0))
        self.assertNotIn("memory_allocated_gb", first)  # nobody counted it
        with self.assertRaisesRegex(TypeError, "a step has no losss; it has loss, "):
            recorder.end_step(losss=1.0)

    def test_where_records_go(self):
        StepRecorder(path="mine.jsonl").end_step(loss=1.0)
        StepRecorder(path="mine.jsonl").end_step(loss=2.0)
        self.assertEqual(paths.read_records("mine.jsonl")[0]["loss"], 2.0)
        self.assertEqual(paths.read_records("mine.jsonl.before")[0]["loss"], 1.0)
        with mock.patch.dict(os.environ, TPRIMAT_STEPS="suite.jsonl"):
            StepRecorder(path="other.jsonl").end_step(loss=3.0)
            StepRecorder().end_step(loss=4.0)  # one that was started again
        self.assertEqual([record["loss"] for record in paths.read_records("suite.jsonl")], [3.0, 4.0])
        self.assertFalse(pathlib.Path("other.jsonl").exists())

    def test_only_the_first_rank_writes(self):
        for name, rank, written in (("RANK", "1", False), ("SLURM_PROCID", "2", False), ("RANK", "0", True)):
            with mock.patch.dict(os.environ, {name: rank}):
                self.assertEqual(StepRecorder().end_step(loss=1.0)["step"], 1)
                self.assertEqual(pathlib.Path("steps.jsonl").exists(), written)

    def test_extract_makes_a_result_of_them(self):
        recorder = StepRecorder(tokens_per_step=1000)
        for step in range(1, 13):
            time.sleep(0.005)
            recorder.end_step(loss=5.0 - 0.1 * step, learning_rate=1e-4 * step, grad_norm=1.0)
        done = self.program("extract", "steps.jsonl", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        records = paths.read_records("steps.jsonl")
        self.assertEqual(result["loss_values"], [record["loss"] for record in records])
        self.assertEqual(result["learning_rates"], [record["learning_rate"] for record in records])
        self.assertEqual(result["training_config"]["tokens_per_step"], 1000)
        for measured, record in zip(result["step_times"], records, strict=True):
            self.assertAlmostEqual(measured, record["time_seconds"], places=9)

    def test_extract_sees_the_updates_that_were_left_out(self):
        recorder = StepRecorder(tokens_per_step=1000)
        for step in range(1, 9):
            time.sleep(0.005)
            over = step <= 2
            recorder.end_step(loss=5.0, grad_norm=float("nan") if over else 1.0, loss_scale=max(2.0**(6 - step), 8.0),
                              skipped=over or None)
        result = json.loads(self.program("extract", "steps.jsonl", "--json").stdout)
        events = [(event["kind"], event["step"]) for event in result["events"]]
        self.assertEqual(events, [("skipped_update", 1), ("skipped_update", 2)])
        self.assertEqual(result["reported"]["loss_scale"], [32.0, 16.0] + [8.0] * 6)
        self.assertEqual(result["status"], "complete")


class Numbers(list):
    """As much of a tensor as memory needs."""

    def __truediv__(self, divisor):
        return Numbers(number / divisor for number in self)

    def tolist(self):
        return list(self)


class StandInGpu(InFolder):
    """A stand-in for PyTorch with a GPU and another rank, which holds more: what is waited for and what is shared."""

    def setUp(self):
        super().setUp()
        self.calls = []
        cuda = types.SimpleNamespace(is_available=lambda: True, current_device=lambda: 0, synchronize=self.synchronize,
                                     max_memory_allocated=lambda device: 2e9, max_memory_reserved=lambda device: 7e9)
        self.ranks = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: self.together,
                                           get_rank=lambda: 0, all_reduce=self.all_reduce,
                                           ReduceOp=types.SimpleNamespace(MAX="max"))
        torch = types.SimpleNamespace(cuda=cuda, distributed=self.ranks, float64="float64",
                                      device=lambda kind, index=0: types.SimpleNamespace(type=kind, index=index),
                                      tensor=lambda numbers, dtype, device: Numbers(numbers))
        change = mock.patch.dict(sys.modules, torch=torch)
        change.start()
        self.addCleanup(change.stop)

    def synchronize(self, device):
        time.sleep(0.02)  # the GPU still works
        self.calls.append("synchronize")

    def all_reduce(self, numbers, op):
        time.sleep(0.5)  # ranks wait for one another, outside the step
        self.calls.append(f"all_reduce {op}")
        numbers[:] = [max(pair) for pair in zip(numbers, [3e9, 5e9])]

    def record_two(self, together):
        self.together = together
        recorder = StepRecorder()
        self.calls.clear()
        return [recorder.end_step(loss=1.0) for _ in range(2)]

    def test_memory_is_that_of_the_rank_that_holds_most(self):
        records = self.record_two(together=True)
        self.assertEqual(self.calls, ["synchronize", "all_reduce max"] * 2)
        self.assertEqual((records[1]["memory_allocated_gb"], records[1]["memory_reserved_gb"]), (3.0, 7.0))
        self.assertTrue(all(0.02 <= record["time_seconds"] < 0.5 for record in records), records)

    def test_alone_it_is_ones_own(self):
        records = self.record_two(together=False)
        self.assertEqual(self.calls, ["synchronize"] * 2)
        self.assertEqual((records[1]["memory_allocated_gb"], records[1]["memory_reserved_gb"]), (2.0, 7.0))


class Documentation(InFolder):
    def test_the_three_lines_of_the_page_run(self):
        page = (paths.HERE.parent.parent / "docs" / "frameworks.md").read_text(encoding="utf-8")
        code = page.split("## Your own script")[1].split("```python\n")[1].split("```")[0]
        exec(code, {"batch": 4, "length": 8, "steps": 3, "train_step": lambda step: (3.0 / step, 0.5, 1.0)})
        records = paths.read_records("steps.jsonl")
        self.assertEqual([(record["step"], record["loss"], record["tokens"]) for record in records],
                         [(1, 3.0, 32), (2, 1.5, 32), (3, 1.0, 32)])
        words = shlex.split(page.split("tprimat extract steps.jsonl")[1].split("\n")[0])
        result = json.loads(self.program("extract", "steps.jsonl", *words, "--json").stdout)
        self.assertEqual((result["loss_values"], result["gpu_info"]["device_count"]), ([3.0, 1.5, 1.0], 8))


class Config(InFolder):
    def test_settings_have_dots(self):
        pathlib.Path("mine.yaml").write_text("training: {data: {seq_length: 512}, optimizer: {schedule: linear}}\n")
        config = load_config("mine.yaml")
        self.assertEqual(config.training.data.seq_length, 512)
        self.assertEqual(config["training"]["optimizer"].schedule, "linear")
        self.assertIs(config.experiment.profiling, False)  # the built-in default
        self.assertIsInstance(config.training.optimizer.learning_rate, float)
        with self.assertRaisesRegex(AttributeError, "there is no setting 'sequence'; there are: .*seq_length"):
            config.training.data.sequence

    def test_what_the_program_would_take_counts(self):
        default = load_config().training.data.seq_length
        pathlib.Path("config.yaml").write_text("training: {data: {seq_length: 384}}\n")
        self.assertNotEqual(default, 384)
        self.assertEqual(load_config().training.data.seq_length, 384)
        with mock.patch.dict(os.environ, CONFIG_TRAINING_DATA_SEQ_LENGTH="640"):
            self.assertEqual(load_config().training.data.seq_length, 640)

    def test_mistakes_are_told_in_the_programs_words(self):
        pathlib.Path("mine.yaml").write_text("training: {data: {sequence_len: 512}}\n")
        with self.assertRaisesRegex(ValueError, "mine.yaml:1:.*sequence_len"):
            load_config("mine.yaml")
        with mock.patch.dict(os.environ, TPRIMAT_PROGRAM="/nowhere/tprimat"):
            with self.assertRaisesRegex(ValueError, "there is no program /nowhere/tprimat"):
                load_config()


class Loss(float):
    def detach(self):
        return self


class LightningStandIn(InFolder):
    """Lightning's hooks in Lightning's order, from a stand-in for its Trainer; callbacks_test.py has the real one."""

    def setUp(self):
        super().setUp()
        module = types.ModuleType("pytorch_lightning")
        module.Callback = type("Callback", (), {})
        with mock.patch.dict(sys.modules, {"pytorch_lightning": module, "lightning": None, "lightning.pytorch": None}):
            sys.modules.pop("tprimat.lightning", None)
            from tprimat.lightning import BenchmarkCallback
        self.assertTrue(issubclass(BenchmarkCallback, module.Callback))
        self.callback = BenchmarkCallback(tokens_per_step=64)
        self.addCleanup(self.callback.finish)  # before its folder is gone
        strategy = types.SimpleNamespace(root_device=None, reduce=lambda value, reduce_op: value)
        self.trainer = types.SimpleNamespace(strategy=strategy, global_step=0, callback_metrics={})
        self.optimizer = types.SimpleNamespace(param_groups=[{"lr": 0.5}])

    def run_batch(self, loss, updates):
        self.callback.on_train_batch_start(self.trainer, None, None, 0)
        if updates:
            self.callback.on_before_optimizer_step(self.trainer, None, self.optimizer)
            self.optimizer.param_groups[0]["lr"] /= 2  # a schedule moves on before the batch has ended
            self.trainer.global_step += 1
        self.callback.on_train_batch_end(self.trainer, None, {"loss": Loss(loss)}, None, 0)

    def test_accumulated_batches_are_one_step(self):
        self.trainer.accumulate_grad_batches = 2
        self.callback.on_train_start(self.trainer, None)
        for first, second in ((1.0, 2.0), (0.5, 1.5)):
            self.run_batch(first, False)
            self.run_batch(second, True)
        records = paths.read_records("steps.jsonl")
        self.assertEqual([(r["step"], r["loss"], r["learning_rate"], r["tokens"]) for r in records],
                         [(1, 3.0, 0.5, 64), (2, 2.0, 0.25, 64)])

    def test_a_script_accumulates_by_itself(self):
        self.trainer.accumulate_grad_batches = 1  # so Lightning divides no loss
        self.callback.on_train_start(self.trainer, None)
        for updates in (False, False, False, True):
            self.run_batch(2.0, updates)
        [record] = paths.read_records("steps.jsonl")
        self.assertEqual((record["loss"], record["tokens"]), (2.0, 64))

    def test_an_epoch_ends_in_the_middle_of_an_accumulation(self):
        self.trainer.accumulate_grad_batches = 4  # by which Lightning divides each loss
        self.callback.on_train_start(self.trainer, None)
        for updates in (False, False, False, True, False, True, False, False, False, True):
            self.run_batch(0.5, updates)
        records = paths.read_records("steps.jsonl")
        self.assertEqual([(record["loss"], record["tokens"]) for record in records], [(2.0, 64), (2.0, 32), (2.0, 64)])

    def test_nemos_loss_and_pauses(self):
        self.callback.on_train_start(self.trainer, None)
        self.trainer.callback_metrics = {"reduced_train_loss": 7.5, "grad_norm": 0.125}
        self.run_batch(1.0, True)
        self.callback.on_save_checkpoint(self.trainer, None, {})
        time.sleep(0.5)
        self.run_batch(1.0, True)
        records = paths.read_records("steps.jsonl")
        self.assertEqual((records[0]["loss"], records[0]["grad_norm"]), (7.5, 0.125))
        self.assertLess(records[1]["time_seconds"], 0.5)


    def test_nemos_layout_and_batch_are_in_the_result(self):
        class MegatronStrategy(types.SimpleNamespace):
            pass

        self.trainer.strategy = MegatronStrategy(
            root_device=None, reduce=lambda value, reduce_op: value, tensor_model_parallel_size=2,
            pipeline_model_parallel_size=1, context_parallel_size=1)
        self.trainer.datamodule = types.SimpleNamespace(micro_batch_size=1, global_batch_size=32, seq_length=2048)
        self.trainer.world_size, self.trainer.max_steps, self.trainer.precision = 8, 2, "bf16-mixed"
        self.trainer.optimizers, self.trainer.gradient_clip_val = [self.optimizer], 1.0
        self.callback = type(self.callback)(output_dir="results", model_name="llama")
        self.callback.on_train_start(self.trainer, None)
        self.run_batch(1.0, True)
        self.run_batch(1.0, True)
        self.callback.on_train_end(self.trainer, None)
        result = json.loads(pathlib.Path("results/train_unknown_nemo_llama.json").read_text(encoding="utf-8"))
        self.assertEqual((result["status"], result["framework"], result["precision"]), ("complete", "nemo", "bf16"))
        training, layout = result["training_config"], result["parallelism_config"]
        self.assertEqual((training["global_batch_size"], training["sequence_length"]), (32, 2048))
        self.assertEqual((layout["tensor_model_parallel_size"], layout["data_parallel_size"]), (2, 4))
        self.assertEqual(layout["gradient_accumulation_steps"], 8)
        self.assertEqual({record["tokens"] for record in paths.read_records("results/steps.jsonl")}, {32 * 2048})


class Installation(InFolder):
    def test_the_package_needs_no_other(self):
        project = tomllib.loads((paths.SOURCES / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.assertEqual(project["dependencies"], [])

    @unittest.skipUnless(all(map(importlib.util.find_spec, ("pip", "setuptools", "wheel"))), "one is missing: pip install pip setuptools wheel")
    def test_pip_installs_every_file(self):
        shutil.copytree(paths.SOURCES, "tree/python", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        shutil.copy(paths.SOURCES.parent / "CMakeLists.txt", "tree")
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-build-isolation",
                               "--target", "there", "./tree/python"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        expected = {path.relative_to("tree/python") for path in pathlib.Path("tree/python/tprimat").rglob("*")
                    if path.suffix in (".py", ".typed")}
        self.assertEqual(expected - {path.relative_to("there") for path in pathlib.Path("there").rglob("*")}, set())

    def test_an_adapter_has_all_that_it_imports(self):
        words = ("run", "--dry-run", "--json", "--platform", "cpu", "--framework", "fsdp", "--model", "llama")
        for file in json.loads(self.program(*words).stdout)[0]["files"]:
            name = file["path"].rpartition("/adapter/")[2]
            if name.startswith("tprimat/"):
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(file["content"], encoding="utf-8")
        code = "import tprimat.steps as steps; print(steps.StepRecorder().end_step(), steps)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(self.folder)})
        self.assertIn(str(self.folder / "tprimat" / "steps.py"), done.stdout, done.stderr)

    def test_nothing_else_is_imported(self):
        code = "import sys, tprimat; print([m for m in ('torch', 'transformers', 'lightning') if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(paths.SOURCES)})
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)


if __name__ == "__main__":
    paths.run_tests()
