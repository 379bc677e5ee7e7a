#!/usr/bin/env python3
"""Every key of an experiment arrives in the configuration of the real Megatron-Bridge, which then finds it valid.

  nemo_config.py TPRIMAT

The experiment for Primus gives the same configuration; with PRIMUS_PATH, a checkout, Primus' own loader reads it. The models that it
describes compute what Hugging Face's compute. The files are those of `tprimat run --framework nemo --dry-run`;
Megatron-Bridge and Megatron Core are the packages themselves. What needs a GPU to be installed (Transformer Engine, Triton ...) is only
stood for. TPRIMAT_PYTHON names the Python to use. Exit status: 0 all arrived,
1 not all, 77 Megatron-Bridge is not installed there.
"""

import copy
import gzip
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

from absent_modules import allow_absent
from chosen_python import use_chosen_python
from nemo_models import check_models

CONFIG = """
experiment: {name: nemo, methodology: wide}
hardware: {platforms: {nvd: {gpu_model: H100, num_gpus: 8}}}
models:
  llama: {name: llama3.1_8b%s}
training:
  data: {seq_length: 2048, micro_batch_size: 1, global_batch_size: 128}
  duration: {max_steps: 500}
  optimizer: {learning_rate: 0.0003, warmup_steps: 50}
parallelism: {wide: {llama: {nvd: {TP: 4, DP: 2}}}}
platform_optimizations: {nvd: {precision: bf16}}
"""
RECIPE = ", nemo_recipe: llama31_8b.pretrain_recipe"

NEED_A_GPU = ["transformer_engine", "transformer_engine_torch", "triton", "modelopt", "mamba_ssm", "causal_conv1d", "flash_attn", "fla",
              "nvidia_resiliency_ext"]
OF_OTHER_MODELS = ["PIL", "torchvision", "av", "webdataset", "qwen_vl_utils", "timm", "open_clip", "datasets", "wandb", "mlflow",
                   "multistorageclient", "nvdlfw_inspect", "megatron.energon", "tensorboard", "google"]

SECTIONS = ("model", "train", "optimizer", "scheduler", "ddp", "rng", "tokenizer", "checkpoint", "logger", "dataset", "mixed_precision",
            "rerun_state_machine")

