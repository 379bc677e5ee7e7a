"""Mixtures of experts and latent attention as torchtitan's models."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining.stage import PipelineStage
from torchtitan.components import optimizer as titan_optimizer
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models import deepseek_v3, gpt_oss, llama4, qwen3
from torchtitan.models.gpt_oss.infra.parallelize import parallelize_gptoss
from torchtitan.models.llama4.infra.parallelize import parallelize_llama
from torchtitan.models.llama4.model.args import RoPEScalingArgs
from torchtitan.models.moe import FeedForward, MoE, MoEArgs, build_moe
from torchtitan.tools.utils import has_cuda_capability

from titan_models import Family, initialise

BIAS_STEP = 1e-3  # by which the bias of an expert's score moves after each step (arXiv 2412.19437, section 4.2)
LATENT_NAMES = {"attention.wq_a": "self_attn.q_a_proj", "attention.q_norm": "self_attn.q_a_layernorm",
                "attention.wq_b": "self_attn.q_b_proj", "attention.wkv_a": "self_attn.kv_a_proj_with_mqa",
                "attention.kv_norm": "self_attn.kv_a_layernorm", "attention.wkv_b": "self_attn.kv_b_proj"}


def is_sparse(model: Any) -> bool:
    return getattr(model, "experts", None) is not None


def needs_own_family(model: Any) -> bool:
    """Whether a shape is one of those below, and none of titan_models."""
    return is_sparse(model) or getattr(model, "latent_attention", None) is not None


@dataclasses.dataclass
class Shape:
    """What our models have beside torchtitan's arguments: which layers have experts, and how wide each MLP is."""

    sparse_layers: list[bool] = dataclasses.field(default_factory=list)
    dense_width: int = 0
    expert_width: int = 0
    shared_width: int = 0
    enable_weight_tying: bool = False
    initial_weights: str = ""


def shape_settings(experiment: Any) -> dict[str, Any]:
    model = experiment.model
    own = {"dense_width": model.ffn_hidden_size, "initial_weights": experiment.checkpoint.initial_weights}
    if not is_sparse(model):
        return {**own, "sparse_layers": [False] * model.num_layers}
    experts = model.experts
    after = [index - experts.first_dense_layers + 1 for index in range(model.num_layers)]
    return {**own, "sparse_layers": [nth > 0 and nth % experts.layer_interval == 0 for nth in after],
            "expert_width": experts.ffn_hidden_size, "shared_width": experts.shared_ffn_hidden_size}


def router_settings(experiment: Any) -> MoEArgs:
    """Grouped products round to bf16, and need a GPU; elsewhere torchtitan multiplies one expert after the other."""
    experts = experiment.model.experts
    return MoEArgs(
        num_experts=experts.count, num_shared_experts=0, score_func=experts.router_score,
        route_norm=experts.normalize_weights, route_scale=experts.weight_scale, score_before_experts=False,
        top_k=experts.per_token, num_expert_groups=experts.groups if experts.groups > 1 else None,
        num_limited_groups=experts.groups_per_token if experts.groups > 1 else None,
        use_grouped_mm=experiment.precision != "fp32" and has_cuda_capability(9, 0),
        load_balance_coeff=BIAS_STEP if experts.balancing == "bias" else None,
        _debug_force_load_balance=getattr(experiment, "routing", None) == "balanced")


def common_settings(experiment: Any) -> dict[str, Any]:
    model = experiment.model
    sparse = {"moe_args": router_settings(experiment)} if is_sparse(model) else {}
    return {"dim": model.hidden_size, "n_layers": model.num_layers, "n_heads": model.num_attention_heads,
            "vocab_size": model.vocab_size, "norm_eps": model.norm_eps, "rope_theta": model.rope_theta,
            "max_seq_len": model.max_position_embeddings, **sparse}


