"""The configuration of Megatron-Bridge: what it starts from, and how settings and tokens get into it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pathlib
import sys
from typing import Any

import numpy
import torch
from megatron.bridge.training import config as bridge
from megatron.bridge.training.mixed_precision import MixedPrecisionConfig, get_mixed_precision_config

from tprimat_adapter.bridge_experts import make_provider
from tprimat_adapter.samples import Samples


class Tokens(torch.utils.data.Dataset):
    """Sample i of the training, in the order in which the native trainer reads them."""

    def __init__(self, tokens: Any) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = torch.from_numpy(numpy.array(self.tokens[index], dtype=numpy.int64))
        length = len(row) - 1
        return {"tokens": row[:-1], "labels": row[1:], "loss_mask": torch.ones(length),
                "position_ids": torch.arange(length)}


@dataclasses.dataclass(kw_only=True)
class SampleFile(bridge.DatasetProvider):
    """The file that `tprimat data samples` wrote; one pass over it, as Megatron's ranks share out a batch."""

    path: str
    seq_length: int
    dataloader_type: str = "single"
    skip_getting_attention_mask_from_dataset: bool = True

    def build_datasets(self, context):
        return Tokens(Samples(pathlib.Path(self.path)).tokens), None, None


class OwnShape:
    """Stands for AutoBridge in a recipe's module, so that the recipe gets our shape and downloads no config.json."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    def from_hf_pretrained(self, *_: Any, **__: Any) -> OwnShape:
        return self

    def to_megatron_provider(self, *_: Any, **__: Any) -> Any:
        return self.provider


def start_from_recipe(name: str, provider: Any) -> Any:
    """llama31_8b.pretrain_recipe of NeMo 2 is llama31_8b_pretrain_config in Megatron-Bridge."""
    import megatron.bridge.recipes as recipes
    ending = "_pretrain_config"
    found = getattr(recipes, name.split(".")[0] + ending, None)
    if not name.endswith(".pretrain_recipe") or found is None:
        known = ", ".join(sorted(each.removesuffix(ending) for each in dir(recipes) if each.endswith(ending)))
        sys.exit(f"error: Megatron-Bridge has no recipe for nemo_recipe {name}; leave it out, or name one of these "
                 f"with .pretrain_recipe behind it: {known}")
    module = importlib.import_module(inspect.unwrap(found).__module__)
    original, module.AutoBridge = module.AutoBridge, OwnShape(provider)
    try:
        return found()
    finally:
        module.AutoBridge = original


def start_plain(provider: Any) -> Any:
    """Megatron-Bridge's own defaults."""
    return bridge.ConfigContainer(
        model=provider, train=bridge.TrainingConfig(), optimizer=bridge.OptimizerConfig(),
        scheduler=bridge.SchedulerConfig(), ddp=bridge.DistributedDataParallelConfig(), logger=bridge.LoggerConfig(),
        tokenizer=bridge.TokenizerConfig(), checkpoint=bridge.CheckpointConfig(), dataset=None)


def override(section: Any, settings: dict[str, Any], name: str) -> None:
    """A version of Megatron-Bridge that lacks a setting must not train without it."""
    for key, value in settings.items():
        if not hasattr(section, key):
            sys.exit(f"error: this Megatron-Bridge has no setting {name}.{key}")
        setattr(section, key, value)


def layout_of(model: Any) -> tuple[Any, ...]:
    return (model.tensor_model_parallel_size, model.context_parallel_size, model.expert_model_parallel_size,
            model.sequence_parallel)


def keep_states_exact(optimizer: Any) -> None:
    """Recipes of large models keep gradients and moments in bf16; an experiment's are in fp32."""
    optimizer.use_precision_aware_optimizer = False
    for name in ("main_params_dtype", "main_grads_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"):
        setattr(optimizer, name, torch.float32)


def fill_config(recipe: str | None, sections: dict[str, dict[str, Any]], precision: Any) -> Any:
    """The sections' settings over a recipe's, or over Megatron-Bridge's own; still without a dataset."""
    provider = make_provider(sections["model"])
    cfg = start_from_recipe(recipe, provider) if recipe else start_plain(provider)
    tuned_for = layout_of(cfg.model)
    for name, settings in sections.items():
        override(getattr(cfg, name), settings, name)
    if layout_of(cfg.model) != tuned_for:
        cfg.comm_overlap = None  # its buffers were chosen for the recipe's layout
    keep_states_exact(cfg.optimizer)
    cfg.mixed_precision = precision
    return cfg


def start_precision(name: str) -> Any:
    """One of Megatron-Bridge's, by its name. It has none for fp32, which Transformer Engine may multiply in tf32."""
    if name == "fp32":
        return MixedPrecisionConfig(fp32=True, params_dtype=torch.float32, pipeline_dtype=torch.float32)
    return get_mixed_precision_config(name)