# An experiment's key, another value, and what Megatron-Bridge's configuration then holds.
CHANGES = [
    ("optimizer.learning_rate", 1e-5, {"optimizer.lr": 1e-5}),
    ("optimizer.min_learning_rate", 1e-6, {"optimizer.min_lr": 1e-6}),
    ("optimizer.beta1", 0.8, {"optimizer.adam_beta1": 0.8}),
    ("optimizer.beta2", 0.99, {"optimizer.adam_beta2": 0.99}),
    ("optimizer.epsilon", 1e-7, {"optimizer.adam_eps": 1e-7}),
    ("optimizer.weight_decay", 0.2, {"optimizer.weight_decay": 0.2, "scheduler.start_weight_decay": 0.2,
                                     "scheduler.end_weight_decay": 0.2}),
    ("optimizer.clip_grad_norm", 0.5, {"optimizer.clip_grad": 0.5}),
    ("optimizer.schedule", "linear", {"scheduler.lr_decay_style": "linear"}),
    ("optimizer.schedule", "constant", {"scheduler.lr_decay_style": "constant"}),
    ("optimizer.warmup_steps", 20, {"scheduler.lr_warmup_iters": 20, "scheduler.lr_warmup_steps": 20 * 128}),
    ("steps", 400, {"train.train_iters": 400, "scheduler.lr_decay_iters": 400, "scheduler.lr_decay_steps": 400 * 128}),
    ("seed", 7, {"rng.seed": 7}),
    ("micro_batch_size", 2, {"train.micro_batch_size": 2}),
    ("global_batch_size", 64, {"train.global_batch_size": 64}),
    ("sequence_length", 1024, {"model.seq_length": 1024, "dataset.seq_length": 1024}),
    ("parallel.tensor_model_parallel_size", 2, {"model.tensor_model_parallel_size": 2}),
    ("parallel.pipeline_model_parallel_size", 2, {"model.pipeline_model_parallel_size": 2}),
    ("parallel.context_parallel_size", 2, {"model.context_parallel_size": 2}),
    ("parallel.sequence_parallel", True, {"model.sequence_parallel": True}),
    ("parallel.embedding_and_loss_as_layers", True, {"model.account_for_embedding_in_pipeline_split": True,
                                                     "model.account_for_loss_in_pipeline_split": True}),
    ("parallel.zero_stage", 1, {"optimizer.use_distributed_optimizer": True, "ddp.use_distributed_optimizer": True}),
    ("precision", "fp16", {"model.fp16": True, "model.bf16": False, "optimizer.fp16": True, "optimizer.initial_loss_scale": 4096.0,
                           "optimizer.min_loss_scale": 1.0, "optimizer.loss_scale_window": 1000, "optimizer.hysteresis": 1}),
    ("precision", "fp8", {"model.fp8": "hybrid", "model.fp8_recipe": "delayed", "model.bf16": True, "model.fp8_param": False,
                          "model.make_vocab_size_divisible_by": 16}),
    ("precision", "tf32", {"model.bf16": False, "model.fp16": False, "optimizer.bf16": False}),
    ("recompute", "full", {"model.recompute_granularity": "full", "model.recompute_method": "uniform", "model.recompute_num_layers": 1}),
    ("recompute", "selective", {"model.recompute_granularity": "selective", "model.recompute_modules": ["core_attn"]}),
    ("anomalies.not_finite", "skip", {"rerun_state_machine.check_for_nan_in_loss": False, "ddp.check_for_nan_in_grad": False}),
    ("model.num_layers", 16, {"model.num_layers": 16}),
    ("model.hidden_size", 2048, {"model.hidden_size": 2048}),
    ("model.ffn_hidden_size", 8192, {"model.ffn_hidden_size": 8192}),
    ("model.num_attention_heads", 16, {"model.num_attention_heads": 16}),
    ("model.num_key_value_heads", 4, {"model.num_query_groups": 4}),
    ("model.head_dim", 64, {"model.kv_channels": 64}),
    ("model.vocab_size", 50257, {"tokenizer.vocab_size": 50257, "model.make_vocab_size_divisible_by": 1}),
    ("model.tied_embeddings", True, {"model.share_embeddings_and_output_weights": True}),
    ("model.qkv_bias", True, {"model.add_qkv_bias": True, "model.add_bias_linear": False}),
    ("model.linear_bias", True, {"model.add_qkv_bias": True, "model.add_bias_linear": True}),
    ("model.qk_norm", True, {"model.qk_layernorm": True}),
    ("model.norm", "layer", {"model.normalization": "LayerNorm"}),
    ("model.mlp", "gelu", {"model.gated_linear_unit": False, "model.bias_activation_fusion": False,
                           "model.activation_func.__name__": "fast_gelu"}),
    ("model.rope_theta", 10000.0, {"model.rotary_base": 10000.0}),
    ("model.rope_scaling", {"type": "llama3", "factor": 8.0}, {"model.rope_scaling": True, "model.rope_scaling_factor": 8.0}),
    ("model.rope_scaling", {"type": "linear", "factor": 4.0}, {"model.rope_scaling": False, "model.seq_len_interpolation_factor": 4.0}),
    ("model.norm_eps", 1e-6, {"model.layernorm_epsilon": 1e-6}),
    ("model.sliding_window", 512, {"model.window_size": (511, 0)}),
    ("model.sliding_window", 2048, {"model.window_size": None}),
]
# The same of a mixture of experts, which this is.
EXPERTS = {"count": 8, "per_token": 2, "ffn_hidden_size": 1024, "shared_ffn_hidden_size": 0, "shared_gate": False, "first_dense_layers": 0,
           "layer_interval": 1, "router_score": "softmax", "normalize_weights": True, "weight_scale": 1.0, "groups": 1,
           "groups_per_token": 1, "balancing": "none", "aux_loss_coefficient": 0.0, "z_loss_coefficient": 0.0}
