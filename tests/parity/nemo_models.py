"""The models that NeMo's adapter describes, built by Megatron Core on the CPU, compute what those of Hugging Face compute.

Only the layers are Megatron Core's plain ones where a GPU has Transformer Engine's.
"""

import contextlib
from types import SimpleNamespace

SMALL = {"num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 160, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "vocab_size": 509, "max_position_embeddings": 64}
SHAPES = {"llama": {}, "llama, other rates": {"rope_theta": 1e4, "norm_eps": 1e-3},
          "llama 3.1": {"rope_scaling": {"type": "llama3", "factor": 8.0}}, "llama 3.2": {"rope_scaling": {"type": "llama3", "factor": 32.0}},
          "llama, linear": {"rope_scaling": {"type": "linear", "factor": 4.0}}, "qwen 2.5": {"tied_embeddings": True, "qkv_bias": True},
          "qwen 3": {"qk_norm": True, "head_dim": 24},
          "gpt": {"norm": "layer", "mlp": "gelu", "position": "learned", "linear_bias": True, "tied_embeddings": True,
                  "num_key_value_heads": 4}}
EXPERTS = {"count": 8, "per_token": 2, "ffn_hidden_size": 48, "shared_ffn_hidden_size": 0, "shared_gate": False, "first_dense_layers": 0,
           "layer_interval": 1, "router_score": "softmax", "normalize_weights": True, "weight_scale": 1.0, "groups": 1,
           "groups_per_token": 1, "balancing": "none", "aux_loss_coefficient": 0.0, "z_loss_coefficient": 0.0}
LATENT = {"query_rank": 32, "key_value_rank": 24, "rope_head_dim": 8, "value_head_dim": 16}
SPARSE = {"mixtral": {"experts": EXPERTS},
          "qwen 3 moe": {"qk_norm": True, "head_dim": 24, "experts": {**EXPERTS, "count": 16, "per_token": 4}},
          "qwen 3 moe, weights as they are": {"qk_norm": True, "head_dim": 24, "experts": {**EXPERTS, "normalize_weights": False}},
          "deepseek v3": {"num_key_value_heads": 4, "norm_eps": 1e-6, "latent_attention": LATENT, "experts": {
              **EXPERTS, "count": 16, "per_token": 4, "shared_ffn_hidden_size": 96, "first_dense_layers": 1, "router_score": "sigmoid",
              "weight_scale": 2.5, "groups": 4, "groups_per_token": 2, "balancing": "bias"}}}
SHAPES |= SPARSE
LENGTH, TOLERANCE = 64, 2e-5  # of logits up to 4, in fp32


def stand_for_a_gpu():
    """Megatron Core asks these of every machine."""
    import torch
    from megatron.core import tensor_parallel
    from megatron.core.transformer import attention, multi_latent_attention
    from megatron.core.transformer.moe import moe_utils
    attention.TELinear = multi_latent_attention.TELinear = type("TELinear", (), {})
    moe_utils.te_general_gemm = None
    torch.cuda.current_device = lambda: "cpu"
    tensor_parallel.get_cuda_rng_tracker = lambda *_, **__: SimpleNamespace(fork=lambda *_, **__: contextlib.nullcontext())


def local_layers(config, vp_stage=None):
    """As the adapter chooses them, without Transformer Engine. Megatron Core's own attention takes no widths of latent attention, which
    here are those of a head."""
    from megatron.bridge.models.gpt_provider import local_layer_spec
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    if not (config.multi_latent_attention or config.num_moe_experts):
        return local_layer_spec(config)
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization=config.normalization, vp_stage=vp_stage)
    for layer in block.layer_specs if config.multi_latent_attention else ():
        layer.submodules.self_attention.submodules.core_attention = type("Attention", (DotProductAttention,), {
            "__init__": lambda self, *words, k_channels=0, v_channels=0, **named: DotProductAttention.__init__(self, *words, **named)})
    return block


def build_megatron(module, adapter, shape, changed):
    from megatron.core.process_groups_config import ProcessGroupCollection
    spec = changed(changed(adapter.spec, "precision", "tf32"), "sequence_length", LENGTH)
    spec["model"], spec["parallel"] = shape, {**spec["parallel"], "tensor_model_parallel_size": 1}
    provider = adapter.make(module, spec, {}).model
    provider.transformer_layer_spec, provider.use_cpu_initialization = local_layers, True
    provider.moe_grouped_gemm, provider.moe_token_dispatcher_type = False, "allgather"  # the others need a GPU
    provider.masked_softmax_fusion = provider.persist_layer_norm = provider.bias_dropout_fusion = False
    provider.vocab_size = shape["vocab_size"]  # as its setup takes it from the tokenizer
    provider._pg_collection = ProcessGroupCollection.use_mpu_process_groups()
    return provider.provide(pre_process=True, post_process=True)


