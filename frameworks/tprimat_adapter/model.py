"""The model: its shape from config.json beside the experiment, or the weights of a Hugging Face folder."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import torch
import transformers

from tprimat_adapter.attention import choose_implementation, recompute_attention
from tprimat_adapter.experiment import learning_rate_at


def make_model(experiment: Any, spec_path: Any) -> Any:
    """On the processor, and in fp32: autocast does the rest. Without master weights they are rounded to bf16 for good.
    Without a folder the weights are random, from the seed."""
    torch.manual_seed(experiment.seed)
    folder = experiment.checkpoint.initial_weights
    options = {"dtype": torch.float32, "attn_implementation": choose_implementation()}
    if folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, **options)
    else:
        config = transformers.AutoConfig.from_pretrained(pathlib.Path(spec_path).parent, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_config(config, **options)
        scale_residual_products(model)
    if experiment.recompute == "selective":
        recompute_attention(model)
    if getattr(model.config, "output_router_logits", False):
        model.config.output_router_logits = False  # experts.py has the losses that follow from them
    return model if experiment.optimizer.master_weights else model.to(torch.bfloat16)


@torch.no_grad()
def scale_residual_products(model: Any) -> None:
    """The products that write to the residual stream start smaller by the root of twice the layers, as in Megatron-LM and
    the native trainer (Radford et al. 2019, section 2.3). Transformers does so for GPT-2 (c_proj) and not for Llama."""
    for name, weight in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight", "experts.down_proj")):
            weight /= math.sqrt(2 * model.config.num_hidden_layers)


def parameter_groups(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; norms and biases do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [{"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0}]


def make_optimizer(model: Any, optimizer: Any) -> torch.optim.AdamW:
    return torch.optim.AdamW(parameter_groups(model, optimizer.weight_decay), lr=optimizer.learning_rate,
                             betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.epsilon)


def make_schedule(optimizer: torch.optim.Optimizer, experiment: Any) -> torch.optim.lr_scheduler.LambdaLR:
    """Counts updates, as the native trainer and Megatron-LM do: one that is left out does not move it on."""
    settings = experiment.optimizer
    return torch.optim.lr_scheduler.LambdaLR(  # called with 0 for the first update
        optimizer, lambda done: learning_rate_at(settings, done + 1, experiment.steps) / settings.learning_rate)


def mean_loss(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """The mean over all positions, in nats. The logits become fp32 first, as in the native trainer."""
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
