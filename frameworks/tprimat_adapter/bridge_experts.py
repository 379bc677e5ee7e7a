"""Mixtures of experts, latent attention and prediction layers in Megatron-Bridge, and the load of experts."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch
import torch.distributed as dist
from megatron.bridge.models.llama.llama_provider import LlamaModelProvider
from megatron.bridge.models.transformer_config import MLATransformerConfig
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
from megatron.core.transformer.moe.router import TopKRouter

PREDICTION_LOSS_FACTOR = 0.1  # of the loss of prediction layers: Megatron-LM's own
FUSIONS = ("masked_softmax_fusion", "persist_layer_norm", "bias_dropout_fusion")  # as LlamaModelProvider has them


@dataclasses.dataclass
class LatentProvider(MLATransformerConfig, LlamaModelProvider):
    """A Llama with multi-head latent attention. The names of both are the same in all versions of Megatron-Bridge."""


def make_provider(model: dict[str, Any]) -> Any:
    """What these settings of the section `model` need; they then replace all of it but the fusions."""
    latent = model.get("multi_latent_attention", False)
    provider = LatentProvider() if latent else LlamaModelProvider()
    if latent:
        for name in FUSIONS:
            setattr(provider, name, True)
    if latent or model.get("num_moe_experts"):  # the default has one kind of layer for all, and no latent attention
        provider.transformer_layer_spec = functools.partial(get_gpt_decoder_block_spec, use_transformer_engine=True)
    return provider


def balancing_loss(experts: Any) -> dict[str, Any]:
    """With a bias (DeepSeek-V3) a coefficient above 0 adds the loss of each sequence."""
    coefficient = experts.aux_loss_coefficient
    if experts.balancing == "none" or coefficient == 0:
        return {"moe_router_load_balancing_type": "none", "moe_aux_loss_coeff": 0.0}
    kind = "aux_loss" if experts.balancing == "aux_loss" else "seq_aux_loss"
    return {"moe_router_load_balancing_type": kind, "moe_aux_loss_coeff": coefficient}


def router_settings(experiment: Any) -> dict[str, Any]:
    experts = experiment.model.experts
    grouped = experts.groups > 1
    return {"moe_router_topk": experts.per_token, "moe_router_score_function": experts.router_score,
            "moe_router_pre_softmax": experts.router_score == "softmax" and not experts.normalize_weights,
            "moe_router_topk_scaling_factor": experts.weight_scale if experts.weight_scale != 1 else None,
            "moe_router_num_groups": experts.groups if grouped else None,
            "moe_router_group_topk": experts.groups_per_token if grouped else None, "moe_router_dtype": "fp32",
            **balancing_loss(experts), "moe_z_loss_coeff": experts.z_loss_coefficient or None,
            "moe_router_enable_expert_bias": experts.balancing == "bias",
            "moe_router_force_load_balancing": getattr(experiment, "routing", None) == "balanced"}


def dispatcher_settings(experiment: Any) -> dict[str, Any]:
    dispatcher = getattr(experiment, "dispatcher", None) or "alltoall"
    own = {"moe_shared_expert_overlap": False, "moe_enable_deepep": False}  # a recipe may have them
    if dispatcher in ("deepep", "hybridep"):
        return {**own, "moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": dispatcher}
    return {**own, "moe_token_dispatcher_type": dispatcher}


def capacity_settings(experts: Any) -> dict[str, Any]:
    capacity = getattr(experts, "capacity_factor", None)
    own = {"moe_expert_capacity_factor": capacity, "moe_pad_expert_input_to_capacity": False}
    return own if capacity is None else {**own, "moe_token_drop_policy": "probs"}


def expert_settings(experiment: Any) -> dict[str, Any]:
    model, layout = experiment.model, experiment.parallel
    experts = getattr(model, "experts", None)
    if experts is None:
        return {}
    after = [index - experts.first_dense_layers + 1 for index in range(model.num_layers)]
    latent = getattr(experts, "latent_size", None)
    bias_of_swiglu = {"bias_activation_fusion": False} if model.linear_bias and model.mlp == "swiglu" else {}
    return {"num_moe_experts": experts.count,
            "moe_layer_freq": [int(nth > 0 and nth % experts.layer_interval == 0) for nth in after],
            "moe_ffn_hidden_size": experts.ffn_hidden_size,
            "moe_shared_expert_intermediate_size": experts.shared_ffn_hidden_size or None,
            "moe_shared_expert_gate": experts.shared_gate, **({"moe_latent_size": latent} if latent else {}),
            "moe_grouped_gemm": True, **router_settings(experiment), **capacity_settings(experts),
            **dispatcher_settings(experiment), **bias_of_swiglu,
            "ffn_hidden_size": model.ffn_hidden_size or experts.ffn_hidden_size,
            "expert_model_parallel_size": getattr(layout, "expert_model_parallel_size", None) or 1,
            "expert_tensor_parallel_size": getattr(layout, "expert_tensor_parallel_size", None) or 1}


def latent_settings(model: Any) -> dict[str, Any]:
    latent, scaling = getattr(model, "latent_attention", None), getattr(model, "rope_scaling", None)
    if latent is None:
        return {}
    return {"multi_latent_attention": True, "q_lora_rank": latent.query_rank or None,
            "kv_lora_rank": latent.key_value_rank, "qk_head_dim": model.head_dim,
            "qk_pos_emb_head_dim": latent.rope_head_dim, "v_head_dim": latent.value_head_dim, "qk_layernorm": True,
            "rope_type": "rope" if scaling is None else "yarn",
            "rotary_scaling_factor": 1.0 if scaling is None else scaling.factor, "mscale": 1.0, "mscale_all_dim": 0.0,
            "apply_rope_fusion": False}


def attention_settings(experiment: Any) -> dict[str, Any]:
    """Windows in some layers, and sinks."""
    model = experiment.model
    window, full = (getattr(model, name, None) for name in ("sliding_window", "full_attention_layers"))
    short = window is not None and window < experiment.sequence_length
    return {**({"window_attn_skip_freq": model.num_layers // full} if short and full else {}),
            **({"softmax_type": "learnable"} if getattr(model, "attention_sinks", None) else {})}


def prediction_settings(model: Any) -> dict[str, Any]:
    """Recipes of large models have some, also where the model has none."""
    layers = getattr(model, "prediction_layers", None) or None
    if layers is None:
        return {"mtp_num_layers": None} if getattr(model, "experts", None) else {}
    return {"mtp_num_layers": layers, "mtp_loss_scaling_factor": PREDICTION_LOSS_FACTOR}


def sparse_settings(experiment: Any) -> dict[str, Any]:
    """Of the section `model`, over those of a dense one."""
    return {**latent_settings(experiment.model), **expert_settings(experiment), **attention_settings(experiment),
            **prediction_settings(experiment.model)}


class ExpertLoad:
    """Tokens of the fullest expert / mean, averaged over the layers, from what the routers choose. Each rank counts its
    own tokens in its own layers; prediction layers are not among them."""

    def __init__(self, models: list[Any], config: Any) -> None:
        named = [(name, module) for model in models for name, module in model.named_modules()]
        self.routers = [module for name, module in named if isinstance(module, TopKRouter) and "mtp" not in name]
        self.counts: torch.Tensor | None = None
        drops_none = config.num_moe_experts and config.moe_expert_capacity_factor is None
        self.dropped = 0.0 if drops_none else None
        if config.num_moe_experts:
            self.counts = torch.zeros(config.num_layers, config.num_moe_experts, device=own_device())
        for router in self.routers:
            router.register_forward_hook(self.count)

    def count(self, router: Any, _: Any, chosen: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.counts[router.layer_number - 1] += chosen[1].detach().reshape(-1, self.counts.shape[1]).sum(0)

    def take(self) -> float | None:
        """Of the step that is over; called by all ranks."""
        if self.counts is None:
            return None
        counts = self.counts.double()
        if dist.is_initialized():
            dist.all_reduce(counts)
        self.counts.zero_()
        counts = counts[counts.sum(1) > 0]
        return (counts.amax(1) / counts.mean(1)).mean().item() if len(counts) else None


def own_device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def describe_experts(model: Any) -> dict[str, Any]:
    """What the configuration of a sparse model holds."""
    if not model.num_moe_experts:
        return {}
    exchange = model.moe_token_dispatcher_type
    return {"expert_model_parallel_size": model.expert_model_parallel_size,
            "expert_tensor_parallel_size": model.expert_tensor_parallel_size or model.tensor_model_parallel_size,
            "routing": "balanced" if model.moe_router_force_load_balancing else "learned",
            "dispatcher": model.moe_flex_dispatcher_backend if exchange == "flex" else exchange,
            "num_experts": model.num_moe_experts, "moe_router_topk": model.moe_router_topk}
