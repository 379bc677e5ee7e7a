"""A recipe of Megatron-Bridge for Primus' back end megatron_bridge.

An experiment file names this module as `recipe` and pretrain_config as `flavor`. It takes every setting of the file or
ends the run.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import torch
from megatron.core.activations import fast_gelu
from megatron.core.transformer.enums import AttnBackend

from tprimat_adapter.bridge import SampleFile, fill_config, override, start_precision
from tprimat_adapter.experiment import load_experiment
from tprimat_adapter.samples import prepare_samples

ACTIVATIONS = {"silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, "fast_gelu": fast_gelu}


def model_settings(stated: dict[str, Any]) -> dict[str, Any]:
    """YAML has no functions, enumerations and tuples."""
    window = stated["window_size"]
    return {**stated, "activation_func": ACTIVATIONS[stated["activation_func"]],
            "attention_backend": AttnBackend[stated["attention_backend"]],
            "window_size": None if window is None else tuple(window)}


def samples_of(data: dict[str, Any]) -> pathlib.Path:
    """The tokens of the experiment beside the file, which must be of the same data."""
    spec = pathlib.Path(data["train_spec"])
    of_spec = load_experiment(spec).data
    if (of_spec.dataset, of_spec.split) != (data["dataset"], data["split"]):
        sys.exit(f"error: {spec} is of the data set {of_spec.dataset}, not of {data['dataset']}; run tprimat again")
    return prepare_samples(spec)


def pretrain_config(settings: dict[str, Any], data: dict[str, Any], precision_config: str,
                    nemo_recipe: str | None = None, **_: Any) -> Any:
    """Primus passes all keys of the file; those that only Primus reads are left to it."""
    sections = {**settings, "model": model_settings(settings["model"])}
    precision = start_precision(precision_config)
    override(precision, sections.pop("mixed_precision"), "mixed_precision")
    cfg = fill_config(nemo_recipe, sections, precision)
    cfg.dataset = SampleFile(path=str(samples_of(data)), seq_length=settings["model"]["seq_length"])
    return cfg
