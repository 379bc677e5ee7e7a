#!/usr/bin/env python3
"""NVIDIA NeMo: the pretrain() of Megatron-Bridge, on a configuration made from the experiment.

  torchrun --nproc-per-node N train_nemo.py --spec train_spec.json

nemo_settings.json beside the experiment names what is NeMo's own: a recipe to start from, and the platform's settings.
"""

import argparse
import importlib.metadata
import json
import pathlib

import torch
import torch.distributed as dist
from megatron.bridge.training.callbacks import Callback
from megatron.core.activations import fast_gelu
from megatron.core.transformer.enums import AttnBackend

from tprimat.steps import StepRecorder
from tprimat_adapter.bridge import SampleFile, fill_config, start_precision
from tprimat_adapter.bridge_experts import ExpertLoad, describe_experts, own_device, sparse_settings
from tprimat_adapter.experiment import load_experiment, rank
from tprimat_adapter.profiling import open_window
from tprimat_adapter.samples import prepare_samples


def rope_settings(model):
    """Llama 3.1's stretching and the linear one; the launcher refused the others."""
    scaling = getattr(model, "rope_scaling", None)
    llama3, linear = (scaling is not None and scaling.type == kind for kind in ("llama3", "linear"))
    return {"position_embedding_type": "rope" if model.position == "rope" else "learned_absolute",
            "rotary_base": model.rope_theta, "rotary_percent": 1.0, "rope_scaling": llama3,
            "rope_scaling_factor": scaling.factor if llama3 else 1.0,
            "seq_len_interpolation_factor": scaling.factor if linear else None}


def mlp_settings(model):
    """gelu is its tanh form: Megatron fuses that with a bias, and has it alone as fast_gelu."""
    if model.mlp == "swiglu":
        return {"gated_linear_unit": True, "activation_func": torch.nn.functional.silu, "bias_activation_fusion": True}
    function = torch.nn.functional.gelu if model.linear_bias else fast_gelu
    return {"gated_linear_unit": False, "activation_func": function, "bias_activation_fusion": model.linear_bias}


def shape_settings(experiment):
    model = experiment.model
    window = getattr(model, "sliding_window", None)
    short = window is not None and window < experiment.sequence_length
    return {"num_layers": model.num_layers, "hidden_size": model.hidden_size, "ffn_hidden_size": model.ffn_hidden_size,
            "num_attention_heads": model.num_attention_heads, "num_query_groups": model.num_key_value_heads,
            "kv_channels": model.head_dim, "seq_length": experiment.sequence_length,
            "share_embeddings_and_output_weights": model.tied_embeddings, "add_bias_linear": model.linear_bias,
            "add_qkv_bias": model.qkv_bias or model.linear_bias, "qk_layernorm": model.qk_norm,
            "normalization": "RMSNorm" if model.norm == "rms" else "LayerNorm", "layernorm_epsilon": model.norm_eps,
            "window_size": (window - 1, 0) if short else None,  # keys before a query; itself it always sees
            "hidden_dropout": 0.0, "attention_dropout": 0.0, "init_method_std": 0.02, "num_moe_experts": None,
            "vocab_size": None,  # the tokenizer's
            "make_vocab_size_divisible_by": 16 if experiment.precision == "fp8" else 1,  # times TP
            **mlp_settings(model), **rope_settings(model)}


def layout_settings(experiment):
    layout = experiment.parallel
    stages = layout.virtual_pipeline_model_parallel_size
    return {"tensor_model_parallel_size": layout.tensor_model_parallel_size,
            "pipeline_model_parallel_size": layout.pipeline_model_parallel_size,
            "virtual_pipeline_model_parallel_size": stages if stages > 1 else None,
            "account_for_embedding_in_pipeline_split": layout.embedding_and_loss_as_layers,
            "account_for_loss_in_pipeline_split": layout.embedding_and_loss_as_layers,
            "pipeline_model_parallel_layout": getattr(layout, "pipeline_layout", None),
            "context_parallel_size": layout.context_parallel_size,
            "expert_model_parallel_size": 1,
            "sequence_parallel": layout.sequence_parallel and layout.tensor_model_parallel_size > 1}