EXPERT_CHANGES = [
    ({}, {"model.num_moe_experts": 8, "model.moe_router_topk": 2, "model.moe_ffn_hidden_size": 1024, "model.moe_layer_freq": [1] * 32,
          "model.moe_grouped_gemm": True, "model.moe_router_dtype": "fp32", "model.moe_router_load_balancing_type": "none",
          "model.moe_token_dispatcher_type": "alltoall", "model.expert_model_parallel_size": 1, "model.expert_tensor_parallel_size": 1,
          "model.moe_router_pre_softmax": False, "model.moe_shared_expert_intermediate_size": None, "model.mtp_num_layers": None}),
    ({"model.experts.count": 16}, {"model.num_moe_experts": 16}),
    ({"model.experts.per_token": 4}, {"model.moe_router_topk": 4}),
    ({"model.experts.first_dense_layers": 3}, {"model.moe_layer_freq": [0] * 3 + [1] * 29}),
    ({"model.experts.layer_interval": 2}, {"model.moe_layer_freq": [0, 1] * 16}),
    ({"model.experts.shared_ffn_hidden_size": 2048, "model.experts.shared_gate": True},
     {"model.moe_shared_expert_intermediate_size": 2048, "model.moe_shared_expert_gate": True}),
    ({"model.experts.latent_size": 512}, {"model.moe_latent_size": 512}),
    ({"model.experts.router_score": "sigmoid", "model.experts.balancing": "bias"},
     {"model.moe_router_score_function": "sigmoid", "model.moe_router_enable_expert_bias": True, "model.moe_aux_loss_coeff": 0.0}),
    ({"model.experts.router_score": "sigmoid", "model.experts.balancing": "bias", "model.experts.aux_loss_coefficient": 1e-4},
     {"model.moe_router_load_balancing_type": "seq_aux_loss", "model.moe_aux_loss_coeff": 1e-4}),
    ({"model.experts.balancing": "aux_loss", "model.experts.aux_loss_coefficient": 0.02},
     {"model.moe_router_load_balancing_type": "aux_loss", "model.moe_aux_loss_coeff": 0.02}),
    ({"model.experts.z_loss_coefficient": 1e-3}, {"model.moe_z_loss_coeff": 1e-3}),
    ({"model.experts.normalize_weights": False}, {"model.moe_router_pre_softmax": True}),
    ({"model.experts.weight_scale": 2.5}, {"model.moe_router_topk_scaling_factor": 2.5}),
    ({"model.experts.groups": 4, "model.experts.groups_per_token": 2},
     {"model.moe_router_num_groups": 4, "model.moe_router_group_topk": 2}),
    ({"model.experts.capacity_factor": 1.25}, {"model.moe_expert_capacity_factor": 1.25, "model.moe_token_drop_policy": "probs"}),
    ({"routing": "balanced"}, {"model.moe_router_force_load_balancing": True}),
    ({"dispatcher": "allgather"}, {"model.moe_token_dispatcher_type": "allgather"}),
    ({"parallel.expert_model_parallel_size": 2}, {"model.expert_model_parallel_size": 2}),
    ({"parallel.expert_tensor_parallel_size": 2}, {"model.expert_tensor_parallel_size": 2}),
    ({"model.prediction_layers": 1}, {"model.mtp_num_layers": 1, "model.mtp_loss_scaling_factor": 0.1}),
    ({"model.attention_sinks": True, "model.sliding_window": 128, "model.full_attention_layers": 16},
     {"model.softmax_type": "learnable", "model.window_attn_skip_freq": 2, "model.window_size": (127, 0)}),
    ({"model.latent_attention": {"query_rank": 1536, "key_value_rank": 512, "rope_head_dim": 64, "value_head_dim": 128}},
     {"model.multi_latent_attention": True, "model.q_lora_rank": 1536, "model.kv_lora_rank": 512, "model.qk_head_dim": 128,
      "model.qk_pos_emb_head_dim": 64, "model.v_head_dim": 128, "model.qk_layernorm": True, "model.rope_type": "rope",
      "model.rotary_scaling_factor": 1.0}),
    ({"model.latent_attention": {"query_rank": 0, "key_value_rank": 512, "rope_head_dim": 64, "value_head_dim": 128},
      "model.rope_scaling": {"type": "yarn", "factor": 40.0}}, {"model.q_lora_rank": None, "model.rope_type": "yarn",
                                                                "model.rotary_scaling_factor": 40.0}),
]
# The platform's settings, with the precision that they need.
NOTES = [
    ({"flash_attention": True}, "bf16", {"model.attention_backend.name": "flash"}),
    ({"flash_attention": False}, "bf16", {"model.attention_backend.name": "unfused"}),
    ({"fp8_hybrid": False}, "fp8", {"model.fp8": "e4m3"}),
    ({"fp8_param": True}, "fp8", {"model.fp8_param": True, "ddp.fp8_param_gather": True, "ddp.use_distributed_optimizer": True}),
]


