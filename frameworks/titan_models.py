"""The shapes of an experiment as torchtitan's models, with the suite's initial weights."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
from typing import Any

import torch
from safetensors import safe_open
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models import llama3, llama4, qwen3
from torchtitan.models.llama3.infra import parallelize as llama3_sharding
from torchtitan.models.llama3.model.args import RoPEScalingArgs
from torchtitan.models.llama4.infra import parallelize as qwen3_sharding

STANDARD_DEVIATION = 0.02  # of initial weights, as in Megatron-LM
RESIDUAL_PRODUCTS = ("attention.wo.weight", "feed_forward.w2.weight", "shared_experts.w2.weight", "experts.w2",
                     "experts.mlp2_weight")
WRAPPERS = re.compile(r"_checkpoint_wrapped_module\.|_orig_mod\.")  # in names: of recomputation, of torch.compile
HUGGING_FACE = {"tok_embeddings": "embed_tokens", "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
                "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj",
                "attention.q_norm": "self_attn.q_norm", "attention.k_norm": "self_attn.k_norm",
                "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj",
                "feed_forward.w3": "mlp.up_proj", "attention_norm": "input_layernorm",
                "ffn_norm": "post_attention_layernorm", "norm": "norm", "moe.router.gate": "mlp.gate",
                "moe.shared_experts.w1": "mlp.shared_experts.gate_proj",
                "moe.shared_experts.w2": "mlp.shared_experts.down_proj",
                "moe.shared_experts.w3": "mlp.shared_experts.up_proj", "moe.experts": "mlp.experts"}
EXPERT_PRODUCTS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


def own_part(weight: torch.Tensor) -> torch.Tensor:
    return weight.to_local() if isinstance(weight, DTensor) else weight


def put(weight: torch.Tensor, whole: torch.Tensor) -> None:
    """Every rank has the whole weight and keeps its part, so that the values do not depend on the layout."""
    if isinstance(weight, DTensor):
        whole = distribute_tensor(whole, weight.device_mesh, weight.placements, src_data_rank=None)
    own_part(weight).copy_(own_part(whole))


def draw_weights(model: torch.nn.Module) -> None:
    """The suite's random weights; torchtitan's own embedding has a deviation of 1."""
    torch.manual_seed(torch.initial_seed())
    for name, weight in model.named_parameters():
        if name.endswith(("bias", "sinks")):
            torch.nn.init.zeros_(weight)
        elif weight.ndim > 1:
            residual = math.sqrt(2 * model.model_args.n_layers) if name.endswith(RESIDUAL_PRODUCTS) else 1
            whole = torch.empty(weight.shape, dtype=torch.float32, device=own_part(weight).device)
            put(weight, whole.normal_(std=STANDARD_DEVIATION / residual))


def hugging_face_name(name: str, own_names: dict[str, str]) -> str:
    """layers.3.attention.wq.weight -> model.layers.3.self_attn.q_proj.weight"""
    module, kind = WRAPPERS.sub("", name).rsplit(".", 1)
    if module == "output":
        return f"lm_head.{kind}"
    layer, rest = re.match(r"(layers\.\d+\.|)(.*)", module).groups()
    return f"model.{layer}{own_names.get(rest) or HUGGING_FACE[rest]}.{kind}"


def alternate_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """torchtitan's llama3 and llama4 turn neighbouring elements of a head, Hugging Face those of its two halves."""
    return weight.view(heads, 2, -1, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


class WeightFiles:
    """The weights of a Hugging Face folder, by their names there. Mixtral has names of its own for its experts."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        files = [safe_open(path, "pt") for path in sorted(pathlib.Path(folder).glob("*.safetensors"))]
        self.places = {name: file for file in files for name in file.keys()}
        self.is_mixtral = any(".block_sparse_moe." in name for name in self.places)

    def read(self, name: str, wanted: tuple[int, ...]) -> torch.Tensor:
        name = name.replace(".mlp.", ".block_sparse_moe.") if self.is_mixtral else name
        shape = tuple(self.places[name].get_slice(name).get_shape()) if name in self.places else None
        if shape != wanted:
            raise SystemExit(f"error: initial_weights {self.folder}: {name} has the shape {shape}, but the model needs "
                             f"{wanted}; name the folder of a model of this shape")
        return self.places[name].get_tensor(name)

    def read_experts(self, name: str, wanted: tuple[int, ...]) -> torch.Tensor:
        """All of a layer: model.layers.3.mlp.experts.w1, which the folder has expert by expert."""
        experts, product = name.rsplit(".", 1)
        kind = product if self.is_mixtral else EXPERT_PRODUCTS[product]
        return torch.stack([self.read(f"{experts}.{index}.{kind}.weight", wanted[1:]) for index in range(wanted[0])])

    def read_biases(self, model: torch.nn.Module) -> None:
        """Those by which a trained router keeps the load even."""
        for name, values in model.named_buffers():
            source = f"model.{WRAPPERS.sub('', name)}".replace(".moe.expert_bias", ".mlp.gate.e_score_correction_bias")
            if name.endswith(".moe.expert_bias") and source in self.places:
                values.copy_(self.read(source, tuple(values.shape)))


def read_weights(model: torch.nn.Module, folder: str) -> None:
    """Of a Hugging Face folder, one weight after the other."""
    files, args = WeightFiles(folder), model.model_args
    pairs = isinstance(args, (LlamaArgs, llama4.TransformerModelArgs))
    heads = {"wq": args.n_heads, "wk": args.n_kv_heads} if pairs else {}
    for name, weight in model.named_parameters():
        source = hugging_face_name(name, getattr(model, "hugging_face_names", {}))
        read = files.read_experts if ".moe.experts." in name else files.read
        whole, product = read(source, tuple(weight.shape)), name.split(".")[-2]
        put(weight, alternate_halves(whole, heads[product]) if product in heads else whole)
    files.read_biases(model)


def initialise(model: torch.nn.Module) -> None:
    args = model.model_args
    if args.enable_weight_tying:
        model.output.weight = model.tok_embeddings.weight
    if args.initial_weights:
        read_weights(model, args.initial_weights)
    else:
        draw_weights(model)


@dataclasses.dataclass
class LlamaArgs(llama3.TransformerModelArgs):
    """Beside torchtitan's: what Qwen 2.5 and the small models of Llama 3.2 have."""

    qkv_bias: bool = False
    enable_weight_tying: bool = False
    initial_weights: str = ""


class Llama(llama3.Transformer):
    def __init__(self, args: LlamaArgs) -> None:
        super().__init__(args)
        for layer in self.layers.values() if args.qkv_bias else ():
            for product in (layer.attention.wq, layer.attention.wk, layer.attention.wv):
                product.bias = torch.nn.Parameter(torch.empty(product.out_features))
        if args.enable_weight_tying:
            self.output.weight = self.tok_embeddings.weight

    def init_weights(self, buffer_device: torch.device | None = None) -> None:
        super().init_weights(buffer_device)
        initialise(self)


@dataclasses.dataclass
class Qwen3Args(qwen3.Qwen3ModelArgs):
    initial_weights: str = ""


class Qwen3(qwen3.Qwen3Model):
    def init_weights(self, buffer_device: torch.device | None = None) -> None:
        super().init_weights(buffer_device)
        initialise(self)


def llama_args(experiment: Any) -> LlamaArgs:
    """torchtitan derives the width of the MLP: a third of 8 widths, times a factor, up to a multiple of a number. Here
    the factor leaves no more than the width that is wanted, and that is the number."""
    model = experiment.model
    scaling = getattr(model, "rope_scaling", None)
    rope = RoPEScalingArgs(scaling_factor=1.0) if scaling is None else RoPEScalingArgs(
        scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_max_position_embeddings)
    derived = 8 * model.hidden_size // 3
    return LlamaArgs(dim=model.hidden_size, n_layers=model.num_layers, n_heads=model.num_attention_heads,
                     n_kv_heads=model.num_key_value_heads, vocab_size=model.vocab_size,
                     multiple_of=model.ffn_hidden_size, ffn_dim_multiplier=min(1.0, model.ffn_hidden_size / derived),
                     norm_eps=model.norm_eps, rope_theta=model.rope_theta, rope_scaling_args=rope,
                     max_seq_len=model.max_position_embeddings, qkv_bias=model.qkv_bias,
                     enable_weight_tying=model.tied_embeddings, initial_weights=experiment.checkpoint.initial_weights)


def qwen3_args(experiment: Any) -> Qwen3Args:
    model = experiment.model
    return Qwen3Args(
        dim=model.hidden_size, n_layers=model.num_layers, n_heads=model.num_attention_heads,
        n_kv_heads=model.num_key_value_heads, head_dim=model.head_dim, hidden_dim=model.ffn_hidden_size,
        vocab_size=model.vocab_size, norm_eps=model.norm_eps, rope_theta=model.rope_theta, qk_norm=model.qk_norm,
        max_seq_len=model.max_position_embeddings, enable_weight_tying=model.tied_embeddings,
        initial_weights=experiment.checkpoint.initial_weights)


def keep_tied(parallelize: Any, sharding: Any) -> Any:
    """FSDP2 takes weights that two modules share in one group only, and torchtitan makes one for each of the two. Here
    the group of the whole model has both."""
    def spread(model: torch.nn.Module, parallel_dims: Any, config: Any) -> torch.nn.Module:
        def shard(module: Any, **options: Any) -> Any:
            if module is model:
                model.output.weight = model.tok_embeddings.weight  # again: tensor parallelism made two of one
            elif module is model.tok_embeddings or isinstance(module, list):  # norm and head
                return module
            return fully_shard(module, **options)
        sharding.fully_shard = shard if model.model_args.enable_weight_tying else fully_shard
        return parallelize(model, parallel_dims, config)
    return spread


@dataclasses.dataclass
class Family:
    """One of torchtitan's models, how we describe a shape to it, and how it is spread over ranks."""

    model: type
    describe: Any
    parallelize: Any
    pipeline: Any


FAMILIES = {"llama3": Family(Llama, llama_args, keep_tied(llama3.parallelize_llama, llama3_sharding), pipeline_llm),
            "qwen3": Family(Qwen3, qwen3_args, keep_tied(qwen3.parallelize_qwen3, qwen3_sharding), None)}
