#!/usr/bin/env python3
"""The mixtures of experts that torchtitan's adapter describes compute what those of Hugging Face compute.

  titan_experts.py TPRIMAT

A small Mixtral, Qwen 3, DeepSeek-V3 and gpt-oss on the processor: as many parameters as Transformers' models, the same logits from the
same files, and a step that moves the biases of experts against their load. Attention of gpt-oss needs a GPU, so of that the parameters
alone. And every mixture of experts of the model catalogue is as large in torchtitan's code as the catalogue says. TPRIMAT_PYTHON names
the Python to use. Exit status: 0 all agree, 1 not all, 77 torchtitan or Transformers is not installed there.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
from types import SimpleNamespace

from chosen_python import use_chosen_python

SOURCES = pathlib.Path(__file__).resolve().parents[2]
CONFIG = """
experiment: {{name: catalogue, methodology: all}}
hardware: {{platforms: {{nvd: {{gpu_model: H100, num_gpus: 8}}}}}}
models: {{m: {{name: {key}, prediction_layers: 0, experts: {{balancing: none, aux_loss_coefficient: 0, z_loss_coefficient: 0}}}}}}
training: {{data: {{seq_length: 1024, micro_batch_size: 1, global_batch_size: 8}}, duration: {{max_steps: 10}}}}
parallelism: {{all: {{m: {{nvd: {{DP: 8, ZeRO: 3}}}}}}}}
platform_optimizations: {{nvd: {{precision: bf16}}}}
"""
LENGTH, TOLERANCE = 64, 2e-5  # of logits up to 5, in fp32
SHAPE = {"num_layers": 3, "hidden_size": 64, "ffn_hidden_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "vocab_size": 511, "max_position_embeddings": 128, "tied_embeddings": False, "qkv_bias": False, "linear_bias": False,
         "qk_norm": False, "norm": "rms", "mlp": "swiglu", "position": "rope", "rope_theta": 10000.0, "norm_eps": 1e-6}
EXPERTS = {"count": 8, "per_token": 2, "ffn_hidden_size": 96, "shared_ffn_hidden_size": 0, "shared_gate": False, "first_dense_layers": 0,
           "layer_interval": 1, "router_score": "softmax", "normalize_weights": True, "weight_scale": 1.0, "groups": 1,
           "groups_per_token": 1, "balancing": "none", "aux_loss_coefficient": 0.0, "z_loss_coefficient": 0.0}
OF_HUGGING_FACE = {"vocab_size": 511, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
# torchtitan's model, our shape, its experts, Transformers' configuration and what that has beside the common settings
CASES = {
    "mixtral": ("llama4", {}, {}, "MixtralConfig", {"num_local_experts": 8, "num_experts_per_tok": 2}),
    "qwen 3": ("qwen3", {"qk_norm": True, "head_dim": 24}, {"count": 16, "per_token": 4, "ffn_hidden_size": 48, "layer_interval": 2},
               "Qwen3MoeConfig", {"head_dim": 24, "moe_intermediate_size": 48, "num_experts": 16, "num_experts_per_tok": 4,
                                  "norm_topk_prob": True, "decoder_sparse_step": 2}),
    "deepseek v3": ("deepseek_v3", {"num_key_value_heads": 4, "latent_attention": SimpleNamespace(
        query_rank=32, key_value_rank=24, rope_head_dim=8, value_head_dim=20)}, {
            "count": 16, "per_token": 4, "ffn_hidden_size": 48, "shared_ffn_hidden_size": 96, "first_dense_layers": 1,
            "router_score": "sigmoid", "weight_scale": 2.5, "groups": 4, "groups_per_token": 2, "balancing": "bias"},
        "DeepseekV3Config", {"num_key_value_heads": 4, "moe_intermediate_size": 48, "n_shared_experts": 2, "n_routed_experts": 16,
                             "routed_scaling_factor": 2.5, "kv_lora_rank": 24, "q_lora_rank": 32, "qk_rope_head_dim": 8, "v_head_dim": 20,
                             "qk_nope_head_dim": 16, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 4, "first_k_dense_replace": 1,
                             "norm_topk_prob": True}),
    "gpt-oss": ("gpt_oss", {"attention_sinks": True, "linear_bias": True, "sliding_window": 16, "full_attention_layers": 1}, {},
                "GptOssConfig", {"num_local_experts": 8, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 16})}


def build_theirs(transformers, torch, config, folder):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    for weight in model.parameters():
        weight.data.normal_(0, 0.1) if weight.ndim > 1 else weight.data.uniform_(0.5, 1.5)
    for name, bias in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            bias.data.uniform_(-0.1, 0.1)
    model.save_pretrained(folder)
    return model.eval()


def build_ours(torch, family, experiment):
    args = family.describe(experiment)
    args.max_seq_len, args.moe_impl = LENGTH, "standard"  # as update_from_config does
    with torch.device("meta"):
        model = family.model(args)
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.init_weights(torch.device("cpu"))
    return model


def check_step(torch, titan_experts, model):
    """A step moves each bias by the sign of what its expert lacks, without their mean, and reads the load first."""
    nowhere = SimpleNamespace(get_optional_mesh=lambda _: None)
    load = titan_experts.ExpertLoad([model], nowhere)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    optimizer.register_step_pre_hook(load.read)
    titan_experts.balance_experts([model], nowhere, optimizer)
    moes = titan_experts.moes([model])
    before, counts = [moe.expert_bias.clone() for moe in moes], [moe.tokens_per_expert.clone() for moe in moes]
    optimizer.step()
    wanted = sum((each.max() / each.mean()).item() for each in counts) / len(counts)
    moved = [titan_experts.BIAS_STEP * torch.sign(each.mean() - each) for each in counts]
    biases = all(torch.allclose(moe.expert_bias, old + delta - delta.mean(), atol=1e-9)
                 for moe, old, delta in zip(moes, before, moved, strict=True))
    return biases and abs(load.value - wanted) < 1e-6 and all(moe.tokens_per_expert.sum() == 0 for moe in moes)


def plan_by_catalogue(program, key, folder):
    """torchtitan's name of the model and its shape, as `tprimat run` plans it; None where torchtitan does not train it."""
    config = pathlib.Path(folder) / "config.yaml"
    config.write_text(CONFIG.format(key=key))
    done = subprocess.run([program, "run", "--config", config, "--platform", "nvd", "--framework", "tita", "--dry-run", "--json"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{key}: {done.stderr.strip()}")
        return None
    files = {pathlib.Path(file["path"]).name: file["content"] for file in json.loads(done.stdout)[0]["files"]}
    kind = next(line for line in files["torchtitan.toml"].splitlines() if line.startswith("name = ")).split('"')[1]
    return kind, json.loads(files["train_spec.json"], object_hook=lambda keys: SimpleNamespace(**keys))


def check_catalogue(torch, titan_experts, program):
    rows = [line.split("\t") for line in (SOURCES / "src/core/spec/models.tsv").read_text().splitlines()]
    found = 0
    for row in (row for row in rows if len(row) > 12 and "experts=" in row[11]):
        with tempfile.TemporaryDirectory() as folder:
            planned = plan_by_catalogue(program, row[0], folder)
        if planned is None:
            continue
        args = titan_experts.FAMILIES[planned[0]].describe(planned[1])
        args.max_seq_len, args.moe_impl = LENGTH, "standard"
        with torch.device("meta"):
            count = sum(weight.numel() for weight in titan_experts.FAMILIES[planned[0]].model(args).parameters())
        if count != int(row[12]):
            print(f"{row[0]}: torchtitan's {planned[0]} has {count} parameters, the catalogue {row[12]}")
            return False
        found += 1
    print(f"{found} mixtures of experts of the catalogue have as many parameters in torchtitan")
    return found >= 8


def check(torch, transformers, titan_experts, name):
    kind, shape, experts, their_config, special = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        theirs = build_theirs(transformers, torch, getattr(transformers, their_config)(**{**OF_HUGGING_FACE, **special}), folder)
        experiment = SimpleNamespace(model=SimpleNamespace(**{**SHAPE, **shape}, experts=SimpleNamespace(**{**EXPERTS, **experts})),
                                     checkpoint=SimpleNamespace(initial_weights="" if kind == "gpt_oss" else folder), precision="fp32",
                                     sequence_length=LENGTH)
        ours = build_ours(torch, titan_experts.FAMILIES[kind], experiment)
    counts = [sum(weight.numel() for weight in model.parameters()) for model in (ours, theirs)]
    sound = counts[0] == counts[1]
    print(f"{name}: {counts[0]} parameters, Hugging Face {counts[1]}")
    if kind == "gpt_oss":
        return sound
    tokens = torch.randint(0, 511, (2, LENGTH))
    with torch.no_grad():
        difference = (ours(tokens) - theirs(tokens).logits).abs().max().item()
    print(f"{name}: logits within {difference:.1e} of Hugging Face's")
    if experiment.model.experts.balancing == "bias":
        sound &= check_step(torch, titan_experts, ours)
    return sound and difference <= TOLERANCE


def main():
    use_chosen_python()
    if any(importlib.util.find_spec(package) is None for package in ("torchtitan", "transformers")):
        print(f"skipped: {sys.executable} has no torchtitan and Transformers: pip install -r frameworks/requirements/tita.txt "
              "transformers, or name another in TPRIMAT_PYTHON")
        return 77
    sys.path.insert(0, str(SOURCES / "frameworks"))
    import torch
    import transformers
    import titan_experts
    torch.manual_seed(3)
    titan_experts.count_on_processor()
    checks = [check(torch, transformers, titan_experts, name) for name in CASES]
    return 0 if all([*checks, check_catalogue(torch, titan_experts, sys.argv[1])]) else 1


if __name__ == "__main__":
    sys.exit(main())
