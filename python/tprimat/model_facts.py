"""A model's facts for a result: its name, its parameters, and its shape where the program has such models."""

from __future__ import annotations

import re
from typing import Any

from tprimat.expert_facts import SPARSE, describe_sparse
from tprimat.machine import Facts, known

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", *SPARSE)  # and gpt2, whose keys are others
SIZES = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
         "vocab_size", "max_position_embeddings")
ROPE_SCALING = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


def describe_model(model: Any, name: str | None, counts: bool = True) -> Facts:
    """model_info of a result. Without `counts` the parameters are not counted: this rank holds a part of them."""
    config = read_config(model)
    facts: Facts = {"name": name or name_model(model, config), "full_name": config.get("_name_or_path")}
    if counts and hasattr(model, "named_parameters"):
        facts |= count_parameters(model)
    shape = describe_shape(config)
    if shape is not None:
        facts["shape"] = {"name": facts["name"], "full_name": facts["full_name"] or facts["name"], **shape}
    return known(facts)


def read_config(model: Any) -> Facts:
    """A Hugging Face model's config, also of a model inside a LightningModule."""
    for holder in (model, getattr(model, "model", None), getattr(model, "module", None)):
        config: Any = getattr(holder, "config", None)
        if hasattr(config, "to_dict"):
            return {**config.to_dict(), "_name_or_path": getattr(config, "_name_or_path", None)}
    return {}


def name_model(model: Any, config: Facts) -> str:
    """llama for meta-llama/Llama-3.1-8B's type; the class's name for a model of one's own."""
    return config.get("model_type") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(model).__name__).lower()


def count_parameters(model: Any) -> Facts:
    """Each weight once, without the adapters beside it. DeepSpeed's ZeRO-3 keeps the whole count aside."""
    weights = {id(weight): (name, weight) for name, weight in model.named_parameters()}.values()
    sizes = [(name, getattr(weight, "ds_numel", None) or weight.numel(), weight.requires_grad)
             for name, weight in weights]
    trained = sum(size for _, size, trains in sizes if trains)
    facts = {"num_parameters": sum(size for name, size, _ in sizes if "lora_" not in name)}
    return facts if all(trains for _, _, trains in sizes) else {**facts, "trainable_parameters": trained}


def describe_shape(config: Facts) -> Facts | None:
    """None for a family, or a part of one, that a result's shape does not cover."""
    try:
        if config.get("model_type") == "gpt2":
            shape = describe_gpt2(config)
        else:
            shape = describe_llama(config) if config.get("model_type") in FAMILIES else None
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None  # keys of another version of Transformers: no fact
    sizes = [shape[name] for name in SIZES] if shape else []
    return shape if all(type(size) is int and size > 0 for size in sizes) else None


def describe_gpt2(config: Facts) -> Facts | None:
    width, heads = config["n_embd"], config["n_head"]
    if config.get("activation_function", "gelu_new") not in ("gelu_new", "gelu_pytorch_tanh"):
        return None
    return {"num_layers": config["n_layer"], "hidden_size": width,
            "ffn_hidden_size": config.get("n_inner") or 4 * width, "num_attention_heads": heads,
            "num_key_value_heads": heads, "head_dim": width // heads,
            "vocab_size": config["vocab_size"], "max_position_embeddings": config["n_positions"],
            "tied_embeddings": config.get("tie_word_embeddings", True), "qkv_bias": False, "linear_bias": True,
            "qk_norm": False, "norm": "layer", "mlp": "gelu", "position": "learned",
            "rope_theta": 10000.0,  # of no meaning here; as the program writes it
            "norm_eps": config["layer_norm_epsilon"]}


def describe_llama(config: Facts) -> Facts | None:
    family, heads = config["model_type"], config["num_attention_heads"]
    rope = {"rope_theta": config.get("rope_theta"), **(config.get("rope_scaling") or {}),
            **(config.get("rope_parameters") or {})}
    biases = {config.get("attention_bias", False), config.get("mlp_bias", False)}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if (family == "llama" and len(biases) > 1) or kind not in ("default", "llama3") or has_other_layers(config):
        return None
    facts = {"num_layers": config["num_hidden_layers"], "hidden_size": config["hidden_size"],
             "ffn_hidden_size": config["intermediate_size"], "num_attention_heads": heads,
             "num_key_value_heads": config.get("num_key_value_heads") or heads,
             "head_dim": config.get("head_dim") or config["hidden_size"] // heads, "vocab_size": config["vocab_size"],
             "max_position_embeddings": config["max_position_embeddings"],
             "tied_embeddings": config.get("tie_word_embeddings", False), "qkv_bias": family in ("qwen2", "qwen2_moe"),
             "linear_bias": family == "llama" and True in biases, "qk_norm": family in ("qwen3", "qwen3_moe"),
             "norm": "rms", "mlp": "swiglu", "position": "rope", "rope_theta": rope["rope_theta"],
             "norm_eps": config["rms_norm_eps"]}
    if kind == "llama3":
        facts["rope_scaling"] = {"type": kind, **{key: rope[key] for key in ROPE_SCALING}, "beta_fast": 32.0,
                                 "beta_slow": 1.0}  # yarn's, which this kind does not use
    if family in SPARSE:
        facts |= describe_sparse(config)
    window = find_window(config)
    return facts if window is None else {**facts, "sliding_window": window}


def has_other_layers(config: Facts) -> bool:
    """Layers that differ among themselves, or another activation than SwiGLU's."""
    return len(set(config.get("layer_types") or ())) > 1 or config.get("hidden_act", "silu") not in ("silu", "swish")


def find_window(config: Facts) -> int | None:
    """Mistral's sliding window holds where it is stated, Qwen's where it is used."""
    window = config.get("sliding_window")
    used = config["model_type"] in ("mistral", "mixtral") or config.get("use_sliding_window", False)
    return window if window and used and set(config.get("layer_types") or ()) != {"full_attention"} else None
