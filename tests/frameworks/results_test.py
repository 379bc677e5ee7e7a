#!/usr/bin/env python3
"""The result file that a callback writes by itself, without PyTorch: a stand-in for the Trainer of Transformers and for
PyTorch's devices. callbacks_test.py has the real ones.

  results_test.py TPRIMAT
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

import paths

NO_PROGRAM = {"TPRIMAT_PROGRAM": "/nowhere/tprimat"}
SCHEMA = paths.HERE.parent.parent / "schema" / "result.schema.json"
LLAMA = {"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 96,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 128,
         "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False,
         "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}
PARAMETERS = 123712  # of that shape: 2 x 100 x 64 + 64 + 4 x (2 x 64 + 64 x 64 x 2 + 64 x 32 x 2 + 3 x 64 x 96)

CRASHING = """
import os, sys
sys.path.insert(0, {tests!r})
import results_test
training = results_test.Training()
training.start()
for step in range(1, 6):
    training.step(step)
    if os.environ["END"] == "kill" and step == 3:
        os.kill(os.getpid(), 9)
if os.environ["END"] == "error":
    raise RuntimeError("out of luck")
"""


def make_torch(kind="cpu", hip=None):
    """As much of PyTorch as a result reads."""
    gpu = types.SimpleNamespace(name="NVIDIA H100 80GB HBM3" if hip is None else "AMD Instinct MI300X",
                                total_memory=85e9)
    cuda = types.SimpleNamespace(is_available=lambda: kind == "cuda", current_device=lambda: 0,
                                 synchronize=lambda device: None, get_device_properties=lambda device: gpu,
                                 max_memory_allocated=lambda device: 2e9, max_memory_reserved=lambda device: 3e9)
    ranks = types.SimpleNamespace(is_available=lambda: False)
    version = types.SimpleNamespace(cuda=None if hip else "12.8", hip=hip)
    matmul = types.SimpleNamespace(allow_tf32=False)
    backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul))
    return types.SimpleNamespace(__version__="2.13.0", cuda=cuda, distributed=ranks, version=version, backends=backends,
                                 float64="float64", get_num_threads=lambda: 3,
                                 device=lambda kind, index=0: types.SimpleNamespace(type=getattr(kind, "type", kind)),
                                 tensor=lambda numbers, dtype, device: Numbers(numbers))


class Numbers(list):
    def __truediv__(self, divisor):
        return Numbers(number / divisor for number in self)

    def tolist(self):
        return list(self)


class Weight:
    def __init__(self, size, trains=True):
        self.size, self.requires_grad = size, trains

    def numel(self):
        return self.size


class Model:
    """Of Transformers, with a config; `weights` are (name, size, whether it is trained)."""

    def __init__(self, config=LLAMA, weights=(("all", PARAMETERS, True),)):
        self.config = types.SimpleNamespace(to_dict=lambda: dict(config), _name_or_path="")
        self.dtype, self.weights = "torch.float32", [(name, Weight(size, trains)) for name, size, trains in weights]

    def named_parameters(self):
        return iter(self.weights)

    def modules(self):
        return iter(())


def import_callback():
    module = types.ModuleType("transformers")
    module.TrainerCallback, module.__version__ = type("TrainerCallback", (), {}), "5.23.0"
    sys.modules["transformers"] = module
    from tprimat.hugging_face import BenchmarkCallback
    return BenchmarkCallback


class Training:
    """The hooks of the Trainer in its order."""

    def __init__(self, model=None, device="cpu", settings=None, **options):
        self.torch = make_torch(device, **(settings or {}).pop("torch", {}))
        sys.modules["torch"] = self.torch
        self.callback = import_callback()(**{"sequence_length": 16, **options})
        self.args = types.SimpleNamespace(**{
            "device": types.SimpleNamespace(type=device), "world_size": 1, "n_gpu": 0, "train_batch_size": 4,
            "gradient_accumulation_steps": 2, "learning_rate": 0.5, "weight_decay": 0.1, "max_grad_norm": 1.0,
            "seed": 7, "lr_scheduler_type": "linear", "bf16": True, "fp16": False, "logging_steps": 1, "fsdp": None,
            "deepspeed_plugin": None, "parallelism_config": None, **(settings or {})})
        self.state = types.SimpleNamespace(global_step=0, max_steps=12, num_input_tokens_seen=0, train_batch_size=None)
        group = {"lr": 0.25, "initial_lr": 0.5, "weight_decay": 0.1}
        self.objects = {"model": model or Model(), "optimizer": type("AdamW", (), {"param_groups": [group]})(),
                        "lr_scheduler": None}

    def start(self):
        self.callback.on_train_begin(self.args, self.state, None, **self.objects)

    def step(self, number, loss=2.0):
        self.callback.on_step_begin(self.args, self.state, None, **self.objects)
        for _ in range(self.args.gradient_accumulation_steps - 1):
            self.callback.on_substep_end(self.args, self.state, None, **self.objects)
        time.sleep(0.003)
        self.state.global_step = number
        self.callback.on_step_end(self.args, self.state, None, **self.objects)
        self.callback.on_log(self.args, self.state, None, logs={"loss": loss, "grad_norm": 1.0}, **self.objects)

    def end(self):
        self.callback.on_train_end(self.args, self.state, None, **self.objects)

    def run(self, steps=12):
        self.start()
        for number in range(1, steps + 1):
            self.step(number)
        self.end()
        return self


def load(path="output/train_cpu_tran_llama.json"):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def train_without_program(**options):
    with mock.patch.dict(os.environ, NO_PROGRAM):
        Training(**options).run()


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = paths.enter_empty_folder(self)
        self.addCleanup(sys.modules.pop, "torch", None)

    def check_schema(self, result):
        if importlib.util.find_spec("jsonschema") is None:
            return  # compare, which reads the file too, is then the only judge
        import jsonschema
        jsonschema.validate(result, json.loads(SCHEMA.read_text(encoding="utf-8")))


class Results(InFolder):
    def test_every_fact_of_the_training_is_there(self):
        train_without_program(parallel_strategy="mine", dataset="tokens")
        result = load()
        self.check_schema(result)
        self.assertEqual((result["status"], result["platform"], result["framework"], result["framework_version"]),
                         ("complete", "cpu", "tran", "5.23.0"))
        self.assertEqual(result["training_config"], {
            "num_gpus": 1, "max_steps": 12, "micro_batch_size": 4, "global_batch_size": 8, "sequence_length": 16,
            "learning_rate": 0.5, "weight_decay": 0.1, "clip_grad_norm": 1.0, "seed": 7, "optimizer": "adamw",
            "recompute": "none", "parallel_strategy": "mine"})
        self.assertEqual(result["parallelism_config"], {
            "strategy_name": "mine", "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1,
            "context_parallel_size": 1, "data_parallel_size": 1, "gradient_accumulation_steps": 2, "zero_stage": 0})
        self.assertEqual((result["precision"], result["dataset"]), ("bf16", "tokens"))
        model, device = result["model_info"], result["gpu_info"]
        self.assertEqual((model["name"], model["num_parameters"]), ("llama", PARAMETERS))
        self.assertEqual((model["shape"]["head_dim"], model["shape"]["rope_theta"]), (16, 5e5))
        self.assertEqual((device["software_stack"], device["pytorch_version"]), ("cpu", "2.13.0"))
        self.assertGreater(device["total_memory_gb"], 0)
        self.assertNotIn("gpu_cores", device)
        self.assertEqual((result["environment"]["cpu"], result["environment"]["cpu_threads_used"]),
                         (result["gpu_info"]["device_name"], "3"))

    def test_series_are_the_records(self):
        train_without_program()
        result, records = load(), paths.read_records("steps.jsonl")
        for series, figure in (("step_times", "time_seconds"), ("loss_values", "loss"),
                               ("learning_rates", "learning_rate"), ("grad_norms", "grad_norm")):
            self.assertEqual(result[series], [record[figure] for record in records])
        self.assertEqual(result["performance_metrics"]["total_steps"], 12)
        self.assertGreater(result["memory_metrics"]["peak_device_used_gb"], 0)

    def test_the_rate_is_that_of_extract(self):
        Training(output_dir="with").run()
        written = load("with/train_cpu_tran_llama.json")
        self.check_schema(written)
        done = paths.run_program("extract", "with/steps.jsonl", "--json", "--output", "x.json")
        extracted = json.loads(done.stdout)
        rate = extracted["performance_metrics"]["tokens_per_second"]
        self.assertEqual(written["performance_metrics"]["tokens_per_second"], rate)
        self.assertEqual((written["warmup"], written["statistics"]), (extracted["warmup"], extracted["statistics"]))
        self.assertGreater(written["derived"]["flops_per_token"]["causal/1"], 0)
        self.assertEqual(written["warnings"], [])

    def test_without_the_program_the_file_is_there_too(self):
        train_without_program()
        plain = load()
        self.assertNotIn("tokens_per_second", plain["performance_metrics"])  # the program's to derive
        self.assertNotIn("statistics", plain)
        compared = json.loads(paths.run_program("compare", "output", "--json").stdout)
        shown = compared["groups"][0]["contenders"][0]["figures"]["tokens_per_second"]["value"]
        done = paths.run_program("extract", "steps.jsonl", "--json", "--output", "x.json")
        rate = json.loads(done.stdout)["performance_metrics"]["tokens_per_second"]
        self.assertAlmostEqual(shown, rate, delta=1e-9 * rate)
        self.assertEqual(paths.run_program("extract", "output/train_cpu_tran_llama.json").returncode, 0)
        completed = load()
        self.assertEqual(completed["performance_metrics"]["tokens_per_second"], rate)
        for kept in ("environment", "model_info", "training_config", "gpu_info", "source", "step_times"):
            self.assertEqual(completed[kept], plain[kept])

    def test_results_of_frameworks_are_compared(self):
        train_without_program()
        train_without_program(framework="deepspeed")
        paths.run_program("extract", "steps.jsonl", "--model", "llama", "--device", "x", "--devices", "1", "--platform",
                          "cpu", "--output", "output/third.json")
        compared = json.loads(paths.run_program("compare", "output", "--json").stdout)
        self.assertEqual(compared["skipped"], [])
        labels = [each["label"] for group in compared["groups"] for each in group["contenders"]]
        self.assertIn("CPU Transformers", labels)
        self.assertIn("CPU DeepSpeed", labels)
        self.assertEqual(sum(len(group["contenders"]) for group in compared["groups"]), 3)

    def test_a_fixed_warm_up(self):
        Training(warmup_steps=5).run()
        self.assertEqual((load()["warmup"]["method"], load()["warmup"]["steps_excluded"]), ("fixed", 5))
        self.assertEqual(load()["statistics"]["count"], 7)

    def test_an_older_result_becomes_before(self):
        train_without_program()
        first = load()
        train_without_program()
        self.assertEqual(load("output/train_cpu_tran_llama.json.before"), first)
        self.assertEqual([each.name for each in pathlib.Path("output").glob("*.json")], ["train_cpu_tran_llama.json"])

    def test_the_suite_writes_its_own(self):
        with mock.patch.dict(os.environ, TPRIMAT_STEPS="suite.jsonl"):
            Training().run()
        self.assertFalse(pathlib.Path("output").exists())
        self.assertEqual(len(paths.read_records("suite.jsonl")), 12)

    def test_only_the_first_rank_writes(self):
        with mock.patch.dict(os.environ, RANK="1"):
            Training(output_dir="mine").run()
        self.assertEqual(list(self.folder.iterdir()), [])


class Ends(InFolder):
    def test_a_training_that_is_stopped_claims_nothing_more(self):
        for environment in (NO_PROGRAM, {}):
            with mock.patch.dict(os.environ, environment):
                Training().run(steps=7)
            result = load()
            self.check_schema(result)
            self.assertEqual((result["status"], result["status_reason"]),
                             ("interrupted", "the training was stopped after step 7 of 12"))
            self.assertEqual(len(result["step_times"]), 7)

    def test_a_training_that_ends_in_an_error_or_is_killed(self):
        for end, reason in (("error", "after step 5 of 12: RuntimeError: out of luck"),
                            ("quietly", "the process ended"),
                            ("kill", "the training had not ended when this was written, after step 1 of 12")):
            code = CRASHING.format(tests=str(paths.HERE))
            subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "END": end})
            result = load()
            self.check_schema(result)
            self.assertEqual(result["status"], "interrupted")
            self.assertIn(reason, result["status_reason"])
            self.assertEqual([each.name for each in pathlib.Path("output").iterdir() if each.name.startswith(".")], [])

    def test_what_broke_off_does_not_overwrite_what_follows(self):
        with mock.patch.dict(os.environ, NO_PROGRAM):
            broken = Training()
            broken.start()
            broken.step(1)
            complete = Training().run()
            self.assertEqual(load()["status"], "complete")
            broken.start()  # again, after its error
            self.assertEqual(load()["status"], "complete")
            broken.step(1)
            self.assertEqual(load("output/train_cpu_tran_llama.json.before")["status"], "complete")
            broken.start()
            broken.step(1)
            self.assertEqual(load("output/train_cpu_tran_llama.json.before")["status_reason"],
                             "the training ended after step 1 of 12: the next training began")
            broken.end()
        code = CRASHING.format(tests=str(paths.HERE)) + "results_test.Training().run()\n"
        subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, **NO_PROGRAM, "END": ""})
        self.assertEqual((complete.callback.file, load()["status"]), (None, "complete"))

    def test_a_child_writes_nothing_when_it_ends(self):
        code = CRASHING.format(tests=str(paths.HERE)) + "os.fork() or sys.exit()\ntraining.end()\nos.wait()\n"
        subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, **NO_PROGRAM, "END": ""})
        self.assertEqual(load()["status_reason"], "the training was stopped after step 5 of 12")

    def test_without_a_step_nothing_is_claimed(self):
        train_without_program()
        complete = load()
        training = Training()
        training.start()
        training.end()
        self.assertEqual([each.name for each in pathlib.Path("output").iterdir()], ["train_cpu_tran_llama.json"])
        self.assertEqual(load(), complete)

    def test_a_full_disk_does_not_end_the_training(self):
        training = Training()
        training.start()
        with mock.patch("tprimat.results.write_whole", side_effect=OSError(28, "No space left on device")):
            training.step(1)
            training.step(2)
        os.chdir("/")  # the script may go elsewhere
        self.addCleanup(os.chdir, self.folder)
        training.end()
        self.assertEqual(len(load(self.folder / "output/train_cpu_tran_llama.json")["step_times"]), 2)

    def test_a_folder_that_cannot_be_written_is_told_before_the_first_step(self):
        pathlib.Path("file").write_text("")
        with self.assertRaises(OSError):
            Training(output_dir="file/results").start()

    def test_a_loss_that_is_no_number_is_no_number_in_the_file(self):
        training = Training()
        training.start()
        for number in range(1, 13):
            training.step(number, loss=float("nan") if number > 6 else 2.0)
        training.end()
        result = load()
        self.check_schema(result)
        self.assertEqual(result["loss_values"], [2.0] * 6 + [None] * 6)
        self.assertEqual(result["status"], "invalid")  # by the program

    def test_a_diverged_training_is_not_complete_without_the_program(self):
        for first, ends in ((6, "invalid"), (13, "complete")):
            with mock.patch.dict(os.environ, NO_PROGRAM):
                training = Training()
                training.start()
                for number in range(1, 13):
                    training.step(number, loss=float("nan") if number >= first or number == 2 else 2.0)
                training.end()
            result = load()
            self.check_schema(result)
            self.assertEqual(result["status"], ends)
            self.assertEqual(result.get("status_reason"),
                             "the loss is not a number from step 6 on" if ends == "invalid" else None)

    def test_the_filter_of_the_trainer_hides_no_loss(self):
        for half, filtered in ((False, False), (True, True)):
            training = Training(settings={"logging_nan_inf_filter": True, "fp16": half, "bf16": not half})
            training.start()
            training.callback.on_step_begin(training.args, training.state, None, **training.objects)
            self.assertEqual(training.args.logging_nan_inf_filter, filtered)
            training.state.global_step = 1
            training.callback.on_step_end(training.args, training.state, None, **training.objects)
            self.assertEqual(training.args.logging_nan_inf_filter, True)  # an evaluation is the script's

    def test_a_step_that_broke_off_leaves_the_scripts_filter(self):
        for first, second in ((True, False), (False, True)):
            training = Training(settings={"logging_nan_inf_filter": first})
            training.start()
            training.callback.on_step_begin(training.args, training.state, None, **training.objects)
            broken, training.args = training.args, types.SimpleNamespace(**vars(training.args))
            training.args.logging_nan_inf_filter = second
            training.run()
            self.assertEqual((broken.logging_nan_inf_filter, training.args.logging_nan_inf_filter), (first, second))

    def test_with_fp16_the_filters_zero_is_no_loss(self):
        from tprimat.hugging_face import read_loss
        nan = float("nan")
        for loss, norm, batches, expected in ((2.0, 1.0, 2, "2.0"), (0.0, nan, 2, "nan"), (2.0, nan, 1, "2.0"),
                                              (2.0, float("inf"), 2, "None"), (0.0, 0.0, 1, "0.0")):
            args = types.SimpleNamespace(fp16=True, logging_nan_inf_filter=True, world_size=1,
                                         gradient_accumulation_steps=batches)
            self.assertEqual(str(read_loss(args, {"loss": loss, "grad_norm": norm})), expected)

    def test_a_mean_over_several_steps_is_no_loss_of_the_last(self):
        training = Training(settings={"logging_strategy": "epoch"})
        training.start()
        for number in range(1, 13):
            training.callback.on_step_begin(training.args, training.state, None, **training.objects)
            training.state.global_step = number
            training.callback.on_step_end(training.args, training.state, None, **training.objects)
            if number % 6 == 0:
                training.callback.on_log(training.args, training.state, None, logs={"loss": 2.0, "grad_norm": 1.0})
        training.end()
        records = paths.read_records("steps.jsonl")
        self.assertEqual([record.get("grad_norm") for record in records], [None, None, None, None, None, 1.0] * 2)
        self.assertTrue(all("loss" not in record for record in records))

    def test_the_next_training_of_a_callback_has_its_own_batch(self):
        training = Training().run()
        for change in ({"train_batch_size": 8}, {"train_batch_size": 1, "gradient_accumulation_steps": 1}):
            vars(training.args).update(change)
            training.state.global_step = 0
            training.run()
            expected = 16 * training.args.train_batch_size * training.args.gradient_accumulation_steps
            self.assertEqual({record["tokens"] for record in paths.read_records("steps.jsonl")}, {expected})
            self.assertNotIn("tokens_per_step", load()["training_config"])

    def test_a_shorter_step_has_its_own_tokens(self):
        from tprimat.hugging_face import measure_share
        for batches, ranks, loader, expected in (
                (2, 1, None, 1.0), (1, 1, None, 0.5),
                (2, 1, {"end_of_dataloader": True, "remainder": 1, "total_batch_size": 4}, 0.625),
                (2, 1, {"end_of_dataloader": True, "remainder": 0, "total_batch_size": 4}, 1.0),
                (2, 1, {"end_of_dataloader": True, "remainder": -1, "total_batch_size": 4}, 1.0),
                (2, 1, {"end_of_dataloader": False, "remainder": 1, "total_batch_size": 4}, 1.0),
                (2, 2, {"end_of_dataloader": True, "remainder": 1, "total_batch_size": 8}, 1.0)):
            args = types.SimpleNamespace(world_size=ranks, gradient_accumulation_steps=2)
            loader = loader and types.SimpleNamespace(**loader)
            self.assertEqual(float(measure_share(args, batches, loader)), expected)

    def test_a_continued_training_keeps_its_numbers(self):
        training = Training()
        training.state.global_step = 5
        training.start()
        for number in range(6, 13):
            training.step(number)
        training.end()
        result = load()
        self.assertEqual((result["status"], result["steps"]["numbers"]), ("complete", list(range(6, 13))))
        self.assertEqual(result["training_config"]["loaded_step"], 5)


class Devices(InFolder):
    def test_gpus(self):
        for hip, platform, stack, name in ((None, "nvd", ("cuda", "12.8"), "NVIDIA H100 80GB HBM3"),
                                           ("7.0.2", "amd", ("rocm", "7.0.2"), "AMD Instinct MI300X")):
            Training(device="cuda", settings={"torch": {"hip": hip}, "world_size": 8}).run()
            result = load(f"output/train_{platform}_tran_llama.json")
            self.check_schema(result)
            device = result["gpu_info"]
            self.assertEqual((device["device_name"], device["device_count"]), (name, 8))
            self.assertEqual(device["total_memory_gb"], 85.0)
            self.assertEqual((device["software_stack"], device["software_version"]), stack)
            self.assertEqual(result["training_config"]["global_batch_size"], 64)
            memory = result["memory_metrics"]
            self.assertEqual((memory["peak_memory_allocated_gb"], memory["peak_memory_reserved_gb"]), (2.0, 3.0))
            self.assertTrue(result["derived"]["peak"]["id"].startswith("catalogue:"))
            self.assertGreater(result["derived"]["mfu"]["value"], 0)

    def test_another_kind_of_device_is_no_platform(self):
        train_without_program(device="xpu")
        result = load("output/train_unknown_tran_llama.json")
        self.check_schema(result)
        self.assertEqual((result["platform"], result["gpu_info"]["device_name"]), (None, ""))

    def test_a_platform_that_is_not_what_trains_is_refused(self):
        with self.assertRaisesRegex(ValueError, "platform is 'amd', but the training runs on cpu"):
            Training(platform="rocm").start()
        with self.assertRaisesRegex(ValueError, "platform is 'intel'; it must be auto, nvd, amd, cpu"):
            Training(platform="intel")
        with self.assertRaisesRegex(ValueError, "framework is 'hf'; it must be one of nemo, "):
            Training(framework="hf")

    def test_secrets_do_not_reach_the_file(self):
        with mock.patch.dict(os.environ, CUDA_API_KEY="very-secret", HF_TOKEN="very-secret", OMP_NUM_THREADS="3"):
            train_without_program()
        self.assertEqual(load()["environment"]["env.OMP_NUM_THREADS"], "3")
        self.assertNotIn("very-secret", pathlib.Path("output/train_cpu_tran_llama.json").read_text())


class Models(InFolder):
    def describe(self, config=LLAMA, **weights):
        train_without_program(model=Model(config, **weights), model_name="m/../x")
        return load("output/train_cpu_tran_m_.._x.json")["model_info"]

    def test_a_shape_that_a_result_does_not_cover_is_absent(self):
        for change in ({"model_type": "bert"}, {"hidden_act": "gelu"}, {"attention_bias": True}, {"vocab_size": "many"},
                       {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}},
                       {"layer_types": ["full_attention", "sliding_attention"]}):
            self.assertNotIn("shape", self.describe({**LLAMA, **change}), change)

    def test_shapes_of_other_families(self):
        self.assertTrue(self.describe({**LLAMA, "model_type": "qwen2"})["shape"]["qkv_bias"])
        mistral = self.describe({**LLAMA, "model_type": "mistral", "sliding_window": 32})["shape"]
        self.assertEqual(mistral["sliding_window"], 32)
        rope = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
        shape = self.describe({**LLAMA, "rope_parameters": rope})["shape"]
        self.assertEqual((shape["rope_scaling"]["type"], shape["rope_scaling"]["factor"]), ("llama3", 8.0))
        self.assertEqual(self.describe({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "vocab_size": 9,
                                        "n_positions": 16, "layer_norm_epsilon": 1e-5})["shape"]["ffn_hidden_size"], 32)

    def test_adapters_are_counted_apart(self):
        info = self.describe(weights=(("base", PARAMETERS, False), ("x.lora_A", 40, True)))
        self.assertEqual((info["num_parameters"], info["trainable_parameters"]), (PARAMETERS, 40))


if __name__ == "__main__":
    paths.run_tests()