def fit_blocks(model: torch.nn.Module) -> None:
    """torchtitan's models derive the widths of MLPs from each other, and know one place for layers without experts."""
    args = model.model_args
    for block, sparse in zip(model.layers.values(), args.sparse_layers, strict=True):
        for name in ("moe", "feed_forward"):
            if hasattr(block, name):
                delattr(block, name)
        block.moe_enabled = sparse
        if not sparse:
            block.feed_forward = FeedForward(args.dim, args.dense_width)
            continue
        block.moe = build_moe(args.moe_args, args.dim, args.expert_width, getattr(args, "moe_impl", "standard"))
        if args.shared_width:
            block.moe.shared_experts = FeedForward(args.dim, args.shared_width)


class Fitted:
    """Before a class of torchtitan's models: its blocks as the experiment states them, and our initial weights."""

    def __init__(self, args: Any) -> None:
        super().__init__(args)
        fit_blocks(self)

    def init_weights(self, buffer_device: torch.device | None = None) -> None:
        super().init_weights(buffer_device)
        initialise(self)


@dataclasses.dataclass
class DeepSeekArgs(Shape, deepseek_v3.DeepSeekV3ModelArgs):
    n_kv_heads: int = 0


class DeepSeek(Fitted, deepseek_v3.DeepSeekV3Model):
    hugging_face_names = LATENT_NAMES

    def __init__(self, args: DeepSeekArgs) -> None:
        super().__init__(args)
        self.norm.eps = args.norm_eps  # which torchtitan leaves to PyTorch


@dataclasses.dataclass
class Llama4Args(Shape, llama4.TransformerModelArgs):
    pass


class Llama4(Fitted, llama4.Transformer):
    pass


@dataclasses.dataclass
class SparseQwen3Args(Shape, qwen3.Qwen3ModelArgs):
    pass


class SparseQwen3(Fitted, qwen3.Qwen3Model):
    pass


@dataclasses.dataclass
class GptOssArgs(gpt_oss.GptOssModelArgs):
    enable_weight_tying: bool = False
    initial_weights: str = ""


class GptOss(gpt_oss.GptOssModel):
    def __init__(self, args: GptOssArgs) -> None:
        super().__init__(args)
        self.layers.to(torch.get_default_dtype())  # torchtitan keeps them in bf16, whatever training.dtype is
        self.norm.eps = args.norm_eps

    def init_weights(self, buffer_device: torch.device | None = None) -> None:
        super().init_weights(buffer_device)
        initialise(self)


def deepseek_args(experiment: Any) -> DeepSeekArgs:
    """torchtitan stretches positions where a sequence is longer than those of the first training."""
    model, latent = experiment.model, experiment.model.latent_attention
    scaling = getattr(model, "rope_scaling", None)
    rope = {"original_seq_len": experiment.sequence_length} if scaling is None else {
        "original_seq_len": scaling.original_max_position_embeddings, "rope_factor": scaling.factor,
        "beta_fast": scaling.beta_fast, "beta_slow": scaling.beta_slow}
    return DeepSeekArgs(
        **common_settings(experiment), **shape_settings(experiment), **rope, inter_dim=model.ffn_hidden_size,
        n_kv_heads=model.num_attention_heads, n_dense_layers=model.num_layers, q_lora_rank=latent.query_rank,
        kv_lora_rank=latent.key_value_rank, qk_nope_head_dim=model.head_dim, qk_rope_head_dim=latent.rope_head_dim,
        v_head_dim=latent.value_head_dim)


def llama4_args(experiment: Any) -> Llama4Args:
    model = experiment.model
    scaling = getattr(model, "rope_scaling", None)
    rope = None if scaling is None else RoPEScalingArgs(scaling.factor, scaling.low_freq_factor,
                                                        scaling.high_freq_factor,
                                                        scaling.original_max_position_embeddings)
    return Llama4Args(**common_settings(experiment), **shape_settings(experiment), rope_scaling_args=rope,
                      n_kv_heads=model.num_key_value_heads, interleave_moe_layer_step=1)


def sparse_qwen3_args(experiment: Any) -> SparseQwen3Args:
    model = experiment.model
    return SparseQwen3Args(
        **common_settings(experiment), **shape_settings(experiment), n_kv_heads=model.num_key_value_heads,
        head_dim=model.head_dim, hidden_dim=model.ffn_hidden_size, qk_norm=model.qk_norm, moe_enabled=True,
        moe_inter_dim=model.experts.ffn_hidden_size)


