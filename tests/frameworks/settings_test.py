#!/usr/bin/env python3
"""The adapters' effective settings are read back from the framework: what is changed behind an adapter's back shows in
its lines. Also the parts that no parity test sees: shapes of schedules, fp16's loss scale, recomputed attention.

  settings_test.py TPRIMAT
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import paths

sys.path.insert(0, str(paths.SOURCES.parent / "frameworks"))  # of the adapters

STEPS = 6
CONFIG = """
experiment: {methodology: single}
models:
  llama: {num_layers: 2, hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, num_key_value_heads: 2,
          head_dim: 16, vocab_size: 512, max_position_embeddings: 128}
training:
  data: {seq_length: 32, micro_batch_size: 2, global_batch_size: 4}
  duration: {max_steps: 6}
  optimizer: {learning_rate: 0.002, warmup_steps: 2, weight_decay: 0.1, clip_grad_norm: 1.5, schedule: linear}
  precision: {default: fp32, loss_scale: {initial: 1099511627776, window: 100, minimum: 17179869184}}
hardware: {platforms: {cpu: {num_gpus: 1}}}
"""
ASKED = {"max_steps": 6, "sequence_length": 32, "micro_batch_size": 2, "gradient_accumulation_steps": 2,
         "global_batch_size": 4, "num_gpus": 1, "data_parallel_size": 1, "tensor_model_parallel_size": 1,
         "pipeline_model_parallel_size": 1, "context_parallel_size": 1, "optimizer": "adamw", "learning_rate": 0.002,
         "min_learning_rate": 0.0002, "warmup_steps": 2, "schedule": "linear", "weight_decay": 0.1, "beta1": 0.9,
         "beta2": 0.95, "epsilon": 1e-08, "clip_grad_norm": 1.5, "precision": "fp32", "recompute": "none", "seed": 42}

# Another optimizer and another schedule than the experiment asks for, put in where the adapter cannot see it.
BEHIND_ITS_BACK = """
import runpy, sys, torch
import tprimat_adapter.model as models
from torch.optim.lr_scheduler import LambdaLR
def make_optimizer(model, optimizer):
    return torch.optim.AdamW(model.parameters(), lr=0.5, betas=(0.75, 0.5), eps=0.25, weight_decay=0.375)
