"""The experts of a model of Transformers, as a result's shape states them."""

from __future__ import annotations

from tprimat.machine import Facts

SPARSE = ("mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3")
PLAIN = {"shared_ffn_hidden_size": 0, "shared_gate": False, "first_dense_layers": 0, "layer_interval": 1,
         "router_score": "softmax", "normalize_weights": True, "weight_scale": 1.0, "groups": 1, "groups_per_token": 1,
         "balancing": "none", "aux_loss_coefficient": 0.0, "z_loss_coefficient": 0.0}


def describe_sparse(config: Facts) -> Facts:
    """The keys of a shape that a dense model does not have, and those that mean something else here."""
    family = config["model_type"]
    if family == "deepseek_v3":
        return describe_deepseek(config)
    experts = {**PLAIN, **describe_balancing(config), "per_token": config["num_experts_per_tok"],
               "count": config.get("num_experts") or config["num_local_experts"]}
    if family == "mixtral":
        return {"experts": {**experts, "ffn_hidden_size": config["intermediate_size"]}}
    if config.get("mlp_only_layers"):
        raise ValueError("dense layers in any place")
    experts |= {"ffn_hidden_size": config["moe_intermediate_size"], "layer_interval": config["decoder_sparse_step"],
                "normalize_weights": config["norm_topk_prob"]}
    if family == "qwen2_moe":
        experts |= {"shared_ffn_hidden_size": config["shared_expert_intermediate_size"], "shared_gate": True}
    return {"experts": experts}


def describe_balancing(config: Facts) -> Facts:
    """Transformers adds a loss of the balance where it puts out the routers' logits."""
    coefficient = config.get("router_aux_loss_coef", 0.0)
    if not (config.get("output_router_logits") and coefficient):
        return {}
    return {"balancing": "aux_loss", "aux_loss_coefficient": coefficient}


def describe_deepseek(config: Facts) -> Facts:
    width = config["moe_intermediate_size"]
    experts = {**PLAIN, "count": config.get("n_routed_experts") or config["num_local_experts"],
               "per_token": config["num_experts_per_tok"], "ffn_hidden_size": width,
               "shared_ffn_hidden_size": config["n_shared_experts"] * width,
               "first_dense_layers": config["first_k_dense_replace"], "router_score": "sigmoid",
               "normalize_weights": config["norm_topk_prob"], "weight_scale": config["routed_scaling_factor"],
               "groups": config["n_group"], "groups_per_token": config["topk_group"]}
    latent = {"query_rank": config["q_lora_rank"] or 0, "key_value_rank": config["kv_lora_rank"],
              "rope_head_dim": config["qk_rope_head_dim"], "value_head_dim": config["v_head_dim"]}
    return {"experts": experts, "latent_attention": latent, "head_dim": config["qk_nope_head_dim"]}
