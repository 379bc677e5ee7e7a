"""The same models as Hugging Face's transformers has them, with the native trainer's weights."""

import torch
from torch.nn import functional
import transformers


def make_config(model):
    common = dict(
        num_hidden_layers=model["num_layers"], hidden_size=model["hidden_size"], intermediate_size=model["ffn_hidden_size"],
        num_attention_heads=model["num_attention_heads"], num_key_value_heads=model["num_key_value_heads"],
        head_dim=model["head_dim"], vocab_size=model["vocab_size"], max_position_embeddings=model["max_position_embeddings"],
        tie_word_embeddings=model["tied_embeddings"], rms_norm_eps=model["norm_eps"], attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": model["rope_theta"]}, use_cache=False,
        bos_token_id=None, eos_token_id=None)
    if model["qkv_bias"]:
        return transformers.Qwen2Config(**common)
    if "sliding_window" in model:
        return transformers.MistralConfig(**common, sliding_window=model["sliding_window"])
    return transformers.LlamaConfig(**common)


class HuggingFaceTwin:
    """Fused rows of the native trainer are split: qkv into q, k and v, gate_up into gate and up."""

    def __init__(self, spec, weights, dtype):
        self.sizes = self.split_sizes(spec["model"])
        self.shapes = {name: value.shape for name, value in weights.items()}
        self.network = transformers.AutoModelForCausalLM.from_config(make_config(spec["model"])).to(dtype)
        self.parts = {name: self.find_parts(name) for name in weights}
        self.check_all_mapped()
        with torch.no_grad():
            for name, value in weights.items():
                rows = self.sizes.get(name.split(".")[-2])
                if name.endswith(".bias"):
                    value = value.reshape(-1)
                pieces = value.split(rows) if rows else [value]
                for part, piece in zip(self.parts[name], pieces, strict=True):
                    part.copy_(piece.reshape(part.shape))

    @staticmethod
    def split_sizes(model):
        q, kv = (model[key] * model["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
        return {"qkv": [q, kv, kv], "gate_up": [model["ffn_hidden_size"]] * 2}

    def find_parts(self, name):
        theirs = {"embedding": ["model.embed_tokens"], "final_norm": ["model.norm"], "head": ["lm_head"],
                  "attention_norm": ["input_layernorm"], "mlp_norm": ["post_attention_layernorm"],
                  "qkv": [f"self_attn.{part}_proj" for part in "qkv"], "out": ["self_attn.o_proj"],
                  "gate_up": ["mlp.gate_proj", "mlp.up_proj"], "down": ["mlp.down_proj"]}
        words = name.split(".")
        layer = f"model.layers.{words[1]}." if words[0] == "layers" else ""
        return [self.network.get_parameter(f"{layer}{their}.{words[-1]}") for their in theirs[words[-2]]]

    def check_all_mapped(self):
        mapped = {id(part) for parts in self.parts.values() for part in parts}
        missed = [name for name, value in self.network.named_parameters() if id(value) not in mapped]
        assert not missed, f"weights without a counterpart: {missed}"

    def parameters(self):
        return [(name, part) for name, parts in self.parts.items() for part in parts]

    def export(self):
        return {name: torch.cat([part.detach() for part in parts]).reshape(self.shapes[name])
                for name, parts in self.parts.items()}

    def loss(self, samples):
        logits = self.network(input_ids=samples[:, :-1]).logits
        return functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten())
