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
LENGTH, TOLERANCE = 64, 2e-5  # of logits up to 4, in fp32


def stand_for_a_gpu():
    """Megatron Core asks these of every machine."""
    import torch
    from megatron.core import tensor_parallel
    from megatron.core.transformer import attention
    attention.TELinear = type("TELinear", (), {})
    torch.cuda.current_device = lambda: "cpu"
    tensor_parallel.get_cuda_rng_tracker = lambda *_, **__: SimpleNamespace(fork=lambda *_, **__: contextlib.nullcontext())


def build_megatron(module, adapter, shape, changed):
    from megatron.bridge.models.gpt_provider import local_layer_spec
    from megatron.core.process_groups_config import ProcessGroupCollection
    spec = changed(changed(adapter.spec, "precision", "tf32"), "sequence_length", LENGTH)
    spec["model"], spec["parallel"] = shape, {**spec["parallel"], "tensor_model_parallel_size": 1}
    provider = adapter.make(module, spec, {}).model
    provider.transformer_layer_spec, provider.use_cpu_initialization = local_layer_spec, True
    provider.masked_softmax_fusion = provider.persist_layer_norm = provider.bias_dropout_fusion = False
    provider.vocab_size = shape["vocab_size"]  # as its setup takes it from the tokenizer
    provider._pg_collection = ProcessGroupCollection.use_mpu_process_groups()
    return provider.provide(pre_process=True, post_process=True)


def build_gpt2(shape):
    import transformers
    return transformers.GPT2Config(vocab_size=shape["vocab_size"], n_embd=shape["hidden_size"], n_inner=shape["ffn_hidden_size"],
                                   n_layer=shape["num_layers"], n_head=shape["num_attention_heads"], bos_token_id=0, eos_token_id=0,
                                   n_positions=shape["max_position_embeddings"], layer_norm_epsilon=shape["norm_eps"])


def build_hugging_face(shape):
    import torch
    import transformers
    family = transformers.Qwen2Config if shape["qkv_bias"] else transformers.Qwen3Config if shape["qk_norm"] else transformers.LlamaConfig
    rope = {"rope_theta": shape["rope_theta"], "rope_type": "default"}
    if scaling := shape.get("rope_scaling"):
        rope.update(rope_type=scaling["type"], factor=scaling["factor"])
    if rope["rope_type"] == "llama3":
        rope.update(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
    config = build_gpt2(shape) if shape["position"] == "learned" else family(
        vocab_size=shape["vocab_size"], hidden_size=shape["hidden_size"], intermediate_size=shape["ffn_hidden_size"],
        num_hidden_layers=shape["num_layers"], num_attention_heads=shape["num_attention_heads"],
        num_key_value_heads=shape["num_key_value_heads"], head_dim=shape["head_dim"], max_position_embeddings=131072,
        rms_norm_eps=shape["norm_eps"], tie_word_embeddings=shape["tied_embeddings"],
        rope_parameters=rope)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    for weight in model.parameters():
        weight.data.normal_(0, 0.1) if weight.ndim > 1 else weight.data.uniform_(0.5, 1.5)
    return model


def mix(shape, query, key, value):
    """Megatron's order of rows: of each group its queries, its key and its value."""
    import torch
    groups = shape["num_key_value_heads"]
    parts = [part.reshape(groups, -1, *part.shape[1:]) for part in (query, key, value)]
    return torch.cat(parts, 1).flatten(0, 1)


def weights_of_llama(weights, shape):
    import torch
    names = {"embedding.word_embeddings.weight": "model.embed_tokens.weight", "decoder.final_layernorm.weight": "model.norm.weight"}
    if not shape["tied_embeddings"]:
        names["output_layer.weight"] = "lm_head.weight"
    found = {}
    for layer in range(shape["num_layers"]):
        to, source = f"decoder.layers.{layer}.", f"model.layers.{layer}."
        names |= {to + "input_layernorm.weight": source + "input_layernorm.weight", to + "mlp.linear_fc2.weight": source + "mlp.down_proj.weight",
                  to + "pre_mlp_layernorm.weight": source + "post_attention_layernorm.weight",
                  to + "self_attention.linear_proj.weight": source + "self_attn.o_proj.weight"}
        if shape["qk_norm"]:
            names |= {f"{to}self_attention.{each}_layernorm.weight": f"{source}self_attn.{each}_norm.weight" for each in "qk"}
        for kind in ["weight", "bias"] if shape["qkv_bias"] else ["weight"]:
            found[f"{to}self_attention.linear_qkv.{kind}"] = mix(shape, *(weights[f"{source}self_attn.{each}_proj.{kind}"] for each in "qkv"))
        found[to + "mlp.linear_fc1.weight"] = torch.cat([weights[f"{source}mlp.{each}_proj.weight"] for each in ("gate", "up")])
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
    own = {name for name, _ in megatron.named_parameters()}
    assert own == set(copied), own ^ set(copied)
    megatron.load_state_dict(copied, strict=False)
    tokens = torch.randint(0, shape["vocab_size"], (2, LENGTH))
    hidden = torch.triu(torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), 1)
    with torch.no_grad():
        ours = megatron.eval()(tokens, torch.arange(LENGTH).repeat(2, 1), hidden)
        return (ours - theirs.eval()(tokens).logits).abs().max().item()


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
        difference = compare(build_megatron(module, adapter, shape, changed), build_hugging_face(shape), shape)
        print(f"{name}: logits within {difference:.1e} of Hugging Face's")
        sound &= difference <= TOLERANCE
    dist.destroy_process_group()
    return sound