# Options of `tprimat run` for AMD: what both ways to NeMo there must make of them.
ON_AMD = """
hardware: {platforms: {amd: {gpu_model: MI300X, num_gpus: 8}}}
parallelism: {wide: {llama: {amd: {TP: 4, DP: 2}}}}
platform_optimizations: {amd: {precision: bf16}}
"""
AMD_CHANGES = [
    [], ["platform_optimizations.amd.precision=fp32"], ["platform_optimizations.amd.precision=fp16"],
    ["platform_optimizations.amd.precision=fp8"],
    ["platform_optimizations.amd.precision=fp8", "platform_optimizations.amd.fp8_hybrid=false", "platform_optimizations.amd.fp8_param=true"],
    ["platform_optimizations.amd.recompute=full"], ["platform_optimizations.amd.recompute=selective"],
    ["platform_optimizations.amd.flash_attention=true"], ["platform_optimizations.amd.flash_attention=false"],
    ["parallelism.wide.llama.amd.SP=true", "parallelism.wide.llama.amd.ZeRO=1"], ["models.llama.name=mistral_7b", "training.data.seq_length=8192"],
    ["models.llama.name=qwen2.5_7b"], ["models.llama.name=gpt2_124m", "training.data.seq_length=1024"],
    ["training.optimizer.schedule=linear", "training.optimizer.clip_grad_norm=0.5", "training.general.seed=7"],
    ["models.llama.name=mixtral_8x7b", "parallelism.wide.llama.amd.SP=true", "parallelism.wide.llama.amd.EP=4",
     "parallelism.wide.llama.amd.ETP=2", "training.dispatcher=allgather"],
    ["models.llama.name=deepseek_v3", "parallelism.wide.llama.amd.SP=true", "parallelism.wide.llama.amd.EP=8", "training.routing=balanced"],
    ["models.llama.name=gpt_oss_20b", "parallelism.wide.llama.amd.SP=true"],
]


class Adapter:
    """The adapter as the plan of `tprimat run` holds it, and its experiment."""

    def __init__(self, program, folder, model_notes):
        self.folder = folder
        config = folder / "config.yaml"
        config.write_text(CONFIG % model_notes)
        done = subprocess.run([program, "run", "--config", config, "--platform", "nvd", "--framework", "nemo", "--output", folder / "out",
                               "--dry-run", "--json"], capture_output=True, text=True, check=True)
        for file in json.loads(done.stdout)[0]["files"]:
            path = pathlib.Path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["content"])
            if path.name == "train_spec.json":
                self.spec = json.loads(file["content"])
            if path.name == "nemo_settings.json":
                self.notes = json.loads(file["content"])
            if path.name == "train_nemo.py":
                sys.path.insert(0, str(path.parent))

    def make(self, module, spec, notes):
        """Megatron-Bridge's configuration, after its own last changes and checks."""
        from megatron.bridge.training.config import runtime_config_update
        path = self.folder / "train_spec.json"
        path.write_text(json.dumps(spec))
        cfg = module.make_config(module.load_experiment(path), notes, self.folder / "samples.npy")
        cfg.model.apply_rope_fusion = cfg.model.moe_permute_fusion = False  # Transformer Engine's
        runtime_config_update(cfg)
        return cfg


def value_at(cfg, name):
    for part in name.split("."):
        cfg = getattr(cfg, part)
    return cfg


def all_values(cfg):
    return {f"{section}.{key}": str(value) for section in SECTIONS for key, value in vars(getattr(cfg, section)).items()}


def changed(spec, key, value):
    spec = copy.deepcopy(spec)
    *parts, last = key.split(".")
    target = spec
    for part in parts:
        target = target[part]
    target[last] = value
    return spec


def check_values(cfg, wanted, what):
    wrong = {name: value_at(cfg, name) for name, value in wanted.items() if value_at(cfg, name) != value}
    if wrong:
        print(f"{what}: wanted {wanted}, and there is {wrong}")
    return not wrong


