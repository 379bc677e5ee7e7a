"""TensorPrimat from Python (docs/python.md).

The program's commands; each returns its result as dataclasses:

    run, extract, compare                     train or read logs, and judge the results
    why                                       explain the gap between two of them
    plan, estimate, probe                     predict, count, measure
    claim, published                          judge a stated rate, list what others published
    load_result, load_results                 result files

For a training script of your own, whose steps become a benchmark:

    StepRecorder                              a plain loop
    tprimat.hugging_face.BenchmarkCallback    the Trainer of Hugging Face Transformers; it writes a result file too
    tprimat.lightning.BenchmarkCallback       the Trainer of Lightning, also inside NeMo; likewise
    load_config                               the resolved configuration, with its keys as attributes

The package uses PyTorch, Transformers, Lightning and pandas only if a script does; it requires none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tprimat.calls import (claim, compare, estimate, estimate_memory, extract, extract_all, load_result,
                               load_results, plan, probe, published, run, why)
    from tprimat.config import Config, ConfigError, DotDict, LayoutCheck, Settings, load_config
    from tprimat.errors import (GateFailed, Inconclusive, InputError, MissingComponent, Problem, RunFailed,
                                TimeLimitReached, TprimatError)
    from tprimat.steps import StepRecorder

__all__ = ["Config", "ConfigError", "DotDict", "GateFailed", "Inconclusive", "InputError", "LayoutCheck",
           "MissingComponent", "Problem", "RunFailed", "Settings", "StepRecorder", "TimeLimitReached", "TprimatError",
           "claim", "compare", "estimate", "estimate_memory", "extract", "extract_all", "load_config", "load_result",
           "load_results", "plan", "probe", "published", "run", "why"]

# Each is imported when it is first used: `import tprimat` stays quick, and a copy beside a training has what it needs.
MODULES = {"config": ("Config", "ConfigError", "DotDict", "LayoutCheck", "Settings", "load_config"),
           "steps": ("StepRecorder",),
           "errors": ("GateFailed", "Inconclusive", "InputError", "MissingComponent", "Problem", "RunFailed",
                      "TimeLimitReached", "TprimatError"),
           "calls": ("claim", "compare", "estimate", "estimate_memory", "extract", "extract_all", "load_result",
                     "load_results", "plan", "probe", "published", "run", "why")}
PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"tprimat.{name}")
    if name not in PLACES:
        raise AttributeError(f"module 'tprimat' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"tprimat.{PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