def memory_settings(experiment, notes):
    """Recomputation, and attention: TransformerEngine's choice where the platform says nothing."""
    kind = experiment.recompute
    flash = notes.get("flash_attention")
    modules = getattr(experiment, "recompute_modules", None) or ["core_attn"]
    backend = AttnBackend.auto if flash is None else AttnBackend.flash if flash else AttnBackend.unfused
    return {"recompute_granularity": None if kind == "none" else kind,
            "recompute_method": "uniform" if kind == "full" else None,
            "recompute_num_layers": 1 if kind == "full" else None,
            "recompute_modules": modules if kind == "selective" else None, "attention_backend": backend}


def optimizer_settings(experiment, shares):
    optimizer = experiment.optimizer
    return {"optimizer": "adam", "decoupled_weight_decay": True, "lr": optimizer.learning_rate,
            "min_lr": optimizer.min_learning_rate, "weight_decay": optimizer.weight_decay,
            "adam_beta1": optimizer.beta1, "adam_beta2": optimizer.beta2, "adam_eps": optimizer.epsilon,
            "clip_grad": optimizer.clip_grad_norm, "use_distributed_optimizer": shares}


def schedule_settings(experiment):
    optimizer = experiment.optimizer
    return {"lr_decay_style": optimizer.schedule, "lr_decay_iters": experiment.steps, "lr_decay_samples": None,
            "lr_warmup_iters": optimizer.warmup_steps, "lr_warmup_fraction": None, "lr_warmup_samples": 0,
            "lr_warmup_init": 0.0, "start_weight_decay": optimizer.weight_decay,
            "end_weight_decay": optimizer.weight_decay, "weight_decay_incr_style": "constant"}


def shares_optimizer(experiment, notes):
    """Also where weights are kept in fp8, which Megatron does with the distributed optimizer only."""
    fp8_weights = experiment.precision == "fp8" and notes.get("fp8_param", False)
    return experiment.parallel.zero_stage > 0 or fp8_weights


def list_settings(experiment, notes):
    """What the experiment states, by section of Megatron-Bridge's configuration."""
    shares = shares_optimizer(experiment, notes)
    stops = experiment.anomalies.not_finite == "stop"
    sections = {
        "model": {**shape_settings(experiment), **layout_settings(experiment), **memory_settings(experiment, notes),
                  **sparse_settings(experiment)},
        "train": {"train_iters": experiment.steps, "train_samples": None, "rampup_batch_size": None,
                  "micro_batch_size": experiment.micro_batch_size, "global_batch_size": experiment.global_batch_size,
                  "eval_iters": 0, "eval_interval": experiment.steps + 1},
        "optimizer": optimizer_settings(experiment, shares),
        "scheduler": schedule_settings(experiment),
        "ddp": {"use_distributed_optimizer": shares, "check_for_nan_in_grad": stops},
        "rng": {"seed": experiment.seed},
        "rerun_state_machine": {"check_for_nan_in_loss": stops},
        "tokenizer": {"tokenizer_type": "NullTokenizer", "tokenizer_model": None,
                      "vocab_size": experiment.model.vocab_size},
        "checkpoint": {"save": None, "load": None},
        "logger": {"log_interval": 1, "log_throughput": True, "tensorboard_dir": None}}
    if not shares:  # a recipe gathers weights that nobody shares
        sections["ddp"]["overlap_param_gather"] = False
    return sections


def make_precision(experiment, notes):
    if experiment.precision in ("tf32", "fp32"):  # how Transformer Engine multiplies fp32: on NVIDIA, on AMD
        return start_precision("fp32")
    if experiment.precision == "fp8":
        precision = start_precision("bf16_with_fp8_delayed_scaling_mixed")
        precision.fp8 = "hybrid" if notes.get("fp8_hybrid", True) else "e4m3"
        precision.fp8_param_gather = notes.get("fp8_param", False)
        return precision
    precision = start_precision(experiment.precision + "_mixed")
    if experiment.precision == "fp16":
        scale = experiment.loss_scale
        precision.loss_scale, precision.initial_loss_scale = None, scale.initial
        precision.min_loss_scale, precision.loss_scale_window = scale.minimum, scale.window
        precision.hysteresis = 1  # each overflow halves the scale
    return precision


