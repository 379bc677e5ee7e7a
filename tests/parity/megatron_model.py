#!/usr/bin/env python3
"""The model that our command line for Megatron-LM describes, built by megatron-core itself, against the one that our
config.json describes, built by transformers: the same number of parameters, tensor for tensor in sum. Mixtures of
experts are held against the number that the dry run prints.

  megatron_model.py PROGRAM       PROGRAM is tprimat

Where MEGATRON_PATH names a checkout of Megatron-LM whose packages are there, its own parser reads the command too.
TPRIMAT_PYTHON names the Python to use. Exit status: 0 all the same, 1 not, 77 megatron-core or transformers is missing.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

SKIPPED = 77
LLAMA = dict(num_layers=2, hidden_size=64, ffn_hidden_size=160, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             vocab_size=256, max_position_embeddings=128, tied_embeddings=False)
MODELS = {
    "llama": LLAMA,
    "qwen": LLAMA | dict(qkv_bias=True, tied_embeddings=True),
    "qwen3": LLAMA | dict(qk_norm=True, head_dim=32),
    "gpt": LLAMA | dict(num_key_value_heads=4, linear_bias=True, norm="layer", mlp="gelu", position="learned",
                        tied_embeddings=True),
}
EXPERTS = dict(count=8, per_token=2, ffn_hidden_size=96)
SHARED = EXPERTS | dict(shared_ffn_hidden_size=64)
SPARSE = {
    "mixtral": LLAMA | dict(experts=EXPERTS),
    "biases": LLAMA | dict(linear_bias=True, experts=EXPERTS),
    "gate": LLAMA | dict(experts=SHARED | dict(shared_gate=True, normalize_weights=False)),
    "groups": LLAMA | dict(num_layers=4, experts=SHARED | dict(
        first_dense_layers=1, router_score="sigmoid", groups=4, groups_per_token=2, balancing="bias",
        aux_loss_coefficient=1e-4, weight_scale=2.5)),
    "interval": LLAMA | dict(num_layers=5, experts=EXPERTS | dict(first_dense_layers=1, layer_interval=2)),
    "deepseek": LLAMA | dict(num_layers=3, num_key_value_heads=4, prediction_layers=1,
                             latent_attention=dict(query_rank=48, key_value_rank=24, rope_head_dim=8,
                                                   value_head_dim=16),
                             experts=SHARED | dict(first_dense_layers=1)),
}
# Flags whose name in megatron-core's TransformerConfig is another one, as Megatron-LM's own translation has it.
RENAMED = {"norm_epsilon": "layernorm_epsilon", "num_experts": "num_moe_experts"}


def write_config(models, folder):
    config = {"experiment": {"methodology": "single"},
              "hardware": {"platforms": {"nvidia": {"gpu_model": "H100", "num_gpus": 1}}}, "models": models,
              "training": {"data": {"micro_batch_size": 1, "global_batch_size": 2, "seq_length": 64},
                           "duration": {"max_steps": 20}, "optimizer": {"learning_rate": 1e-3, "warmup_steps": 2}}}
    path = pathlib.Path(folder) / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return path


def dry_run(program, config, framework, *options):
    return subprocess.run([program, "run", "--config", config, "--platform", "nvd", "--framework", framework,
                           "--dry-run", *options],
                          check=True, capture_output=True, text=True, cwd=config.parent).stdout


def plans(program, config, framework):
    return {plan["run"].split()[1]: plan for plan in json.loads(dry_run(program, config, framework, "--json"))}


def printed_counts(program, config):
    found = re.findall(r"model +(\w+): ([0-9 \u202f\u00a0]+) parameters", dry_run(program, config, "mega"))
    return {name: int(re.sub(r"\D", "", digits)) for name, digits in found}


def flags_of(command):
    words = command[next(i for i, word in enumerate(command) if word.endswith("pretrain_gpt.py")) + 1:]
    flags = {}
    for word in words:
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            flags[name] = True
        else:
            flags[name] = word
    return flags


def read_value(word):
    for kind in (int, float):
        try:
            return word if word is True else kind(word)
        except ValueError:
            pass
    return word


def transformer_config(flags):
    import torch
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig
    kind = MLATransformerConfig if "multi_latent_attention" in flags else TransformerConfig
    known = {field.name for field in dataclasses.fields(kind)}
    settings = {RENAMED.get(name, name): read_value(value) for name, value in flags.items()}
    settings = {name: value for name, value in settings.items() if name in known}
    if not flags.get("group_query_attention"):
        settings.pop("num_query_groups", None)
    if "moe_layer_freq" in settings:
        settings["moe_layer_freq"] = eval(settings["moe_layer_freq"])  # as Megatron-LM does
        settings |= dict(moe_grouped_gemm=False, moe_token_dispatcher_type="allgather")  # the others want a GPU
    swiglu = "swiglu" in flags
    return kind(**settings, add_bias_linear="disable_bias_linear" not in flags, gated_linear_unit=swiglu,
                             activation_func=torch.nn.functional.silu if swiglu else torch.nn.functional.gelu,
                             bias_activation_fusion=False, use_cpu_initialization=True, persist_layer_norm=False,
                             gradient_accumulation_fusion=False)


def count_megatron(flags):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    config = transformer_config(flags)
    divisor = int(flags["make_vocab_size_divisible_by"])
    vocabulary = -(-(int(flags["vocab_size"]) + 1) // divisor) * divisor  # NullTokenizer adds one, then it is padded
    layer = get_gpt_layer_local_spec(normalization=flags["normalization"], qk_layernorm="qk_layernorm" in flags)
    model = GPTModel(config, layer, vocab_size=vocabulary, max_sequence_length=int(flags["max_position_embeddings"]),
                     position_embedding_type=flags["position_embedding_type"],
                     share_embeddings_and_output_weights="untie_embeddings_and_output_weights" not in flags)
    return sum(parameter.numel() for parameter in model.parameters())


def prepare_latent_attention():
    """Megatron-core builds MLA with Transformer Engine's attention, on a GPU. Its weights are the same without."""
    import torch
    from megatron.core.transformer import multi_latent_attention
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    build = DotProductAttention.__init__

    def build_with_widths(self, *arguments, k_channels=None, v_channels=None, **more):
        build(self, *arguments, **more)
    DotProductAttention.__init__ = build_with_widths
    multi_latent_attention.HAVE_TE = False
    torch.cuda.current_device = lambda: "cpu"


