#!/usr/bin/env python3
"""Models move between our files and Hugging Face's both ways, bit for bit, for every family.

  hugging_face_files.py PROGRAM        PROGRAM is the test program model_files_tool

A tiny random model that transformers saved is read by us and compared weight by weight; we write it again, in several formats
and file sizes, and transformers loads that: all tensors must be equal (in fp32) or the nearest of the format, and the model must
compute the same logits to the last bit. TPRIMAT_PYTHON names the Python to use. Exit status: 0 all equal, 1 not, 77 this Python
has no transformers.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import SKIPPED, lacks, use_chosen_python

CAUSAL = dict(num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, vocab_size=67,
              max_position_embeddings=64, bos_token_id=None, eos_token_id=None)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 24.0}
GPT2 = dict(n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=67, bos_token_id=None, eos_token_id=None, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0)
CASES = {
    "llama": ("LlamaConfig", CAUSAL),
    "llama, tied, llama3": ("LlamaConfig", {**CAUSAL, "tie_word_embeddings": True, "rope_parameters": LLAMA3}),
    "llama, biases, linear": ("LlamaConfig", {**CAUSAL, "attention_bias": True, "mlp_bias": True, "head_dim": 6,
                                              "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}),
    "qwen2, tied": ("Qwen2Config", {**CAUSAL, "tie_word_embeddings": True}),
    "qwen2, window, yarn": ("Qwen2Config", {**CAUSAL, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 0,
                                            "rope_parameters": YARN}),
    "qwen3": ("Qwen3Config", {**CAUSAL, "head_dim": 16}),
    "qwen3, window": ("Qwen3Config", {**CAUSAL, "head_dim": 8, "use_sliding_window": True, "sliding_window": 9,
                                      "max_window_layers": 0}),
    "mistral": ("MistralConfig", {**CAUSAL, "sliding_window": 9}),
    "mistral, odd width": ("MistralConfig", {**CAUSAL, "hidden_size": 30, "head_dim": 10, "sliding_window": None}),
    "gpt2": ("GPT2Config", GPT2),
    "gpt2, untied, inner": ("GPT2Config", {**GPT2, "n_inner": 80, "tie_word_embeddings": False}),
}


PACKAGES = ("torch", "transformers", "safetensors")


class Comparison:
    """One model on its way: transformers -> us -> transformers."""

    def __init__(self, program, folder, config_class, settings):
        import torch
        import transformers
        self.torch, self.transformers, self.program, self.folder = torch, transformers, program, folder
        torch.manual_seed(7)
        config = getattr(transformers, config_class)(**settings)
        self.model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        with torch.no_grad():  # biases and norms start at 0 and 1, which would hide a mix-up
            for parameter in self.model.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.2)

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, f"{words[0]}: {done.stderr}"

    def run(self):
        for name, size in (("whole", "5GB"), ("shards", "20KB")):
            self.model.save_pretrained(self.folder / name, max_shard_size=size)
            self.call("read", self.folder / name, self.folder / f"{name}.flat")
        whole, shards = (self.folder / f"{name}.flat/weights.f32" for name in ("whole", "shards"))
        assert whole.read_bytes() == shards.read_bytes(), "one file and many are not read alike"
        self.compare_flat(self.folder / "whole.flat")
        for dtype in ("float32", "float64", "bfloat16", "float16"):
            for size in (10**12, 9000):
                self.compare_written(dtype, size)

    def their_tensors(self):
        return dict(self.model.named_parameters(remove_duplicate=False))

    def our_tensor(self, name, theirs):
        """The same weight put together from the model in memory."""
        layer, module = "", name.rsplit(".", 1)[0]
        if name.startswith("layers."):
            _, number, module = module.split(".", 2)
            layer = f"transformer.h.{number}." if "transformer.wte.weight" in theirs else f"model.layers.{number}."
        is_gpt2 = "transformer.wte.weight" in theirs
        llama = {"embedding": ["model.embed_tokens"], "final_norm": ["model.norm"], "head": ["lm_head"],
                 "attention_norm": ["input_layernorm"], "mlp_norm": ["post_attention_layernorm"],
                 "attention.qkv": [f"self_attn.{part}_proj" for part in "qkv"], "attention.out": ["self_attn.o_proj"],
                 "attention.query_norm": ["self_attn.q_norm"], "attention.key_norm": ["self_attn.k_norm"],
                 "mlp.gate_up": ["mlp.gate_proj", "mlp.up_proj"], "mlp.down": ["mlp.down_proj"]}
        gpt2 = {"embedding": ["transformer.wte"], "positions": ["transformer.wpe"], "final_norm": ["transformer.ln_f"],
                "head": ["lm_head"], "attention_norm": ["ln_1"], "mlp_norm": ["ln_2"], "attention.qkv": ["attn.c_attn"],
                "attention.out": ["attn.c_proj"], "mlp.up": ["mlp.c_fc"], "mlp.down": ["mlp.c_proj"]}
        kind = name.rsplit(".", 1)[1]
        parts = [theirs[f"{layer}{part}.{kind}"] for part in (gpt2 if is_gpt2 else llama)[module]]
        joined = self.torch.cat(parts).detach()
        is_conv = is_gpt2 and kind == "weight" and module in ("attention.qkv", "attention.out", "mlp.up", "mlp.down")
        return joined.T if is_conv else joined

    def compare_flat(self, flat):
        theirs, at = self.their_tensors(), 0
        values = self.torch.frombuffer(bytearray((flat / "weights.f32").read_bytes()), dtype=self.torch.float32)
        for weight in json.loads((flat / "weights.json").read_text()):
            count = weight["rows"] * weight["cols"]
            wanted = self.our_tensor(weight["name"], theirs).reshape(-1)
            assert self.torch.equal(values[at:at + count], wanted), f"{weight['name']} is read wrongly"
            at += count
        assert at == len(values) == sum(p.numel() for p in self.model.parameters()), "not all weights are read"

    def compare_written(self, dtype, max_bytes):
        torch = self.torch
        place = self.folder / f"written_{dtype}_{max_bytes}"
        self.call("write", self.folder / "whole.flat", place, dtype, max_bytes)
        assert (place / "model.safetensors").exists() == (max_bytes > 10**6), "the files are not cut as asked"
        back, info = self.transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype="auto", output_loading_info=True, attn_implementation="eager")
        problems = {key: value for key, value in info.items() if value}
        assert not problems, f"{dtype}: {problems}"
        stored = getattr(torch, dtype)
        wanted, got = self.their_tensors(), dict(back.named_parameters(remove_duplicate=False))
        assert wanted.keys() == got.keys()
        for name, tensor in wanted.items():
            assert got[name].dtype == stored, f"{name} has {got[name].dtype}"
            assert torch.equal(got[name], tensor.to(stored)), f"{name} differs in {dtype}"
        if dtype == "float32":
            tokens = torch.arange(40).reshape(2, 20)
            with torch.no_grad():
                assert torch.equal(self.model(tokens).logits, back.eval()(tokens).logits), "the logits differ"


def main():
    use_chosen_python()
    if lacks(*PACKAGES):
        return SKIPPED
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failures = 0
    for name, (config_class, settings) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                Comparison(sys.argv[1], pathlib.Path(folder), config_class, settings).run()
                print(f"equal      {name}")
            except AssertionError as error:
                failures += 1
                print(f"DIFFERENT  {name}: {error}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
