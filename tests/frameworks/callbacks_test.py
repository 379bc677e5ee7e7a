#!/usr/bin/env python3
"""The package tprimat in real trainings: a plain loop on two ranks, the Trainers of Transformers and of Lightning, and
its installation by pip. Lightning's part is skipped where it is not installed; package_test.py goes through its hooks.

  callbacks_test.py TPRIMAT
"""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import paths

PLAIN_LOOP = """
import torch, torch.distributed as dist
from tprimat import StepRecorder

dist.init_process_group("gloo")
model = torch.nn.Linear(8, 1)
torch.nn.init.ones_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
recorder = StepRecorder(tokens_per_step=16)
for step in range(4):
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recorder.end_step(loss=loss, learning_rate=optimizer.param_groups[0]["lr"], grad_norm=norm)
dist.destroy_process_group()
"""


class Numbers:
    """A data set of 32 rows x, 2x."""

    def __len__(self):
        return 32

    def __getitem__(self, n):
        import torch
        return {"x": torch.full((4,), n / 32), "labels": torch.tensor([n / 16])}


def make_model():
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}

    return Model()


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.steps = self.folder / "steps.jsonl"


class PlainLoop(InFolder):
    def test_two_ranks_write_one_file(self):
        (self.folder / "train.py").write_text(PLAIN_LOOP)
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        done = subprocess.run([*torchrun, "train.py"], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(paths.SOURCES), "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        records = paths.read_records(self.steps)
        self.assertEqual([record["step"] for record in records], [1, 2, 3, 4])
        self.assertEqual({record["learning_rate"] for record in records}, {0.125})
        self.assertTrue(all(record["grad_norm"] > 0 for record in records))
        self.assertLess(records[3]["loss"], records[0]["loss"])


class HuggingFace(InFolder):
    def train(self, fails_at=None, tokens_per_step=128, **arguments):
        import transformers
        from tprimat.hugging_face import BenchmarkCallback

        class Trainer(transformers.Trainer):
            def compute_loss(self, *words, **options):
                loss = super().compute_loss(*words, **options)
                return loss * float("nan") if self.state.global_step + 1 == fails_at else loss

        settings = transformers.TrainingArguments(
            output_dir=str(self.folder / "output"), max_steps=6, learning_rate=0.5, lr_scheduler_type="linear",
            report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
            **{"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, **arguments})
        trainer = Trainer(model=make_model(), args=settings, train_dataset=Numbers(),
                          callbacks=[BenchmarkCallback(tokens_per_step=tokens_per_step, path=self.steps)])
        trainer.train()
        return trainer.state.log_history, paths.read_records(self.steps)

    def test_records_hold_what_the_trainer_logged(self):
        history, records = self.train(logging_steps=1)
        logged = [entry for entry in history if "loss" in entry]
        self.assertEqual([record["step"] for record in records], [1, 2, 3, 4, 5, 6])
        for figure in ("loss", "grad_norm"):
            self.assertEqual([record[figure] for record in records], [entry[figure] for entry in logged])
        rates = [0.5 * (6 - done) / 6 for done in range(6)]  # of each step's own update
        for record, rate in zip(records, rates, strict=True):
            self.assertAlmostEqual(record["learning_rate"], rate, places=12)
        self.assertEqual({record["tokens"] for record in records}, {128})
        self.assertTrue(all(record["time_seconds"] > 0 for record in records))

    def test_a_mean_over_steps_is_no_loss_of_a_step(self):
        _, records = self.train(logging_steps=3)
        self.assertEqual([record["step"] for record in records], [1, 2, 3, 4, 5, 6])
        self.assertTrue(all("loss" not in record for record in records))
        self.assertEqual(["grad_norm" in record for record in records], [False, False, True] * 2)
        self.assertTrue(all("learning_rate" in record for record in records))

    def test_the_last_step_of_an_epoch_has_fewer_tokens(self):
        for options in ({"gradient_accumulation_steps": 3},
                        {"gradient_accumulation_steps": 1, "per_device_train_batch_size": 12}):
            _, records = self.train(tokens_per_step=192, logging_steps=1, **options)
            self.assertEqual([record["tokens"] for record in records], [192, 192, 128] * 2)
            [path] = self.folder.glob("train_*_tran_model.json")
            self.assertNotIn("tokens_per_second", json.loads(path.read_text(encoding="utf-8"))["performance_metrics"])

    def test_the_mean_of_an_epoch_is_no_loss_of_a_step(self):
        _, records = self.train(logging_strategy="epoch", logging_steps=1)
        self.assertEqual([record["step"] for record in records], [1, 2, 3, 4, 5, 6])
        self.assertTrue(all("loss" not in record for record in records))

    def test_a_training_that_diverges_is_not_complete(self):
        history, records = self.train(logging_steps=1, fails_at=3)
        self.assertEqual([record["loss"] is None for record in records], [False] * 2 + [True] * 4)
        [path] = self.folder.glob("train_*_tran_model.json")
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((result["status"], result["status_reason"]),
                         ("invalid", "the loss is not a number from step 3 on"))

    def test_a_training_that_diverges_between_two_logs_is_not_complete(self):
        for fails_at, told in ((2, [4, 6]), (5, [6])):  # after the last log, the mean of the whole training tells
            _, records = self.train(logging_steps=4, fails_at=fails_at)
            self.assertEqual([record["step"] for record in records if "loss" in record], told)
            [path] = self.folder.glob("train_*_tran_model.json")
            result = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual((result["status"], result["status_reason"]),
                             ("invalid", f"the loss is not a number from step {told[0]} on"))

    def test_the_pages_example_writes_a_result(self):
        page = (paths.HERE.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        exec(page.split("## Results from a callback")[1].split("```python\n")[1].split("```")[0], {})
        [path] = pathlib.Path("output").glob("train_*_tran_llama.json")
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((result["status"], len(result["step_times"])), ("complete", 20))
        training = result["training_config"]
        facts = {"schedule": "linear", "warmup_steps": 0, "optimizer": "adamw", "learning_rate": 5e-5, "max_steps": 20}
        self.assertEqual({key: training[key] for key in facts}, facts)
        self.assertIn(result["precision"], ("fp32", "tf32"))
        done = paths.run_program("extract", "output/steps.jsonl", "--json", "--output", "x.json")
        rate = json.loads(done.stdout)["performance_metrics"]["tokens_per_second"]
        self.assertEqual(result["performance_metrics"]["tokens_per_second"], rate)
        compared = json.loads(paths.run_program("compare", "output", "--json").stdout)
        codes = [finding["code"] for finding in compared["groups"][0]["contenders"][0]["findings"]]
        self.assertEqual([code for code in codes if "contradict" in code or "missing" in code], [])
        self.assertGreater(result["derived"]["flops_per_token"]["causal/1"], 0)

    def test_shapes_are_those_of_the_models(self):
        import transformers
        from tprimat.model_facts import describe_model
        for kind, sizes in (("Qwen2Config", {}), ("Qwen3Config", {"head_dim": 16}), ("MistralConfig", {})):
            config = getattr(transformers, kind)(hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                                                 num_attention_heads=4, num_key_value_heads=2, vocab_size=128, **sizes)
            self.check_count(transformers.AutoModelForCausalLM.from_config(config), describe_model)
        sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
                 "num_key_value_heads": 4, "vocab_size": 128}
        routed = {"moe_intermediate_size": 24, "num_experts_per_tok": 2}
        latent = {"q_lora_rank": 16, "kv_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6}
        for config in (transformers.MixtralConfig(**sizes, num_local_experts=4),
                       transformers.Qwen3MoeConfig(**sizes, **routed, num_experts=8, head_dim=8),
                       transformers.Qwen2MoeConfig(**sizes, **routed, num_experts=8,
                                                   shared_expert_intermediate_size=40),
                       transformers.DeepseekV3Config(**sizes, **routed, **latent, n_routed_experts=8, n_group=2,
                                                     topk_group=1, first_k_dense_replace=1)):
            self.check_count(transformers.AutoModelForCausalLM.from_config(config), describe_model)
        gpt = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=128, n_positions=64)
        self.check_count(transformers.AutoModelForCausalLM.from_config(gpt), describe_model)

    def check_count(self, model, describe_model):
        """The program counts the parameters of the shape that PyTorch counted."""
        facts = describe_model(model, "mine")
        shape = {key: value for key, value in facts["shape"].items() if key not in ("name", "full_name")}
        done = paths.run_program("config", "get", "models.llama.num_parameters", "--set",
                                 f"models.llama={json.dumps(shape)}", "--set", "training.data.seq_length=32",
                                 *(["--set", "models.llama.rope_theta=1e4"] if shape["position"] == "rope" else []))
        self.assertEqual(int(float(done.stdout)), facts["num_parameters"], (shape, done.stderr))

    def test_the_load_of_experts_is_told(self):
        """Also where blocks are computed again, and evaluations are not counted."""
        import torch
        import transformers
        from tprimat.hugging_face import BenchmarkCallback
        model = transformers.AutoModelForCausalLM.from_config(transformers.MixtralConfig(
            hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
            vocab_size=64, num_local_experts=4, max_position_embeddings=64))
        with torch.no_grad():  # far from even
            for layer in model.model.layers:
                layer.mlp.gate.weight.mul_(100)
        seen = []  # of each training step, the choices of its last forward pass, by layer

        def note(gate, inputs, output, number):
            if gate.training:
                seen[-1][number] = output[2]
        for number, layer in enumerate(model.model.layers):
            layer.mlp.gate.register_forward_hook(functools.partial(note, number=number))

        class Watch(transformers.TrainerCallback):
            def on_step_begin(self, *args, **kwargs):
                seen.append({})

        rows = [{"input_ids": row, "labels": row} for row in torch.randint(64, (16, 24))]
        settings = transformers.TrainingArguments(
            output_dir=str(self.folder / "output"), max_steps=3, per_device_train_batch_size=4, report_to=[],
            use_cpu=True, save_strategy="no", eval_strategy="steps", eval_steps=1, gradient_checkpointing=True,
            learning_rate=0.01, disable_tqdm=True)
        transformers.Trainer(model=model, args=settings, train_dataset=rows, eval_dataset=rows,
                             callbacks=[Watch(), BenchmarkCallback(sequence_length=24, path=self.steps)]).train()
        records = paths.read_records(self.steps)
        self.assertEqual(len(records), len(seen))
        for record, choices in zip(records, seen, strict=True):
            counts = [torch.bincount(choices[layer].flatten(), minlength=4).float() for layer in (0, 1)]
            expected = sum(float(count.max() / count.mean()) for count in counts) / 2
            self.assertAlmostEqual(record["expert_load"], expected, places=5)
            self.assertEqual(record["dropped_share"], 0)
        self.assertGreater(records[0]["expert_load"], 1.05)
        [path] = self.folder.glob("train_*_tran_mixtral.json")
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(result["experts"]["load_values"], [record["expert_load"] for record in records])
        self.assertEqual(result["model_info"]["shape"]["experts"]["count"], 4)

    def test_evaluation_and_checkpoints_are_not_counted(self):
        import transformers

        class Slow(transformers.TrainerCallback):
            def on_prediction_step(self, *args, **kwargs):
                time.sleep(0.15)

        class SlowlySaved(transformers.Trainer):
            def _save_checkpoint(self, *args, **kwargs):
                time.sleep(0.6)

        from tprimat.hugging_face import BenchmarkCallback
        settings = transformers.TrainingArguments(
            output_dir=str(self.folder / "output"), max_steps=3, per_device_train_batch_size=4, logging_steps=1,
            eval_strategy="steps", eval_steps=1, save_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
        SlowlySaved(model=make_model(), args=settings, train_dataset=Numbers(), eval_dataset=Numbers(),
                    callbacks=[BenchmarkCallback(path=self.steps), Slow()]).train()
        times = [record["time_seconds"] for record in paths.read_records(self.steps)]
        self.assertEqual(len(times), 3)
        self.assertTrue(all(seconds < 0.6 for seconds in times[1:]), times)  # an evaluation lasts 4 x 0.15 s


@unittest.skipIf(paths.missing("lightning"), "lightning is not installed: pip install lightning")
class Lightning(InFolder):
    def train(self, fails_at=None, **options):
        import lightning.pytorch as pl
        import torch
        from tprimat.lightning import BenchmarkCallback

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.model, self.seen = make_model(), []

            def training_step(self, batch, index):
                loss = self.model(**batch)["loss"]
                self.seen.append(loss.item())
                1 / (len(self.seen) != fails_at)  # an error in the middle
                return loss

            def validation_step(self, batch, index):
                time.sleep(0.1)

            def configure_optimizers(self):
                optimizer = torch.optim.SGD(self.parameters(), lr=0.5)
                schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 / (1 + done))
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

        module = Module()
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=4)
        pl.Trainer(callbacks=[BenchmarkCallback(tokens_per_step=128, path=self.steps)], accelerator="cpu", devices=1,
                   logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                   **options).fit(module, loader, loader)
        return module.seen, paths.read_records(self.steps)

    def test_records_hold_what_was_trained(self):
        seen, records = self.train(max_steps=4, accumulate_grad_batches=2, limit_val_batches=0)
        self.assertEqual([record["step"] for record in records], [1, 2, 3, 4])
        for step, record in enumerate(records):
            self.assertAlmostEqual(record["loss"], (seen[2 * step] + seen[2 * step + 1]) / 2, places=6)
            self.assertAlmostEqual(record["learning_rate"], 0.5 / (1 + step), places=12)
        self.assertEqual({record["tokens"] for record in records}, {128})

    def test_a_result_is_written(self):
        seen, records = self.train(max_steps=4, accumulate_grad_batches=2, limit_val_batches=0)
        result = json.loads((self.folder / "train_cpu_lightning_module.json").read_text(encoding="utf-8"))
        self.assertEqual((result["status"], result["source"]["format"]), ("complete", "lightning"))
        self.assertNotIn("framework", result)
        self.assertEqual(result["step_times"], [record["time_seconds"] for record in records])
        self.assertEqual((result["precision"], result["model_info"]["num_parameters"]), ("fp32", 5))
        training, layout = result["training_config"], result["parallelism_config"]
        facts = {"micro_batch_size": 4, "global_batch_size": 8, "max_steps": 4, "optimizer": "sgd",
                 "learning_rate": 0.5, "tokens_per_step": 128}
        self.assertEqual({key: training[key] for key in facts}, facts)
        self.assertEqual((layout["gradient_accumulation_steps"], layout["data_parallel_size"]), (2, 1))

    def test_an_epoch_ends_in_the_middle_of_an_accumulation(self):
        seen, records = self.train(max_epochs=1, accumulate_grad_batches=3, limit_val_batches=0)
        self.assertEqual([record["tokens"] for record in records], [128, 128, 85])
        self.assertAlmostEqual(records[2]["loss"], (seen[6] + seen[7]) / 2, places=6)

    def test_an_exception_leaves_an_interrupted_result(self):
        with self.assertRaises(ZeroDivisionError):
            self.train(max_steps=4, limit_val_batches=0, fails_at=3)
        result = json.loads((self.folder / "train_cpu_lightning_module.json").read_text(encoding="utf-8"))
        self.assertEqual((result["status"], len(result["step_times"])), ("interrupted", 2))
        self.assertIn("step 2 of 4: ZeroDivisionError", result["status_reason"])

    def test_validation_is_not_counted(self):
        _, records = self.train(max_steps=4, val_check_interval=1, num_sanity_val_steps=0)
        self.assertTrue(all(record["time_seconds"] < 0.8 for record in records[1:]), records)  # it lasts 8 x 0.1 s


@unittest.skipIf(paths.missing("setuptools"), "setuptools is not installed: pip install setuptools")
class Installation(InFolder):
    def test_pip_installs_the_package_alone(self):
        shutil.copytree(paths.SOURCES, self.folder / "python")
        shutil.copy2(paths.SOURCES.parent / "CMakeLists.txt", self.folder)  # states the version
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index"]
        done = subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--target", "site", "./python"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        modules = sorted(path.name for path in (self.folder / "site" / "tprimat").glob("*.py"))
        self.assertEqual(modules, sorted(path.name for path in (paths.SOURCES / "tprimat").glob("*.py")))
        code = "import tprimat; print(tprimat.__file__)"
        done = subprocess.run([sys.executable, "-c", code], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": "site"})
        self.assertIn(str(self.folder / "site"), done.stdout, done.stderr)


if __name__ == "__main__":
    paths.run_tests_with("torch", "transformers", "accelerate")