def make_config(experiment, notes, samples_path):
    cfg = fill_config(notes.get("recipe"), list_settings(experiment, notes), make_precision(experiment, notes))
    cfg.dataset = SampleFile(path=str(samples_path), seq_length=experiment.sequence_length)
    return cfg


class Steps(Callback):
    """One step record after each step, by rank 0; and every step at its own rate. Megatron's loop moves the schedule on
    after the update, so that step s would be taken at the rate of s - 1 and the first at 0: here it is one step on.
    A profile's window opens and closes here, as in the other adapters, and not by the recipe's section `profiling`."""

    def __init__(self, experiment):
        self.batch = experiment.global_batch_size
        self.tokens = self.batch * experiment.sequence_length
        self.rate = None

    def on_train_start(self, context):
        if rank() == 0:
            print_settings(context.state.cfg)
        context.scheduler.step(increment=self.batch)
        self.recorder = StepRecorder(own_device(), self.tokens)
        self.load = ExpertLoad(context.model, context.state.cfg.model)
        self.window = open_window()

    def on_train_step_start(self, context):
        self.window.begin(context.state.train_state.step + 1)
        self.rate = next((group["lr"] for group in context.optimizer.param_groups), None)

    def on_train_step_end(self, context):
        step = context.state.train_state.step + 1
        self.recorder.end_step(step, loss=self.loss_of(context), grad_norm=context.grad_norm, learning_rate=self.rate,
                               expert_load=self.load.take(), dropped_share=self.load.dropped)
        self.window.end(step)

    @staticmethod
    def loss_of(context):
        """The last stage of a pipeline knows the loss; the last rank is one of its."""
        loss = context.loss_dict.get("lm loss") if context.loss_dict else None
        if context.state.cfg.model.pipeline_model_parallel_size == 1:
            return loss
        value = torch.zeros(1, device=own_device()) if loss is None else loss.detach().float().reshape(1).clone()
        dist.broadcast(value, src=dist.get_world_size() - 1)
        return value


def precision_of(model):
    of_fp32 = "fp32" if torch.version.hip else "tf32"
    return "fp8" if model.fp8 else "bf16" if model.bf16 else "fp16" if model.fp16 else of_fp32


def describe(cfg):
    """What the configuration holds after Megatron-Bridge's own last changes; nothing here reads the experiment."""
    model, optimizer, schedule = cfg.model, cfg.optimizer, cfg.scheduler
    return {"framework": "nemo", "framework_version": importlib.metadata.version("megatron-bridge"),
            "tensor_model_parallel_size": model.tensor_model_parallel_size,
            "pipeline_model_parallel_size": model.pipeline_model_parallel_size,
            "context_parallel_size": model.context_parallel_size, "data_parallel_size": cfg.data_parallel_size,
            "zero_stage": int(optimizer.use_distributed_optimizer), "micro_batch_size": cfg.train.micro_batch_size,
            "global_batch_size": cfg.train.global_batch_size, "sequence_length": model.seq_length,
            "max_steps": cfg.train.train_iters, "precision": precision_of(model),
            "recompute": model.recompute_granularity or "none", "attention": model.attention_backend.name,
            "optimizer": optimizer.optimizer, "learning_rate": optimizer.lr, "min_learning_rate": optimizer.min_lr,
            "schedule": schedule.lr_decay_style,
            "warmup_steps": schedule.lr_warmup_steps // cfg.train.global_batch_size,
            "weight_decay": optimizer.weight_decay, "beta1": optimizer.adam_beta1, "beta2": optimizer.adam_beta2,
            "epsilon": optimizer.adam_eps, "clip_grad_norm": optimizer.clip_grad, "seed": cfg.rng.seed,
            **describe_experts(model)}


def print_settings(cfg):
    """One line each, in the log."""
    for name, value in describe(cfg).items():
        print(f"setting {name} {value}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, type=pathlib.Path, help="train_spec.json")
    spec = parser.parse_args().spec
    from megatron.bridge.training.gpt_step import forward_step
    from megatron.bridge.training.pretrain import pretrain
    experiment = load_experiment(spec)
    notes = json.loads(spec.with_name("nemo_settings.json").read_text(encoding="utf-8"))
    cfg = make_config(experiment, notes, prepare_samples(spec))
    pretrain(cfg, forward_step, callbacks=[Steps(experiment)])


if __name__ == "__main__":
    main()