def build_gpt2(shape):
    import transformers
    return transformers.GPT2Config(vocab_size=shape["vocab_size"], n_embd=shape["hidden_size"], n_inner=shape["ffn_hidden_size"],
                                   n_layer=shape["num_layers"], n_head=shape["num_attention_heads"], bos_token_id=0, eos_token_id=0,
                                   n_positions=shape["max_position_embeddings"], layer_norm_epsilon=shape["norm_eps"])


def describe_experts(transformers, shape, experts):
    """The family in Hugging Face's code, and what its configuration has of experts."""
    width, common = experts["ffn_hidden_size"], {"num_experts_per_tok": experts["per_token"]}
    if latent := shape.get("latent_attention"):
        return transformers.DeepseekV3Config, {
            **common, "n_routed_experts": experts["count"], "moe_intermediate_size": width, "q_lora_rank": latent["query_rank"],
            "n_shared_experts": experts["shared_ffn_hidden_size"] // width, "kv_lora_rank": latent["key_value_rank"],
            "qk_rope_head_dim": latent["rope_head_dim"], "qk_nope_head_dim": shape["head_dim"], "v_head_dim": latent["value_head_dim"],
            "routed_scaling_factor": experts["weight_scale"], "n_group": experts["groups"], "topk_group": experts["groups_per_token"],
            "head_dim": latent["rope_head_dim"], "first_k_dense_replace": experts["first_dense_layers"], "norm_topk_prob": True}
    if not shape["qk_norm"]:
        return transformers.MixtralConfig, {**common, "num_local_experts": experts["count"], "intermediate_size": width}
    return transformers.Qwen3MoeConfig, {**common, "num_experts": experts["count"], "moe_intermediate_size": width,
                                         "norm_topk_prob": experts["normalize_weights"]}


def build_hugging_face(shape):
    import torch
    import transformers
    family = transformers.Qwen2Config if shape["qkv_bias"] else transformers.Qwen3Config if shape["qk_norm"] else transformers.LlamaConfig
    rope = {"rope_theta": shape["rope_theta"], "rope_type": "default"}
    if scaling := shape.get("rope_scaling"):
        rope.update(rope_type=scaling["type"], factor=scaling["factor"])
    if rope["rope_type"] == "llama3":
        rope.update(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
    settings = {"vocab_size": shape["vocab_size"], "hidden_size": shape["hidden_size"], "intermediate_size": shape["ffn_hidden_size"],
                "num_hidden_layers": shape["num_layers"], "num_attention_heads": shape["num_attention_heads"],
                "num_key_value_heads": shape["num_key_value_heads"], "head_dim": shape["head_dim"], "max_position_embeddings": 131072,
                "rms_norm_eps": shape["norm_eps"], "tie_word_embeddings": shape["tied_embeddings"], "rope_parameters": rope}
    if experts := shape.get("experts"):
        family, special = describe_experts(transformers, shape, experts)
        settings |= special
    config = build_gpt2(shape) if shape["position"] == "learned" else family(**settings)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    for weight in model.parameters():
        weight.data.normal_(0, 0.1) if weight.ndim > 1 else weight.data.uniform_(0.5, 1.5)
    for name, bias in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            bias.data.uniform_(-0.1, 0.1)
    return model


def mix(shape, query, key, value):
    """Megatron's order of rows: of each group its queries, its key and its value."""
    import torch
    groups = shape["num_key_value_heads"]
    parts = [part.reshape(groups, -1, *part.shape[1:]) for part in (query, key, value)]
    return torch.cat(parts, 1).flatten(0, 1)


def weights_of_attention(weights, shape, to, source):
    names = {to + "input_layernorm.weight": source + "input_layernorm.weight",
             to + "self_attention.linear_proj.weight": source + "self_attn.o_proj.weight"}
    if shape.get("latent_attention"):
        of_latent = {"linear_q_down_proj": "q_a_proj", "q_layernorm": "q_a_layernorm", "linear_q_up_proj": "q_b_proj",
                     "linear_kv_down_proj": "kv_a_proj_with_mqa", "kv_layernorm": "kv_a_layernorm", "linear_kv_up_proj": "kv_b_proj"}
        names |= {f"{to}self_attention.{here}.weight": f"{source}self_attn.{there}.weight" for here, there in of_latent.items()}
        return {here: weights[there] for here, there in names.items()}
    if shape["qk_norm"]:
        names |= {f"{to}self_attention.{each}_layernorm.weight": f"{source}self_attn.{each}_norm.weight" for each in "qk"}
    found = {here: weights[there] for here, there in names.items()}
    for kind in ["weight", "bias"] if shape["qkv_bias"] else ["weight"]:
        found[f"{to}self_attention.linear_qkv.{kind}"] = mix(shape, *(weights[f"{source}self_attn.{each}_proj.{kind}"] for each in "qkv"))
    return found


def weights_of_mlp(weights, to, source):
    import torch
    return {to + "linear_fc1.weight": torch.cat([weights[f"{source}{each}_proj.weight"] for each in ("gate", "up")]),
            to + "linear_fc2.weight": weights[source + "down_proj.weight"]}


def weights_of_experts(weights, to, source):
    found = {to + "router.weight": weights[source + "gate.weight"]}
    if source + "gate.e_score_correction_bias" in weights:
        found[to + "router.expert_bias"] = weights[source + "gate.e_score_correction_bias"]
    for here, there in (("linear_fc1", "gate_up_proj"), ("linear_fc2", "down_proj")):
        for index, weight in enumerate(weights[f"{source}experts.{there}"]):
            found[f"{to}experts.local_experts.{index}.{here}.weight"] = weight
    if source + "shared_experts.up_proj.weight" in weights:
        found |= weights_of_mlp(weights, to + "shared_experts.", source + "shared_experts.")
    return found


def weights_of_llama(weights, shape):
    names = {"embedding.word_embeddings.weight": "model.embed_tokens.weight", "decoder.final_layernorm.weight": "model.norm.weight"}
    if not shape["tied_embeddings"]:
        names["output_layer.weight"] = "lm_head.weight"
    found = {}
    for layer in range(shape["num_layers"]):
        to, source = f"decoder.layers.{layer}.", f"model.layers.{layer}."
        names[to + "pre_mlp_layernorm.weight"] = source + "post_attention_layernorm.weight"
        weights_here = weights_of_experts if source + "mlp.gate.weight" in weights else weights_of_mlp
        found |= weights_of_attention(weights, shape, to, source) | weights_here(weights, to + "mlp.", source + "mlp.")
    return found | {to: weights[source] for to, source in names.items()}


def weights_of_gpt2(weights, shape):
    """Its products are stored the other way round."""
    found = {"embedding.word_embeddings.weight": weights["transformer.wte.weight"],
             "embedding.position_embeddings.weight": weights["transformer.wpe.weight"]}
    for kind in ("weight", "bias"):
        found[f"decoder.final_layernorm.{kind}"] = weights[f"transformer.ln_f.{kind}"]
        for layer in range(shape["num_layers"]):
            to, source = f"decoder.layers.{layer}.", f"transformer.h.{layer}."
            found[f"{to}input_layernorm.{kind}"] = weights[f"{source}ln_1.{kind}"]
            found[f"{to}pre_mlp_layernorm.{kind}"] = weights[f"{source}ln_2.{kind}"]
            found[f"{to}self_attention.linear_qkv.{kind}"] = mix(shape, *weights[f"{source}attn.c_attn.{kind}"].T.chunk(3))
            for ours, theirs in (("self_attention.linear_proj", "attn.c_proj"), ("mlp.linear_fc1", "mlp.c_fc"), ("mlp.linear_fc2", "mlp.c_proj")):
                found[f"{to}{ours}.{kind}"] = weights[f"{source}{theirs}.{kind}"].T
    return found


def compare(megatron, theirs, shape):
    """The largest difference of a logit, from the same weights."""
    import torch
    copied = (weights_of_gpt2 if shape["position"] == "learned" else weights_of_llama)(theirs.state_dict(), shape)
    own = {name for name, _ in megatron.named_parameters()} | {name for name, _ in megatron.named_buffers() if "expert_bias" in name}
    assert own == set(copied), own ^ set(copied)
    megatron.load_state_dict(copied, strict=False)
    tokens = torch.randint(0, shape["vocab_size"], (2, LENGTH))
    hidden = torch.triu(torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), 1)
    with torch.no_grad():
        ours = megatron.eval()(tokens, torch.arange(LENGTH).repeat(2, 1), hidden)
        return (ours - theirs.eval()(tokens).logits).abs().max().item()


