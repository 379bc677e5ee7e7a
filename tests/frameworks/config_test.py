#!/usr/bin/env python3
"""The package's configuration against the program: lists, layouts, prices, file names, verdicts on layouts.

  config_test.py TPRIMAT
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import pickle
import stat
import subprocess
import unittest
from unittest import mock

import paths
from tprimat import Config, ConfigError, DotDict, load_config
from tprimat.config import FRAMEWORK_ALIASES, FRAMEWORKS, PLATFORM_ALIASES

TWO_PLATFORMS = """
experiment: {methodology: fast, profiling: true}
hardware:
  platforms:
    nvidia: {gpu_model: H100, num_gpus: 8, framework: nemo}
    amd: {gpu_model: MI300X, num_gpus: 8, framework: primus}
models:
  llama: {name: llama3.1_8b, primus_config: llama3.1_8B-pretrain.yaml}
  qwen: {name: qwen2.5_7b}
training:
  data: {micro_batch_size: 1, global_batch_size: 128, seq_length: 2048}
  duration: {max_steps: 50}
parallelism:
  fast:
    llama: {nvidia: {TP: 4, DP: 2}, amd: {TP: 1, DP: 8, ZeRO: 1}}
    qwen: {nvidia: {TP: 4, DP: 2}, amd: {TP: 1, DP: 8}}
  other:
    llama: {nvidia: {TP: 2, PP: 2, DP: 2}}
platform_optimizations:
  nvidia: {precision: fp8, fp8_hybrid: true}
benchmarking:
  output: {directory: results}
  enhanced_metrics:
    cloud_costs: {nvidia_h100_8gpu_per_hour: 32.0}
    hardware_specs: {nvidia_h100: {tdp_watts: 650}}