def gpt_oss_args(experiment: Any) -> GptOssArgs:
    model = experiment.model
    scaling = getattr(model, "rope_scaling", None)
    rope = {"rope_factor": 1.0} if scaling is None else {
        "original_seq_len": scaling.original_max_position_embeddings, "rope_factor": scaling.factor,
        "ntk_alpha": scaling.beta_slow, "ntk_beta": scaling.beta_fast}
    settings = common_settings(experiment)
    settings["moe_args"].gate_bias = True
    return GptOssArgs(
        **settings, **rope, head_dim=model.head_dim, n_kv_heads=model.num_key_value_heads,
        moe_inter_dim=model.experts.ffn_hidden_size, sliding_window_size=model.sliding_window,
        initial_weights=experiment.checkpoint.initial_weights)


FAMILIES = {"deepseek_v3": Family(DeepSeek, deepseek_args, deepseek_v3.parallelize_deepseekv3, pipeline_llm),
            "llama4": Family(Llama4, llama4_args, parallelize_llama, pipeline_llm),
            "qwen3": Family(SparseQwen3, sparse_qwen3_args, qwen3.parallelize_qwen3, None),
            "gpt_oss": Family(GptOss, gpt_oss_args, parallelize_gptoss, None)}


def count_on_processor() -> None:
    """On processors PyTorch has no histogram of whole numbers, by which torchtitan counts the tokens of experts."""
    own = torch.histc
    torch.histc = lambda values, **bins: own(values.float(), **bins).to(values.dtype)


def moes(model_parts: list[torch.nn.Module]) -> list[MoE]:
    blocks = (block for part in model_parts for block in part.layers.values())
    return [block.moe for block in blocks if getattr(block, "moe_enabled", False)]


def count_steps_alone() -> None:
    """A pipeline of PyTorch 2.13 learns its shapes by a pass before the first step, which torchtitan would count."""
    own = getattr(PipelineStage, "_post_metadata_inference_cleanup", None)

    def clean_up(stage: Any) -> None:
        own(stage)
        for moe in moes([stage.submod]):
            moe.tokens_per_expert.zero_()
    if own is not None:
        PipelineStage._post_metadata_inference_cleanup = clean_up


def balance_experts(model_parts: list[torch.nn.Module], parallel_dims: Any, optimizers: Any) -> Any:
    """torchtitan's own hook, which moves the biases of experts before each update, on optimizers of ours."""
    own, titan_optimizer.build_optimizers = titan_optimizer.build_optimizers, lambda **_: optimizers
    try:
        return titan_optimizer.build_optimizers_with_moe_load_balancing(model_parts, None, parallel_dims)
    finally:
        titan_optimizer.build_optimizers = own


class ExpertLoad:
    """Tokens of the fullest expert / mean, averaged over the layers: torchtitan counts an expert's tokens in a buffer.
    Read before each update, which is when torchtitan's hook clears the buffers."""

    def __init__(self, model_parts: list[torch.nn.Module], parallel_dims: Any) -> None:
        self.moes, self.dims, self.value = moes(model_parts), parallel_dims, None

    def read(self, *_: Any, **__: Any) -> None:
        device = self.moes[0].tokens_per_expert.device if self.moes else "cpu"
        total = torch.zeros(2, dtype=torch.float64, device=device)
        if self.moes:
            counts = torch.vstack([moe.tokens_per_expert for moe in self.moes]).double()
            self.add_up(counts, "loss")
            total[0], total[1] = (counts.amax(1) / counts.mean(1)).sum(), len(counts)
        self.add_up(total, "pp")
        self.value = (total[0] / total[1]).item()
        for moe in self.moes:
            if moe.load_balance_coeff is None:  # nobody else clears them
                moe.tokens_per_expert.zero_()

    def add_up(self, values: torch.Tensor, mesh_name: str) -> None:
        mesh = self.dims.get_optional_mesh(mesh_name)
        if mesh is not None:
            dist.all_reduce(values, group=mesh.get_group())