def check_changes(module, adapter, notes):
    plain = all_values(adapter.make(module, adapter.spec, notes))
    sound = True
    for key, value, wanted in CHANGES:
        spec = changed(adapter.spec, key, value)
        if key == "precision" and value == "fp8":
            spec["recompute"] = "none"
        cfg = adapter.make(module, spec, notes)
        sound &= check_values(cfg, wanted, f"{key} {value}")
        if all_values(cfg) == plain and (key, value) != ("model.sliding_window", 2048):
            print(f"{key} {value} changes nothing")
            sound = False
    for more, precision, wanted in NOTES:
        cfg = adapter.make(module, changed(adapter.spec, "precision", precision), {**notes, **more})
        sound &= check_values(cfg, wanted, str(more))
    virtual = changed(changed(adapter.spec, "parallel.pipeline_model_parallel_size", 2), "parallel.virtual_pipeline_model_parallel_size", 4)
    sound &= check_values(adapter.make(module, virtual, notes), {"model.virtual_pipeline_model_parallel_size": 4}, "VP")
    return sound


def check_experts(module, adapter, notes):
    """A dense experiment becomes a sparse one, and each of its keys arrives."""
    base = changed(changed(adapter.spec, "model.experts", EXPERTS), "parallel.sequence_parallel", True)
    base["model"].pop("rope_scaling", None)
    plain, sound = all_values(adapter.make(module, base, notes)), True
    for change, wanted in EXPERT_CHANGES:
        spec = base
        for key, value in change.items():
            spec = changed(spec, key, value)
        cfg = adapter.make(module, spec, notes)
        sound &= check_values(cfg, wanted, f"experts with {change}")
        if change and all_values(cfg) == plain:
            print(f"{change} changes nothing")
            sound = False
    return sound


def check_recipe(module, adapter):
    """What a recipe states stays where the experiment is silent, and only there."""
    cfg = adapter.make(module, adapter.spec, adapter.notes)
    return check_values(cfg, {"model.cross_entropy_fusion_impl": "te", "train.manual_gc": True, "ddp.average_in_collective": True,
                              "train.train_iters": 500, "model.context_parallel_size": 1, "model.seq_length": 2048,
                              "ddp.use_distributed_optimizer": False, "ddp.overlap_param_gather": False, "checkpoint.save": None,
                              "train.eval_iters": 0}, "recipe")


def check_order(module, adapter):
    """Megatron's sampler hands each data-parallel rank the micro batches that the other adapters train on."""
    import numpy
    from megatron.bridge.data.samplers import build_pretraining_data_loader
    from tprimat_adapter.samples import Samples
    spec = changed(adapter.spec, "micro_batch_size", 2)
    spec["global_batch_size"], spec["steps"], spec["sequence_length"] = 8, 3, 5
    path = adapter.folder / "train_spec.json"
    path.write_text(json.dumps(spec))
    experiment = module.load_experiment(path)
    numpy.save(adapter.folder / "samples.npy", numpy.arange(24 * 6, dtype=numpy.int32).reshape(24, 6))
    samples = Samples(adapter.folder / "samples.npy")
    data, _, _ = module.SampleFile(path=str(adapter.folder / "samples.npy"), seq_length=5).build_datasets(None)
    for rank in range(2):
        loader = iter(build_pretraining_data_loader(data, 0, "single", 2, 0, True, data_parallel_rank=rank, data_parallel_size=2,
                                                    global_batch_size=8))
        for step in range(1, 4):
            for index in range(2):
                batch, tokens = next(loader), samples.micro_batch(experiment, step, index, rank)
                if not ((batch["tokens"].numpy() == tokens[:, :-1]).all() and (batch["labels"].numpy() == tokens[:, 1:]).all()):
                    print(f"step {step}, micro batch {index}, rank {rank}: other tokens")
                    return False
    return True