def count_sparse_megatron(flags):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_mtp_block_spec
    config = transformer_config(flags)
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization=flags["normalization"])
    further = get_gpt_mtp_block_spec(config, block, use_transformer_engine=False) if config.mtp_num_layers else None
    model = GPTModel(config, block, vocab_size=int(flags["vocab_size"]) + 1, max_sequence_length=64,
                     position_embedding_type=flags["position_embedding_type"], mtp_block_spec=further,
                     share_embeddings_and_output_weights="untie_embeddings_and_output_weights" not in flags)
    return sum(parameter.numel() for parameter in model.parameters())


def check_sparse(program, folder):
    config = write_config(SPARSE, folder)
    counts, failures = printed_counts(program, config), 0
    for name, plan in plans(program, config, "mega").items():
        theirs = count_sparse_megatron(flags_of(plan["command"]))
        print(f"{name}: megatron-core {theirs}, tprimat {counts[name]} parameters")
        failures += theirs != counts[name]
        if checkout := os.environ.get("MEGATRON_PATH"):
            failures += not parse_with_checkout(checkout, plan["command"])
    return failures


def count_transformers(plan):
    import torch
    import transformers
    content = next(file["content"] for file in plan["files"] if file["path"].endswith("/config.json"))
    config = transformers.AutoConfig.for_model(**json.loads(content))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def start_megatron():
    import torch.distributed as dist
    from megatron.core import parallel_state
    with tempfile.NamedTemporaryFile() as store:
        dist.init_process_group("gloo", init_method=f"file://{store.name}.store", rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)


def parse_with_checkout(checkout, command):
    """Megatron-LM's own parser reads the words; an unknown flag or a wrong value ends the child with a message."""
    words = command[next(i for i, word in enumerate(command) if word.endswith("pretrain_gpt.py")) + 1:]
    code = "import sys; from megatron.training.arguments import parse_args; parse_args()"
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=checkout, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": checkout})
    if done.returncode != 0:
        print(done.stderr[-2000:])
    return done.returncode == 0


def main():
    if any(importlib.util.find_spec(name) is None for name in ("torch", "megatron", "transformers")):
        print(f"skipped: {sys.executable} has no megatron-core or no transformers: "
              "pip install -r tests/parity/requirements.txt, or name another in TPRIMAT_PYTHON")
        return SKIPPED
    start_megatron()
    failures = 0
    prepare_latent_attention()
    with tempfile.TemporaryDirectory() as folder:
        failures += check_sparse(sys.argv[1], folder)
        config = write_config(MODELS, folder)
        mega, fsdp = (plans(sys.argv[1], config, framework) for framework in ("mega", "fsdp"))
        for name in MODELS:
            ours, theirs = count_megatron(flags_of(mega[name]["command"])), count_transformers(fsdp[name])
            print(f"{name}: megatron-core {ours}, transformers {theirs} parameters")
            failures += ours != theirs
            if checkout := os.environ.get("MEGATRON_PATH"):
                failures += not parse_with_checkout(checkout, mega[name]["command"])
    return 1 if failures else 0


if __name__ == "__main__":
    use_chosen_python()
    sys.exit(main())