def check_load(module, megatron, shape):
    """The load that the adapter's hooks read of one forward pass, against the choices of the routers themselves."""
    import torch
    from megatron.core.transformer.moe.router import TopKRouter
    load, chosen = module.ExpertLoad([megatron], megatron.config), []
    for router in (each for each in megatron.modules() if isinstance(each, TopKRouter)):
        router.register_forward_hook(lambda _, __, output: chosen.append(output[1].reshape(-1, shape["experts"]["count"]).sum(0)))
    hidden = torch.triu(torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), 1)
    with torch.no_grad():
        megatron(torch.randint(0, shape["vocab_size"], (2, LENGTH)), torch.arange(LENGTH).repeat(2, 1), hidden)
    wanted = sum((counts.max() / counts.double().mean()).item() for counts in chosen) / len(chosen)
    return abs(load.take() - wanted) < 1e-9 and load.take() is None and load.dropped == 0


def check_models(module, adapter, changed):
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state
    stand_for_a_gpu()
    dist.init_process_group("gloo", init_method=f"file://{adapter.folder}/ranks", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    torch.manual_seed(1)
    sound = True
    for name, special in SHAPES.items():
        shape = {**adapter.spec["model"], **SMALL, **special}
        megatron = build_megatron(module, adapter, shape, changed)
        difference = compare(megatron, build_hugging_face(shape), shape)
        print(f"{name}: logits within {difference:.1e} of Hugging Face's")
        sound &= difference <= TOLERANCE
        if name in SPARSE and not check_load(module, megatron, shape):
            print(f"{name}: the load of experts is not what the routers chose")
            sound = False
    dist.destroy_process_group()
    return sound
