"""The configuration as the program itself resolves it: files, environment variables and defaults together.

The program is the only reader of YAML and the only judge of layouts; this module asks it (`tprimat config show --json`,
`tprimat config validate --json`) and gives the answers Python's form. docs/python.md has a table for those who come
from the older scripts' config_loader.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

# What platforms and frameworks are called: the program's own names, and those that it accepts besides.
PLATFORMS = ("nvd", "amd", "cpu")
PLATFORM_ALIASES = {"nvidia": "nvd", "cuda": "nvd", "rocm": "amd"}
FRAMEWORKS = ("nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native")
FRAMEWORK_ALIASES = {"primus": "prim", "megatron": "mega", "megatron-lm": "mega", "deepspeed": "deep",
                     "transformers": "tran", "torchtitan": "tita", "megatron-deepspeed": "mgds",
                     "megatron_deepspeed": "mgds"}
OPTIONAL_SECTIONS = ("frameworks", "parallelism", "paths", "platform_optimizations")  # empty where nothing states them
LAYOUT_UNDER_CHECK = "layout_under_check"  # the name of a strategy that only check_layout() uses


def name_platform(name: str) -> str:
    """nvd for nvidia and cuda, amd for rocm, in capitals or not; any other name as it is."""
    word = name.lower()
    return PLATFORM_ALIASES.get(word, word if word in ("nvd", "amd", "cpu") else name)


def name_framework(name: str) -> str:
    """prim for Primus; any other name as it is."""
    return FRAMEWORK_ALIASES.get(name.lower(), name)


class ConfigError(ValueError):
    """The program refuses the configuration; the message is the program's own."""


class Settings(dict[Any, Any]):
    """A section of the configuration: settings.training.data.seq_length, or settings["training"]["data"]. A platform
    has its aliases: platforms.nvidia, platforms["cuda"] and platforms.nvd are one."""

    def __missing__(self, key: Any) -> Any:
        name = name_platform(key) if isinstance(key, str) else None
        if name is not None and dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        name = name_platform(key) if isinstance(key, str) else key
        return dict.__contains__(self, key) or dict.__contains__(self, name)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no setting '{name}'; there are: {', '.join(map(str, self)) or 'none'}")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"there is no setting '{name}'")
        del self[name if dict.__contains__(self, name) else name_platform(name)]


DotDict = Settings  # the older scripts' name


@dataclasses.dataclass(frozen=True)
class Problem:
    """One sentence of the program: where, what, and how to mend it."""

    where: str
    what: str
    hint: str

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f" ({self.hint})" if self.hint else "")


@dataclasses.dataclass(frozen=True)
class LayoutCheck:
    """The program's verdict on a layout. It is true where the layout can run: `if config.check_layout(...):`."""

    valid: bool
    errors: tuple[Problem, ...]

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        return "the layout can run" if self.valid else "; ".join(map(str, self.errors))