paths: {primus: {installation: /opt/Primus, config_dir: examples/configs}}
"""

# What the older scripts' Config had, and their modules' functions call.
OLDER_METHODS = """get_methodology get_parallelism get_platform_optimizations get_model_config get_hardware_config
get_training_config get_benchmark_config get_output_dir get_log_filename get_benchmark_filename get_cloud_cost
get_hardware_specs get_primus_path get_primus_config_path validate_parallelism calculate_gradient_accumulation_steps
get_models_list get_platforms_list get_profiler_config get_logging_config print_config_summary""".split()
OLDER_SECTIONS = "experiment hardware models training parallelism platform_optimizations benchmarking paths".split()


class InFolder(unittest.TestCase):
    def setUp(self):
        paths.enter_empty_folder(self)
        pathlib.Path("mine.yaml").write_text(TWO_PLATFORMS)

    def load(self, **overrides):
        return load_config("mine.yaml", overrides)


class Facts(InFolder):
    def test_everything_the_older_config_had_is_there(self):
        config = Config("mine.yaml")
        for name in OLDER_METHODS:
            self.assertTrue(callable(getattr(config, name)), name)
        for name in OLDER_SECTIONS:
            self.assertIsInstance(getattr(config, name), DotDict, name)
        self.assertEqual((config.config_path, config.origin), ("mine.yaml", "mine.yaml"))
        self.assertEqual(config.origins["hardware.platforms.nvd.gpu_model"], "mine.yaml:5:25")

    def test_lists(self):
        config = self.load()
        self.assertEqual(config.get_models_list(), ["llama", "qwen"])
        self.assertEqual(config.get_platforms_list(), ["nvd", "amd"])

    def test_platforms_have_aliases(self):
        config = self.load()
        platforms = config["hardware"].platforms
        for name in ("nvidia", "cuda", "nvd"):
            self.assertEqual(getattr(platforms, name).gpu_model, "H100")
            self.assertEqual(platforms[name].gpu_model, platforms.get(name).gpu_model)
            self.assertIn(name, platforms)
            self.assertEqual(config.get_hardware_config(name).num_gpus, 8)
        self.assertEqual((platforms.rocm.gpu_model, platforms.amd.gpu_model), ("MI300X", "MI300X"))
        self.assertEqual(config.platform_optimizations.nvidia.fp8_hybrid, True)
        self.assertNotIn("cpu", platforms)
        self.assertEqual(list(platforms), ["nvd", "amd"])  # an alias is no second entry
        with self.assertRaises(KeyError):
            platforms["intel"]

    def test_layouts_are_complete(self):
        config = self.load()
        layout = config.get_parallelism("llama", "nvidia")
        self.assertEqual(
            {key: layout[f"{key}_model_parallel_size"] for key in ("tensor", "pipeline")}, {"tensor": 4, "pipeline": 1})
        self.assertEqual((layout.data_parallel_size, layout.gradient_accumulation_steps), (2, 64))
        self.assertEqual(config.get_parallelism("llama", "rocm").zero_stage, 1)
        self.assertEqual(config.get_parallelism("llama", "nvd", "other").pipeline_model_parallel_size, 2)
        with mock.patch.dict(os.environ, PARALLEL="other"):
            again = self.load()
        self.assertEqual((again.get_methodology(), again.get_parallelism("llama", "nvd").strategy_name), ("other",) * 2)

    def test_what_is_not_there_is_named(self):
        config = self.load()
        for wrong, words in ((("lama", "nvd"), "no model 'lama'; it has: llama, qwen"),
                             (("llama", "cpu"), "no platform 'cpu'; it has: nvd, amd"),
                             (("qwen", "amd", "other"),
                              "'other' has no layout that can run for qwen on amd; there are: fast")):
            with self.assertRaisesRegex(ValueError, words):
                config.get_parallelism(*wrong)
        with self.assertRaises(FileNotFoundError):
            load_config("nowhere.yaml")
        with self.assertRaises(ConfigError):
            load_config("mine.yaml", {"training.data.seq_lenght": 5})

    def test_one_device_needs_no_layout(self):
        config = load_config()  # the built-in default
        layout = config.get_parallelism("llama", "cpu")
        self.assertEqual((layout.data_parallel_size, layout.gradient_accumulation_steps), (1, 2))
        self.assertEqual((config.parallelism, config.paths, config.get_primus_path()), ({}, {}, None))
        self.assertIsNone(config.get_cloud_cost("cpu"))

    def test_settings(self):
        config = self.load(**{"training.data.seq_length": 512, "experiment.name": "mine"})
        self.assertEqual(config.get_training_config().data.seq_length, 512)
        self.assertEqual(config.get_model_config("qwen").num_layers, 28)  # of the catalogue
        self.assertEqual(config.get_platform_optimizations("nvidia").precision, "fp8")
        self.assertEqual(config.get_platform_optimizations("cpu"), {})
        self.assertEqual(config.get_benchmark_config().output.directory, "results")
        self.assertEqual((config.get_profiler_config(), config.get_logging_config()), ({"enabled": True},) * 2)
        self.assertEqual(config.get_training("qwen", "amd").training_config.max_steps, 50)
        self.assertEqual(config.experiment.name, "mine")

    def test_prices_and_peaks(self):
        config = self.load()
        self.assertEqual((config.get_cloud_cost("nvidia"), config.get_cloud_cost("amd")), (32.0, None))
        half = self.load(**{"hardware.platforms.nvd.num_gpus": 4, "parallelism.fast.llama.nvd.DP": 1,
                            "parallelism.fast.qwen.nvd.DP": 1, "parallelism.fast.llama.nvd.GA": 128,
                            "parallelism.fast.qwen.nvd.GA": 128})
        self.assertEqual(half.get_cloud_cost("nvd"), 16.0)  # the price is of eight
        specs = config.get_hardware_specs("nvidia")
        self.assertEqual((specs.tdp_watts, specs.device_model), (650, "H100"))
        self.assertEqual(specs.peaks.bf16.id, "catalogue:H100-SXM-80GB:bf16")
        self.assertEqual(load_config().get_hardware_specs("cpu").peaks, {})  # not measured here: not known

    def test_file_names_are_those_of_a_run(self):
        config = load_config()
        done = paths.run_program("run", "--dry-run", "--framework", "native", "--model", "llama")
        folder = pathlib.Path.cwd() / config.get_output_dir()
        self.assertIn(str(folder / config.get_log_filename("llama")), done.stdout)
        self.assertIn(str(folder / config.get_benchmark_filename("cpu", "llama")), done.stdout)

    def test_file_names(self):
        config = self.load()
        self.assertEqual(config.get_log_filename("llama"), "training_nemo_llama.log")
        self.assertEqual(config.get_log_filename("llama", "tran", "amd"), "training_tran_llama.log")
        for stack, name in (("prim", "amd_prim"), ("primus", "amd_prim"), ("nemo", "nvd_nemo"), ("rocm", "amd_prim"),
                            ("nvidia", "nvd_nemo"), ("fsdp", "nvd_fsdp")):
            self.assertEqual(config.get_benchmark_filename(stack, "qwen"), f"train_{name}_qwen.json")
        self.assertEqual(config.get_benchmark_filename("amd", "qwen", "deepspeed"), "train_amd_deep_qwen.json")
        with self.assertRaisesRegex(ValueError, "no platform of nvd runs the framework 'prim'"):
            config.get_log_filename("llama", "prim", "nvd")
        with self.assertRaisesRegex(ValueError, "no platform of nvd, amd runs the framework ''"):
            config.get_benchmark_filename("", "llama")
        with mock.patch.dict(os.environ, CONFIG_OUTPUT_DIR="/elsewhere"):
            self.assertEqual(self.load().get_output_dir(), "/elsewhere")

    def test_primus(self):
        config = self.load()
        self.assertEqual(config.get_primus_path(), "/opt/Primus")
        self.assertEqual(config.get_primus_config_path("llama"),
                         "/opt/Primus/examples/configs/llama3.1_8B-pretrain.yaml")
        self.assertIsNone(config.get_primus_config_path("qwen"))
        inside = self.load(**{"models.llama.primus_config": "examples/my.yaml"})
        self.assertEqual(inside.get_primus_config_path("llama"), "/opt/Primus/examples/my.yaml")

    def test_summary(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.load().print_config_summary("llama", "nvidia")
        self.assertIn("8,030,261,248 parameters", printed.getvalue())
        self.assertIn("TP 4, PP 1, DP 2, GA 64", printed.getvalue())


class Layouts(InFolder):
    def test_the_program_judges(self):
        config = self.load()
        self.assertTrue(config.validate_parallelism(4, 1, 2, 8))
        self.assertTrue(config.validate_parallelism(4, 1, 1, 4, "llama", "nvidia"))  # whatever the other layouts need
        wrong = config.validate_parallelism(4, 1, 4, 8, "llama", "nvidia")
        self.assertFalse(wrong)
        self.assertIn("TP 4 x PP 1 x DP 4 x CP 1 = 16 does not match the number of devices 8", str(wrong))
        self.assertEqual(wrong.errors[0].hint, "a valid layout: {TP: 4, PP: 1, DP: 2, GA: 64}")
        heads = config.validate_parallelism(7, 1, 1, 7, "llama", "amd")  # the older scripts found nothing here
        self.assertIn("TP 7 does not divide the 32 attention heads", str(heads))

    def test_every_rule_of_a_layout(self):
        config = self.load()
        self.assertTrue(config.check_layout({"TP": 2, "PP": 2, "VP": 2, "DP": 2, "ZeRO": 1}, "llama", "nvd"))
        self.assertIn("PP 3", str(config.check_layout({"PP": 3, "DP": 2}, "llama", "nvd", 6)))
        self.assertIn("unknown key 'TTP'", str(config.check_layout({"TTP": 3}, "llama", "nvd")))
        self.assertIn("GA 5 contradicts", str(config.check_layout({"DP": 8, "GA": 5}, "llama", "amd")))

    def test_the_environment_chooses_no_other_strategy(self):
        config = self.load()
        with mock.patch.dict(os.environ, PARALLEL="other", CONFIG_NVD_NUM_GPUS="16"):
            self.assertTrue(config.validate_parallelism(4, 1, 2, 8, "llama", "nvd"))

    def test_gradient_accumulation(self):
        config = self.load()
        self.assertEqual(config.calculate_gradient_accumulation_steps(128, 1, 8), 16)
        for sizes, words in (((128, 3, 8), "GBS 128 is not a multiple of MBS 3 x DP 8 = 24"),
                             ((128, 0, 8), "micro_batch_size is 0")):
            with self.assertRaisesRegex(ValueError, words):
                config.calculate_gradient_accumulation_steps(*sizes)


class Dictionaries(InFolder):
    def test_settings_can_be_changed_copied_and_stored(self):
        config = self.load()
        config.training.data.seq_length = 64
        config.mine = DotDict(a=1)
        del config.hardware.platforms.nvidia
        self.assertEqual((config["training"]["data"]["seq_length"], config.mine.a), (64, 1))
        self.assertEqual(list(config.hardware.platforms), ["amd"])
        for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
            self.assertEqual((other, other.origin), (config, "mine.yaml"))
        self.assertEqual(json.loads(json.dumps(config))["mine"], {"a": 1})
        with self.assertRaisesRegex(AttributeError, "there is no setting 'nothing'"):
            del config.nothing


class Programs(InFolder):
    def pretend(self, script):
        program = pathlib.Path("program")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, TPRIMAT_PROGRAM=str(program.resolve()))

    def test_a_program_that_answers_otherwise_is_refused(self):
        for script, words in (("echo hello", "not JSON"), ("echo '{\"settings\": {}}'", "older than this package"),
                              ("echo wrong key >&2; exit 2", "wrong key")):
            with self.pretend(script), self.assertRaisesRegex(ConfigError, words):
                load_config()
        with mock.patch.dict(os.environ, TPRIMAT_PROGRAM=os.getcwd()):  # a folder
            with self.assertRaisesRegex(ConfigError, "there is no program"):
                load_config()

    def test_a_broken_layout_is_an_error_where_the_program_warns(self):
        config = self.load()
        path = "parallelism.layout_under_check.llama.nvd"
        warnings = {f"{path} cannot run: TP 3 does not divide the 32 attention heads": False,
                    f"{path}: weights, gradients and optimizer states of llama take 128.5 GB per device": True,
                    "parallelism.fast.qwen.nvd cannot run: TP 3 does not divide the 28 attention heads": True,
                    "strategy 'layout_under_check' has no layout for qwen on nvd, which has 8 devices": True}
        for what, runs in warnings.items():
            answer = {"valid": True, "errors": [], "warnings": [{"where": "--set", "what": what, "hint": "{TP: 4}"}]}
            pathlib.Path("answer.json").write_text(json.dumps(answer))
            with self.pretend(f"cat '{pathlib.Path('answer.json').resolve()}'"):
                check = config.validate_parallelism(3, 1, 2, 8, "llama", "nvidia")
            self.assertEqual((bool(check), [each.what for each in check.errors]), (runs, [] if runs else [what]))

    def test_names_are_the_programs(self):
        schema = json.loads((paths.HERE.parent.parent / "schema" / "result.schema.json").read_text())
        self.assertEqual(sorted(FRAMEWORKS), sorted(schema["$defs"]["RunResult"]["properties"]["framework"]["enum"]))
        for alias, name in FRAMEWORK_ALIASES.items():
            done = paths.run_program("config", "get", "hardware.platforms.cpu.framework",
                                     "--set", f"hardware.platforms.cpu.framework={alias}")
            self.assertEqual(done.stdout.strip(), name, done.stderr)
        for alias, name in PLATFORM_ALIASES.items():
            done = paths.run_program("config", "get", f"hardware.platforms.{alias}.num_gpus", "--config", "mine.yaml")
            self.assertEqual(done.stdout.strip(), "8", done.stderr)


class Documentation(InFolder):
    def test_the_page_runs_and_names_every_method(self):
        page = (paths.HERE.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
        code = page.split("## Configuration")[1].split("```python\n")[1].split("```")[0]
        pathlib.Path("config.yaml").write_text(TWO_PLATFORMS)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, {})
        self.assertIn("a valid layout", printed.getvalue())
        table = page.split("## From the older scripts' config_loader")[1]
        for name in OLDER_METHODS + OLDER_SECTIONS + ["DotDict", "load_config"]:
            self.assertIn(name, table)


if __name__ == "__main__":
    paths.run_tests()