models.make_optimizer = make_optimizer
models.make_schedule = lambda optimizer, experiment: LambdaLR(optimizer, lambda done: 1.0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
CHANGED = {"learning_rate": 0.5, "beta1": 0.75, "beta2": 0.5, "epsilon": 0.25, "weight_decay": 0.375,
           "schedule": "constant"}

# The Trainer and DeepSpeed refuse fp16 on a processor, but the arithmetic is there: without their refusal one sees what
# an adapter does on a GPU.
ALLOW_FP16 = """
import importlib.util, runpy, sys, torch, transformers
make_trainer = transformers.Trainer.__init__
def make_scaling_trainer(self, *words, **options):
    make_trainer(self, *words, **options)
    self.accelerator.native_amp, self.accelerator.scaler = True, torch.amp.GradScaler("cpu")
transformers.Trainer.__init__ = make_scaling_trainer
if importlib.util.find_spec("deepspeed"):
    from deepspeed.accelerator import get_accelerator
    type(get_accelerator()).is_fp16_supported = lambda self: True
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def read_settings(log):
    lines = [line.split(" ", 2) for line in log.splitlines() if line.startswith("setting ")]
    keys = [key for _, key, _ in lines]
    assert len(keys) == len(set(keys)), keys
    return {key: value for _, key, value in lines}


def explained_settings():
    page = (paths.HERE.parent.parent / "docs" / "frameworks.md").read_text(encoding="utf-8")
    table = page.split("## Settings that hold")[1].split("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row.split("|")[1])}


class Adapter(unittest.TestCase):
    """Runs an adapter as `tprimat run` writes it, on one rank."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        (self.folder / "config.yaml").write_text(CONFIG)

    def write_run(self, framework, options):
        words = ["run", "--config", "config.yaml", "--framework", framework, "--output", "output", "--dry-run",
                 "--json"]
        for key, value in options.items():
            words += ["--set", f"{key}={value}"]
        done = subprocess.run([os.environ["TPRIMAT_PROGRAM"], *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in json.loads(done.stdout)[0]["files"]:
            path = pathlib.Path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["content"])
        return path.parent

    def train(self, framework, options={}, code=None, precision=None, **environment):
        if framework == "deep" and paths.missing("deepspeed"):
            self.skipTest("deepspeed is not installed; get it with: pip install -r tests/parity/requirements.txt")
        adapter = self.write_run(framework, options)
        if precision:
            file = adapter.parent / "train_spec.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "precision": precision}))
        self.steps = self.folder / "steps.jsonl"
        self.steps.unlink(missing_ok=True)
        alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        script = [str(adapter / f"train_{framework}.py"), "--spec", str(adapter.parent / "train_spec.json")]
        command = [sys.executable, *(["-c", code] if code else []), *script]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, **({} if framework == "tran" else alone), "PYTHONPATH": str(adapter),
                                   "TPRIMAT_STEPS": str(self.steps), "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "2",
                                   "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        settings = read_settings(done.stdout)
        keys = {re.sub(r"_at_\d+$", "_at_<step>", key) for key in settings}
        self.assertEqual(keys - explained_settings(), set(), "docs/frameworks.md does not explain these")
        return settings

    def expect(self, settings, wanted):
        for key, value in wanted.items():
            told = settings.get(key)
            same = told is not None and (float(told) == value if isinstance(value, (int, float)) else told == value)
            self.assertTrue(same, f"{key}: {told} where {value} is true")


class EffectiveSettings(Adapter):
    def check(self, framework, zero_stage):
        settings = self.train(framework)
        self.expect(settings, {"framework": framework, "zero_stage": zero_stage, "attention": "sdpa_flash", **ASKED})
        self.assertEqual(int(settings["parameters"]), 2 * 512 * 64 + 64 + 2 * (64 * 64 * 3 + 3 * 64 * 160 + 2 * 64))
        rates = [record["learning_rate"] for record in paths.read_records(self.steps)]
        for step in (1, STEPS // 2, STEPS):
            self.assertAlmostEqual(float(settings[f"learning_rate_at_{step}"]), rates[step - 1], places=12)
        self.assertEqual(len(rates), STEPS)
        return [record["loss"] for record in paths.read_records(self.steps)]

    def check_changed(self, framework, zero_stage):
        options = {"training.precision.default": "bf16", "platform_optimizations.cpu.recompute": "full"}
        settings = self.train(framework, options, BEHIND_ITS_BACK)
        self.expect(settings, {**CHANGED, "precision": "bf16", "recompute": "full", "zero_stage": zero_stage})

    def test_tran(self):
        losses = self.check("tran", 0)
        self.check_changed("tran", 0)
        options = {"platform_optimizations.cpu.recompute": "selective"}
        settings = self.train("tran", options, TPRIMAT_FLASH_ATTENTION="off")
        self.expect(settings, {"attention": "eager", "recompute": "selective"})
        for record, loss in zip(paths.read_records(self.steps), losses, strict=True):
            self.assertAlmostEqual(record["loss"], loss, delta=1e-5 * loss)

    def test_fsdp(self):
        self.check("fsdp", 3)
        self.check_changed("fsdp", 3)

    def test_deep(self):
        self.check("deep", 0)
        self.check_changed("deep", 1)  # alone it adds up gradients in fp32 with ZeRO only

    def check_fp16(self, framework, **how):
        settings = self.train(framework, **how)
        self.expect(settings, {"precision": "fp16", "loss_scale.initial": 2**40, "loss_scale.window": 100,
                               "loss_scale.minimum": 2**34})
        records = paths.read_records(self.steps)
        self.assertEqual([record["loss_scale"] for record in records], [2.0**(40 - done) for done in range(STEPS)])
        self.assertEqual({record["skipped"] for record in records}, {True})
        self.assertEqual({record["learning_rate"] for record in records}, {0.001})  # that of the first update
        self.assertTrue(all("grad_norm" not in record for record in records))

    def test_fp16_of_fsdp(self):
        self.check_fp16("fsdp", options={"training.precision.default": "fp16"})

    def test_fp16_of_tran(self):
        self.check_fp16("tran", code=ALLOW_FP16, precision="fp16")

    def test_fp16_of_deep(self):
        self.check_fp16("deep", code=ALLOW_FP16, precision="fp16")


class Schedules(unittest.TestCase):
    def rates(self, schedule, warmup, steps=10, low=0.1):
        from tprimat_adapter.experiment import learning_rate_at
        chosen = types.SimpleNamespace(learning_rate=0.5, min_learning_rate=low, warmup_steps=warmup, schedule=schedule)
        return [learning_rate_at(chosen, step, steps) for step in range(1, steps + 1)]

    def recognise(self, rates):
        from tprimat_adapter.settings import recognise_shape
        return {key: value for key, value in recognise_shape(rates, 0.5).items() if value is not None}

    def test_shapes_are_recognised_by_their_rates(self):
        for schedule in ("linear", "cosine"):
            for warmup in (0, 1, 3):
                self.assertEqual(self.recognise(self.rates(schedule, warmup)),
                                 {"schedule": schedule, "warmup_steps": warmup, "min_learning_rate": 0.1})
        self.assertEqual(self.recognise(self.rates("constant", 3)), {"schedule": "constant", "warmup_steps": 3})
        long = self.rates("cosine", 0, steps=100000)
        self.assertEqual(self.recognise(long)["warmup_steps"], 0)

    def test_what_the_rates_leave_open_is_left_out(self):
        self.assertEqual(self.recognise(self.rates("constant", 1)), {"schedule": "constant"})  # a warm-up of 0 or 1
        self.assertNotIn("schedule", self.recognise(self.rates("cosine", 9)))  # one step after the warm-up
        self.assertEqual(self.recognise([0.5 / n for n in range(1, 8)])["schedule"], "other")


class InitialWeights(unittest.TestCase):
    def test_residual_products_start_smaller_as_in_the_native_trainer(self):
        from tprimat_adapter.model import make_model
        shape = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8, "hidden_size": 128,
                 "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 256}
        experiment = types.SimpleNamespace(seed=1, recompute="none", checkpoint=types.SimpleNamespace(initial_weights=""),
                                           optimizer=types.SimpleNamespace(master_weights=True))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "config.json").write_text(json.dumps(shape), encoding="utf-8")
            model = make_model(experiment, pathlib.Path(folder) / "train_spec.json")
        spread = {name: weight.std().item() for name, weight in model.named_parameters() if weight.ndim > 1}
        for name, value in spread.items():
            expected = 0.02 / 4 if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.02  # 4: root of 2 x 8
            self.assertAlmostEqual(value, expected, delta=0.05 * expected, msg=name)


class Attention(unittest.TestCase):
    def count_scores(self, model):
        """How many tensors with the shape of the scores are kept for the backward pass."""
        import torch
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
            loss = model(input_ids=torch.arange(24)[None], use_cache=False).logits.square().mean()
        loss.backward()
        return sum(shape[-2:] == (24, 24) for shape in kept), [p.grad.clone() for p in model.parameters()]

    def test_the_word_chooses_the_implementation(self):
        import torch
        from tprimat_adapter.attention import choose_implementation
        enabled = [torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.mem_efficient_sdp_enabled]
        for word, implementation in (("", None), ("off", "eager")):
            with mock.patch.dict(os.environ, TPRIMAT_FLASH_ATTENTION=word):
                self.assertEqual(choose_implementation(), implementation)
        self.assertTrue(all(kernel() for kernel in enabled))
        with mock.patch.dict(os.environ, TPRIMAT_FLASH_ATTENTION="yes"):
            with self.assertRaisesRegex(SystemExit, "TPRIMAT_FLASH_ATTENTION is 'yes'"):
                choose_implementation()
        self.addCleanup(torch.backends.cuda.enable_math_sdp, True)
        self.addCleanup(torch.backends.cuda.enable_mem_efficient_sdp, True)
        self.addCleanup(torch.backends.cuda.enable_cudnn_sdp, True)
        with mock.patch.dict(os.environ, TPRIMAT_FLASH_ATTENTION="on"):
            self.assertEqual(choose_implementation(), "sdpa")
        self.assertFalse(any(kernel() for kernel in enabled))

    def test_the_kernel_is_the_one_that_pytorch_picks(self):
        import torch
        from tprimat_adapter.attention import describe_attention
        config = types.SimpleNamespace(_attn_implementation="sdpa", num_attention_heads=4, num_key_value_heads=2,
                                       head_dim=16)
        model, cpu = types.SimpleNamespace(config=config), torch.device("cpu")
        ask = lambda: describe_attention(model, 64, torch.float32, cpu)
        self.assertEqual(ask(), "sdpa_flash")
        self.addCleanup(torch.backends.cuda.enable_flash_sdp, True)
        torch.backends.cuda.enable_flash_sdp(False)
        self.assertEqual(ask(), "sdpa_math")
        self.addCleanup(torch.backends.cuda.enable_math_sdp, True)
        torch.backends.cuda.enable_math_sdp(False)
        with self.assertRaisesRegex(SystemExit, "no flash attention for torch.float32, 4 heads of 16 on cpu"):
            ask()

    def test_the_core_is_not_kept_and_gradients_stay(self):
        import torch
        import transformers
        from tprimat_adapter.attention import recompute_attention
        config = transformers.LlamaConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2,
                                          num_attention_heads=4, num_key_value_heads=2, vocab_size=64)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").train()
        kept, gradients = self.count_scores(model)
        self.assertGreater(kept, 0)
        model.zero_grad()
        recompute_attention(model)
        kept, recomputed = self.count_scores(model)
        self.assertEqual(kept, 0)
        for one, other in zip(gradients, recomputed, strict=True):
            torch.testing.assert_close(one, other)


class LossScale(unittest.TestCase):
    def run_gradients(self, gradients, not_finite):
        import torch
        from tprimat_adapter.loss_scale import LossScaler
        chosen = types.SimpleNamespace(initial=8, window=2, minimum=4)
        experiment = types.SimpleNamespace(precision="fp16", loss_scale=chosen,
                                           anomalies=types.SimpleNamespace(not_finite=not_finite))
        scaler = LossScaler(experiment, torch.device("cpu"))
        weight = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([weight], lr=0.0)
        for gradient in gradients:
            scaler.scale(weight.sum() * gradient).backward()
            scaler.step(optimizer)
            scale = scaler.value
            scaler.update()
            yield scale, scaler.skipped
            optimizer.zero_grad()

    def test_the_scale_doubles_after_its_window_and_halves_down_to_its_minimum(self):
        inf = float("inf")
        self.assertEqual(list(self.run_gradients([1, 1, 1, inf, inf, inf, inf, 1], "skip")),
                         [(8, False), (8, False), (16, False), (16, True), (8, True), (4, True), (4, True), (4, False)])

    def test_an_overflow_at_the_minimum_ends_the_training(self):
        training = self.run_gradients([float("inf")] * 2, "stop")
        self.assertEqual(next(training), (8, True))
        with self.assertRaisesRegex(SystemExit, "overflows at the least loss scale, 4.0"):
            next(training)


if __name__ == "__main__":
    paths.run_tests_with("torch", "transformers", "accelerate")