def check_steps(module, adapter):
    """The callback, fired as Megatron-Bridge's loop fires it, with its scheduler: records, every step at its own rate, and a profile of
    the steps asked for."""
    from types import SimpleNamespace
    import torch
    from megatron.bridge.training.callbacks import CallbackContext, normalize_callbacks
    from megatron.bridge.training.optim import _get_scheduler
    from tprimat_adapter.experiment import learning_rate_at
    records = adapter.folder / "steps.jsonl"
    trace = adapter.folder / "trace.json.gz"
    os.environ.update(TPRIMAT_STEPS=str(records), RANK="0", TPRIMAT_PROFILE=f"torch:11:15:{trace}")
    cfg = adapter.make(module, adapter.spec, {})
    experiment = module.load_experiment(adapter.folder / "train_spec.json")
    manager = normalize_callbacks([module.Steps(experiment)])
    optimizer = SimpleNamespace(param_groups=[{"lr": 0.0, "max_lr": cfg.optimizer.lr, "min_lr": cfg.optimizer.min_lr}])
    scheduler = _get_scheduler(cfg.optimizer, cfg.scheduler, optimizer)
    state = SimpleNamespace(cfg=cfg, train_state=SimpleNamespace(step=0))
    context = {"state": state, "model": [], "optimizer": optimizer, "scheduler": scheduler}
    manager.fire("on_train_start", CallbackContext(**context))
    applied = []
    for state.train_state.step in range(experiment.steps):
        manager.fire("on_train_step_start", CallbackContext(**context))
        applied.append(optimizer.param_groups[0]["lr"])
        scheduler.step(increment=experiment.global_batch_size)
        loss = torch.tensor(11.0 - state.train_state.step / 1000)
        manager.fire("on_train_step_end", CallbackContext(**context, grad_norm=1.5, loss_dict={"lm loss": loss}))
    wanted = [learning_rate_at(experiment.optimizer, step, experiment.steps) for step in range(1, experiment.steps + 1)]
    worst = max(abs(a - b) for a, b in zip(applied, wanted, strict=True))
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    print(f"rates within {worst:.1e} of the native trainer's")
    del os.environ["TPRIMAT_PROFILE"]
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    recorded = sorted({int(each["name"].split("#")[1]) for each in events if each.get("name", "").startswith("ProfilerStep#")})
    if recorded != [11, 12, 13, 14, 15]:
        print(f"the profile holds the steps {recorded}")
        return False
    return worst < 1e-12 and [line["learning_rate"] for line in lines] == applied and lines[1]["step"] == 2 and (
        lines[0]["loss"], lines[0]["grad_norm"], lines[0]["tokens"]) == (11.0, 1.5, 128 * 2048)


def plan_on_amd(program, folder, notes, changes, with_package):
    """The files of the plan, by their names."""
    config, environments = folder / "config.yaml", folder / "environments"
    before = CONFIG[:CONFIG.index("hardware")] + CONFIG[CONFIG.index("models"):CONFIG.index("parallelism")]
    config.write_text(before % notes + ON_AMD)
    package = environments / "nemo/lib/python3.12/site-packages/megatron_bridge-0.3.1.dist-info"
    if with_package:
        package.mkdir(parents=True, exist_ok=True)
    sets = [word for change in changes for word in ("--set", change)]
    done = subprocess.run([program, "run", "--config", config, "--platform", "amd", "--framework", "nemo", "--output", folder / "out",
                           "--dry-run", "--json", *sets], capture_output=True, text=True, check=True,
                          env={**os.environ, "TPRIMAT_FRAMEWORKS": str(environments if with_package else folder / "none"),
                               "PATH": "/nowhere"})
    files = json.loads(done.stdout)[0]["files"]
    for file in files:
        path = pathlib.Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["content"])
    return {pathlib.Path(file["path"]).name: pathlib.Path(file["path"]) for file in files}


def load_by_primus(path):
    """The experiment through Primus' own parser and loader, and the lines of its log that leave something out."""
    import contextlib
    import io
    from primus.core.config.primus_config import get_module_config, load_primus_config
    from primus.backends.megatron_bridge.argument_builder import MegatronBridgeArgBuilder
    from primus.backends.megatron_bridge.config_utils import load_recipe_config
    log = io.StringIO()
    with contextlib.redirect_stdout(log):
        module = get_module_config(load_primus_config(path), "pre_trainer")
        cfg = load_recipe_config(MegatronBridgeArgBuilder().update(module.params).finalize())
    lost = [line for line in log.getvalue().splitlines() if "Skipping" in line or "Removing" in line]
    return cfg, [line for line in lost if "config_container.model: type mismatch" not in line]