def run_config_command(words: list[str]) -> subprocess.CompletedProcess[str]:
    """`tprimat config ...`."""
    from tprimat.errors import MissingComponent  # neither is there in a copy beside a training, which asks nothing
    from tprimat.program import find_program

    try:
        return subprocess.run([find_program(), "config", *words], stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", errors="replace")
    except MissingComponent as error:
        raise ConfigError(f"{error.problem}: {error.remedy}") from error
    except OSError as error:
        raise ConfigError(f"the program tprimat cannot be started: {error}") from error


def parse_answer(text: str) -> Settings:
    try:
        answer: Settings = json.loads(text, object_hook=Settings)
    except json.JSONDecodeError as error:
        raise ConfigError(f"the program's answer is not JSON: {error}") from error
    if "resolved" not in answer:
        raise ConfigError("the program is older than this package: `tprimat config show --json` has no `resolved`")
    return answer


def list_overrides(settings: Mapping[str, Any]) -> list[str]:
    """--set takes a text as it is; JSON is YAML for everything else."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}
    return [word for key, text in texts.items() for word in ("--set", f"{key}={text}")]


def tells_of_broken_layout(warning: str) -> bool:
    """Of the one under check; not of its memory, and not of a model without one."""
    return warning.startswith(f"parallelism.{LAYOUT_UNDER_CHECK}.") and " cannot run: " in warning


def calculate_gradient_accumulation_steps(global_batch_size: int, micro_batch_size: int,
                                          data_parallel_size: int) -> int:
    """GBS / (MBS x DP). Throws ValueError where that is no whole number: such a batch cannot be trained."""
    for name, size in (("global_batch_size", global_batch_size), ("micro_batch_size", micro_batch_size),
                       ("data_parallel_size", data_parallel_size)):
        if size < 1:
            raise ValueError(f"{name} is {size}; it must be at least 1")
    steps, rest = divmod(global_batch_size, micro_batch_size * data_parallel_size)
    if rest:
        raise ValueError(f"GBS {global_batch_size} is not a multiple of MBS {micro_batch_size} x DP "
                         f"{data_parallel_size} = {micro_batch_size * data_parallel_size}")
    return steps


class Config(Settings):
    """All settings, and the values derived from them. `origin` says where they come from ("config.yaml", "built-in
    default"), `origins` where each key does, `resolved` what the program derives."""

    def __init__(self, config_path: str | os.PathLike[str] | None = None,
                 overrides: Mapping[str, Any] | None = None) -> None:
        """Of the file, else of the ./config.yaml or default that `tprimat` would take. `overrides` are --set:
        {"training.data.seq_length": 512}. Throws ConfigError (a ValueError) with the program's message."""
        if config_path is not None and not os.path.exists(config_path):
            raise FileNotFoundError(errno.ENOENT, "there is no such configuration", os.fspath(config_path))
        words = [] if config_path is None else ["--config", os.fspath(config_path)]
        words += list_overrides(overrides or {})
        done = run_config_command(["show", "--json", *words])
        if done.returncode != 0:
            raise ConfigError(done.stderr.strip())
        answer = parse_answer(done.stdout)
        super().__init__(answer.settings)
        facts = {"config_path": config_path, "origin": answer.origin, "origins": answer.origins,
                 "resolved": answer.resolved, "_words": words}
        for name, value in facts.items():
            object.__setattr__(self, name, value)  # beside the settings, not one of them

    def __getattr__(self, name: str) -> Any:
        if name in OPTIONAL_SECTIONS and name not in self:
            return Settings()
        return super().__getattr__(name)

    def get_models_list(self) -> list[str]:
        return list(self.models)

    def get_platforms_list(self) -> list[str]:
        """By the program's names: nvd, amd, cpu."""
        return list(self.hardware.platforms)

    def get_methodology(self) -> str:
        """The default strategy; the variable PARALLEL overrides the file's."""
        return str(self.experiment.methodology)

    def get_parallelism(self, model: str, platform: str, methodology: str | None = None) -> Settings:
        """The layout with everything that it leaves to the program: sizes, gradient accumulation, ZeRO stage. Throws
        ValueError where the configuration has none, or one that cannot run."""
        return Settings(self.get_training(model, platform, methodology).parallelism_config)

    def get_training(self, model: str, platform: str, methodology: str | None = None) -> Settings:
        """One training as the program would ask for it: training_config, parallelism_config, precision."""
        self.get_model_config(model), self.get_hardware_config(platform)  # both must be there
        strategy = methodology or self.get_methodology()
        trainings = self.resolved.trainings
        found: Settings | None = trainings.get(strategy, Settings()).get(model, Settings()).get(platform)
        if found is None:
            known = [name for name, models in trainings.items() if platform in models.get(model, ())]
            raise ValueError(f"strategy '{strategy}' has no layout that can run for {model} on "
                             f"{name_platform(platform)}; there are: {', '.join(known) or 'none'}")
        return found

    def get_model_config(self, model: str) -> Settings:
        return self._choose(self.models, "model", model)

    def get_hardware_config(self, platform: str) -> Settings:
        return self._choose(self.hardware.platforms, "platform", platform)

    def get_platform_optimizations(self, platform: str) -> Settings:
        """Empty where the configuration states none."""
        return Settings(self.platform_optimizations.get(platform, {}))

    def get_training_config(self) -> Settings:
        return Settings(self.training)

    def get_benchmark_config(self) -> Settings:
        return Settings(self.benchmarking)

    def get_profiler_config(self) -> Settings:
        """{"enabled": ...}: the program chooses each framework's profiler itself."""
        return Settings(enabled=self.experiment.profiling)

    def get_logging_config(self) -> Settings:
        return Settings(enabled=self.experiment.logging)

    def get_output_dir(self) -> str:
        """The variable CONFIG_OUTPUT_DIR overrides the file's."""
        return str(self.benchmarking.output.directory)

    def get_log_filename(self, model: str, framework: str | None = None, platform: str | None = None) -> str:
        """The log that `tprimat run` writes for one run of one strategy; several of them add a suffix."""
        return str(self._choose_file(model, framework, platform).log)

    def get_benchmark_filename(self, software_stack: str, model: str, framework: str | None = None) -> str:
        """The result, likewise. `software_stack` is a platform or its stack (cuda, rocm), or, as in the older scripts,
        a framework (nemo, prim): then of the platform that trains with it by default."""
        platform = name_platform(software_stack)
        if platform in self.resolved.files:
            return str(self._choose_file(model, framework, platform).result)
        return str(self._choose_file(model, software_stack, None).result)

    def get_cloud_cost(self, platform: str) -> float | None:
        """USD per hour of all devices of the platform; None where the configuration has no price for them."""
        cost: float | None = self._get_platform(platform).get("usd_per_hour")
        return cost

    def get_hardware_specs(self, platform: str) -> Settings:
        """device_model, num_gpus, tdp_watts, and `peaks`: for each precision the dense peak of one device with its
        source. Those that neither the configuration nor the catalogue knows are absent."""
        return Settings(self._get_platform(platform))

    def get_primus_path(self) -> str | None:
        path: str | None = self.paths.get("primus", Settings()).get("installation")
        return path

    def get_primus_config_path(self, model: str) -> str | None:
        """None for a model without a primus_config."""
        self.get_model_config(model)
        path: str | None = self.resolved.primus_configs.get(model)
        return path

    def check_layout(self, layout: Mapping[str, Any], model: str | None = None, platform: str | None = None,
                     num_gpus: int | None = None) -> LayoutCheck:
        """Whether the program would train with this layout: {"TP": 2, "PP": 1, "DP": 4}, keys as under `parallelism`.
        Without a model, every model must fit; without a platform, the first one counts. Some programs only warn of a
        layout that breaks a rule, as of one that nobody asked for: here it is an error."""
        platform = name_platform(platform or self.get_platforms_list()[0])
        self.get_hardware_config(platform)
        overrides: dict[str, Any] = {"experiment.methodology": LAYOUT_UNDER_CHECK}
        for name in [model] if model else self.get_models_list():
            self.get_model_config(name)
            overrides[f"parallelism.{LAYOUT_UNDER_CHECK}.{name}.{platform}"] = dict(layout)
        if num_gpus is not None:
            overrides[f"hardware.platforms.{platform}.num_gpus"] = num_gpus
        done = run_config_command(["validate", "--json", *self._words, *list_overrides(overrides)])
        if not done.stdout:
            raise ConfigError(done.stderr.strip())
        answer = json.loads(done.stdout)
        warnings = [each for each in answer.get("warnings", ()) if tells_of_broken_layout(each["what"])]
        errors = answer["errors"] + warnings
        return LayoutCheck(answer["valid"] and not errors, tuple(Problem(**error) for error in errors))

    def validate_parallelism(self, tp: int, pp: int, dp: int, num_gpus: int, model: str | None = None,
                             platform: str | None = None) -> LayoutCheck:
        """check_layout with the older scripts' arguments. The program checks more than TP x PP x DP = devices: heads,
        layers and batch too."""
        return self.check_layout({"TP": tp, "PP": pp, "DP": dp}, model, platform, num_gpus)

    def calculate_gradient_accumulation_steps(self, global_batch_size: int, micro_batch_size: int,
                                              data_parallel_size: int) -> int:
        return calculate_gradient_accumulation_steps(global_batch_size, micro_batch_size, data_parallel_size)

    def summarize(self, model: str, platform: str, methodology: str | None = None) -> str:
        """Model, hardware, training and layout in a few lines."""
        chosen, hardware = self.get_model_config(model), self.get_hardware_config(platform)
        training = self.get_training(model, platform, methodology)
        batch, layout = training.training_config, training.parallelism_config
        rows = {"model": f"{chosen.get('full_name', model)}, {training.num_parameters:,} parameters",
                "hardware": f"{hardware.num_gpus} x {hardware.gpu_model}, {name_platform(platform)}",
                "batch": f"{batch.global_batch_size} sequences of {batch.sequence_length} tokens, "
                         f"{batch.micro_batch_size} at once",
                "steps": str(batch.max_steps),
                "strategy": f"{layout.strategy_name}: TP {layout.tensor_model_parallel_size}, "
                            f"PP {layout.pipeline_model_parallel_size}, DP {layout.data_parallel_size}, "
                            f"GA {layout.gradient_accumulation_steps}",
                "precision": f"{training.precision}, recompute {batch.recompute}"}
        return "\n".join(f"{name:<10} {text}" for name, text in rows.items())

    def print_config_summary(self, model: str, platform: str) -> None:
        print(self.summarize(model, platform))

    @staticmethod
    def _choose(section: Settings, kind: str, name: str) -> Settings:
        if name not in section:
            raise ValueError(f"the configuration has no {kind} '{name}'; it has: {', '.join(section) or 'none'}")
        chosen: Settings = section[name]
        return chosen

    def _get_platform(self, platform: str) -> Settings:
        return self._choose(self.resolved.platforms, "platform", platform)

    def _choose_file(self, model: str, framework: str | None, platform: str | None) -> Settings:
        """Without a platform, the one that trains with the framework by default, else the first on which it runs;
        without a framework, the platform's own."""
        self.get_model_config(model)
        platforms = {name_platform(platform): self._get_platform(platform)} if platform else self.resolved.platforms
        wanted = name_framework(framework) if framework is not None else None
        usual = [name for name, facts in platforms.items() if wanted in (None, facts.framework)]
        able = [name for name in platforms if wanted in self.resolved.files[name]]
        if not usual and not able:
            raise ValueError(f"no platform of {', '.join(platforms)} runs the framework '{framework}'")
        chosen = (usual + able)[0]
        names: Settings = self.resolved.files[chosen][wanted or platforms[chosen].framework][model]
        return names


def load_config(config_path: str | os.PathLike[str] | None = None,
                overrides: Mapping[str, Any] | None = None) -> Config:
    """Config(config_path, overrides)."""
    return Config(config_path, overrides)