def check_primus(module, folder):
    """Both ways to NeMo on AMD give one configuration."""
    import tprimat_adapter
    import yaml
    from megatron.bridge.training.config import runtime_config_update
    files = plan_on_amd(sys.argv[1], folder, "", [], with_package=False)
    tprimat_adapter.__path__.append(str(files["primus_recipe.py"].parent))
    from tprimat_adapter import primus_recipe
    primus_recipe.prepare_samples = lambda spec: folder / "samples.npy"
    primus = os.environ.get("PRIMUS_PATH")
    if primus:
        sys.path.append(primus)
    sound = True
    for notes in ("", RECIPE):
        for changes in AMD_CHANGES:
            files = plan_on_amd(sys.argv[1], folder, notes, changes, with_package=True)
            settings = json.loads(files["nemo_settings.json"].read_text())
            adapted = module.make_config(module.load_experiment(files["train_spec.json"]), settings, folder / "samples.npy")
            files = plan_on_amd(sys.argv[1], folder, notes, changes, with_package=False)
            overrides = yaml.safe_load(files["primus.yaml"].read_text())["modules"]["pre_trainer"]["overrides"]
            by_primus = {"recipe": primus_recipe.pretrain_config(**overrides)}
            if primus:
                by_primus["Primus' loader"], lost = load_by_primus(files["primus.yaml"])
                sound &= not lost
                print("\n".join(lost), end="\n" if lost else "")
            for cfg in (adapted, *by_primus.values()):
                cfg.model.apply_rope_fusion = cfg.model.moe_permute_fusion = False  # Transformer Engine's
                runtime_config_update(cfg)
            for way, cfg in by_primus.items():
                there, here = all_values(cfg), all_values(adapted)
                differing = {name: (here.get(name), there.get(name)) for name in {*here, *there} if here.get(name) != there.get(name)}
                if differing:
                    print(f"{way}, {notes} {changes}: the adapter's value and this way's: {differing}")
                    sound = False
    return sound


def check_start(module, adapter):
    """The adapter's main(), up to the real pretrain(): its arguments fit, and the tokens are those that tprimat wrote."""
    import inspect
    from megatron.bridge.training import pretrain as entry
    spec = changed(changed(adapter.spec, "steps", 30), "sequence_length", 64)
    spec["optimizer"]["warmup_steps"], spec["global_batch_size"], spec["model"]["vocab_size"] = 3, 8, 509
    path = adapter.folder / "train_spec.json"
    path.write_text(json.dumps(spec))
    (adapter.folder / "nemo_settings.json").write_text(json.dumps(adapter.notes))
    os.environ["TPRIMAT_PROGRAM"] = sys.argv[1]
    calls, signature = [], inspect.signature(entry.pretrain)
    entry.pretrain = lambda *words, **named: calls.append(signature.bind(*words, **named).arguments)
    words, sys.argv = sys.argv, ["train_nemo.py", "--spec", str(path)]
    try:
        module.main()
    finally:
        sys.argv = words
    data, _, _ = calls[0]["config"].dataset.build_datasets(None)
    tokens = data[239]["tokens"]
    return len(data) == 240 and len(tokens) == 64 and 0 <= tokens.min() and tokens.max() < 509 and len(calls[0]["callbacks"]) == 1


def main():
    use_chosen_python()
    try:
        version = importlib.metadata.version("megatron-bridge")
    except importlib.metadata.PackageNotFoundError:
        print(f"skipped: {sys.executable} has no megatron-bridge "
              "(pip install --no-deps -r tests/parity/requirements_alone.txt), or name another in TPRIMAT_PYTHON")
        return 77
    warnings.simplefilter("ignore")
    os.environ.update(WORLD_SIZE="8", RANK="0", MEGATRON_SUPPRESS_FUSION_WARNINGS="1")
    import megatron.core.models.gpt  # noqa: F401 Megatron Core sees what is really there
    import megatron.core.optimizer  # noqa: F401
    allow_absent(NEED_A_GPU + OF_OTHER_MODELS)
    with tempfile.TemporaryDirectory() as folder:
        adapter = Adapter(sys.argv[1], pathlib.Path(folder), RECIPE)
        import train_nemo
        checks = {"experts": check_experts(train_nemo, adapter, {}),
                  "experts over a recipe": check_experts(train_nemo, adapter, {"recipe": "deepseek_v3.pretrain_recipe"}),
                  "keys": check_changes(train_nemo, adapter, {}), "keys over a recipe": check_changes(train_nemo, adapter, adapter.notes),
                  "recipe": check_recipe(train_nemo, adapter), "order of samples": check_order(train_nemo, adapter),
                  "start": check_start(train_nemo, adapter), "step records": check_steps(train_nemo, adapter),
                  "models": check_models(train_nemo, adapter, changed), "Primus": check_primus(train_nemo, pathlib.Path(folder))}
    print(f"Megatron-Bridge {version}: {len(CHANGES)} keys, {checks}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
