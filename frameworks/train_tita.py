#!/usr/bin/env python3
"""torchtitan: its Trainer, on our shape of its model, our tokens, initial weights, schedule and groups of weights.

  torchrun --nproc-per-node N train_tita.py --spec train_spec.json [OPTION...]

torchtitan.toml beside the experiment is torchtitan's own configuration. Options are torchtitan's too, and override it.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import pathlib
import platform
import resource
import sys
from types import SimpleNamespace
from typing import Any, Iterator

import numpy
import torch
import torch.distributed as dist
import torchtitan
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.attention import SDPBackend, sdpa_kernel
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import build_cross_entropy_loss
from torchtitan.components.lr_scheduler import LRSchedulersContainer
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.config import ConfigManager
from torchtitan.models.attention import ScaledDotProductAttentionWrapper
from torchtitan.protocols.train_spec import TrainSpec, register_train_spec
from torchtitan.tools.logging import init_logger, logger
from torchtitan.train import Trainer

import titan_experts
import titan_models
from tprimat.steps import StepRecorder
from tprimat_adapter import settings
from tprimat_adapter.experiment import learning_rate_at, load_experiment, local_rank, rank
from tprimat_adapter.profiling import last_step, next_batch, note_further_step, open_window
from tprimat_adapter.samples import Samples, prepare_samples

KERNELS = {SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.EFFICIENT_ATTENTION: "efficient", SDPBackend.MATH: "math",
           SDPBackend.CUDNN_ATTENTION: "cudnn"}


class Processor:
    """The part of torch.cuda that torchtitan asks of its device, on the processor; the memory is this process's own."""

    set_device, synchronize = staticmethod(torch.cpu.set_device), staticmethod(torch.cpu.synchronize)

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def get_device_name(device: Any = None) -> str:
        return platform.processor() or platform.machine()

    @staticmethod
    def get_device_properties(device: Any = None) -> Any:
        return SimpleNamespace(total_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

    @staticmethod
    def memory_stats(device: Any = None) -> dict[str, int]:
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"active_bytes.all.peak": held, "reserved_bytes.all.peak": held, "num_alloc_retries": 0, "num_ooms": 0}

    @staticmethod
    def nothing() -> None:
        pass

    reset_peak_memory_stats = empty_cache = nothing


def use_processor() -> None:
    """Without a GPU torchtitan takes "cuda" all the same; here its modules learn that the device is the processor."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torchtitan") and hasattr(module, "device_type"):
            module.device_type, module.device_module = "cpu", Processor
    titan_experts.count_on_processor()


def parallelize_on_processor(parallelize: Any) -> Any:
    """gloo adds up and does not scale, by which FSDP2 skips its own mean."""
    def spread(model: torch.nn.Module, parallel_dims: Any, config: Any) -> torch.nn.Module:
        model = parallelize(model, parallel_dims, config)
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_force_sum_reduction_for_comms(True)
        return model
    return spread


def choose_attention() -> None:
    """TPRIMAT_FLASH_ATTENTION: `on` leaves PyTorch the flash kernel alone, `off` the whole matrix of scores."""
    wanted = os.environ.get("TPRIMAT_FLASH_ATTENTION", "")
    if wanted not in ("on", "off", ""):
        raise SystemExit(f"error: TPRIMAT_FLASH_ATTENTION is '{wanted}'; it may be on, off or absent")
    if wanted:
        kernel = SDPBackend.FLASH_ATTENTION if wanted == "on" else SDPBackend.MATH
        ScaledDotProductAttentionWrapper.sdpa_backends = [kernel]


class StepTokens(BaseDataLoader):
    """The micro-batches of one data-parallel rank, in the native trainer's order; those of a pipeline come together."""

    def __init__(self, experiment: Any, samples: Samples, dp_rank: int, together: int) -> None:
        self.experiment, self.samples, self.dp_rank, self.together = experiment, samples, dp_rank, together

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        for step in range(1, last_step(self.experiment) + 1):
            for first in range(0, self.experiment.accumulation, self.together):
                yield self.read(step, first)

    def read(self, step: int, first: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        with next_batch():
            rows = [self.samples.micro_batch(self.experiment, step, index, self.dp_rank)
                    for index in range(first, first + self.together)]
            tokens = torch.from_numpy(numpy.concatenate(rows))
            return {"input": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass


def tokens_per_step(config: Any) -> int:
    return config.training.global_batch_size * config.training.seq_len


def build_loss(config: Any, parallel_dims: Any) -> Any:
    """torchtitan divides the sum over tokens by their number; but 0.2.2 forgets it where a pipeline computes gradients
    (https://github.com/pytorch/torchtitan/issues/2972)."""
    loss = build_cross_entropy_loss(config)
    if not parallel_dims.pp_enabled:
        return loss
    return lambda predicted, labels: loss(predicted, labels) / tokens_per_step(config)


def build_optimizers(model_parts: list[torch.nn.Module], config: Any, parallel_dims: Any) -> OptimizersContainer:
    """Matrices decay; norms and biases do not, which torchtitan's own groups do not distinguish."""
    biases = {weight for part in model_parts for name, weight in part.named_parameters() if name.endswith("bias")}

    def make_adamw(weights: list[torch.Tensor], weight_decay: float, **options: Any) -> torch.optim.AdamW:
        matrices = [w for w in weights if w.ndim > 1 and w not in biases]  # experts' biases have two dimensions
        groups = [{"params": matrices, "weight_decay": weight_decay},
                  {"params": [w for w in weights if w.ndim <= 1 or w in biases], "weight_decay": 0.0}]
        return torch.optim.AdamW([group for group in groups if group["params"]], **options)
    options = {"lr": config.lr, "betas": (config.beta1, config.beta2), "eps": config.eps,
               "weight_decay": config.weight_decay, "fused": config.implementation == "fused",
               "foreach": config.implementation == "foreach"}
    return OptimizersContainer(model_parts, make_adamw, options)


def build_sparse_optimizers(model_parts: list[torch.nn.Module], config: Any,
                            parallel_dims: Any) -> OptimizersContainer:
    """With the hooks of experts, the reading one before torchtitan's, which clears what it reads."""
    optimizers = build_optimizers(model_parts, config, parallel_dims)
    optimizers.expert_load = titan_experts.ExpertLoad(model_parts, parallel_dims)
    optimizers.register_step_pre_hook(optimizers.expert_load.read)
    return titan_experts.balance_experts(model_parts, parallel_dims, optimizers)


def build_schedules(optimizers: OptimizersContainer, config: Any, steps: int) -> LRSchedulersContainer:
    """torchtitan's own decay would come one step later."""
    schedule = "constant" if config.decay_ratio == 0 else config.decay_type
    if schedule not in ("constant", "linear", "cosine") or config.decay_ratio:
        raise SystemExit(f"error: the adapter has no decay {config.decay_type} over a share of {config.decay_ratio}; "
                         "set training.optimizer.schedule instead of torchtitan's lr_scheduler")
    shape = SimpleNamespace(learning_rate=1.0, min_learning_rate=config.min_lr_factor, schedule=schedule,
                            warmup_steps=config.warmup_steps)
    return LRSchedulersContainer(optimizers, lambda done: learning_rate_at(shape, done + 1, steps))


class Metrics(MetricsProcessor):
    """One step record and one line after each step."""

    def __init__(self, config: Any, parallel_dims: Any, model_args: Any = None) -> None:
        super().__init__(config, parallel_dims)
        self.device = torch.device(torchtitan.tools.utils.device_type)
        self.recorder = StepRecorder(self.device, tokens_per_step(config))
        self.steps = config.training.steps  # those after them are profiled only

    def log(self, step: int, global_avg_loss: float, global_max_loss: float, grad_norm: float,
            extra_metrics: dict[str, Any] | None = None) -> None:
        self.data_loading_times.clear()
        if step > self.steps:
            return note_further_step(self.recorder, step)
        load = getattr(self.optimizers, "expert_load", None)  # torchtitan's experts take every token
        of_experts = {"expert_load": load.value, "dropped_share": 0.0} if load else {}
        record = self.recorder.end_step(step, loss=self.whole_loss(global_avg_loss), grad_norm=grad_norm,
                                        learning_rate=extra_metrics["lr"], **of_experts)
        logger.info(f"step {step}/{self.steps} loss {record['loss']} grad_norm "
                    f"{record['grad_norm']} learning_rate {record['learning_rate']} seconds "
                    f"{record['time_seconds']:.4f}")

    def whole_loss(self, loss: float) -> float:
        """Only a pipeline's last stage knows the loss, and the last rank is one of its; build_loss divided it once."""
        if not self.parallel_dims.pp_enabled:
            return loss
        value = torch.tensor([loss * tokens_per_step(self.job_config)], dtype=torch.float64, device=self.device)
        dist.broadcast(value, src=dist.get_world_size() - 1)
        return value.item()


class Training(Trainer):
    """torchtitan's Trainer, which says what holds before its first step and records a profile."""

    def train_step(self, data_iterator: Any) -> None:
        if self.step == 1:
            settings.print_settings(self.describe())
            self.window = open_window()
            self.job_config.training.steps = last_step(self.job_config.training)  # the schedule is made already
            self.metrics_processor.recorder.begin()
        self.window.begin(self.step)
        super().train_step(data_iterator)
        self.window.end(self.step)

    def describe(self) -> settings.Settings:
        """What torchtitan's objects hold; nothing here reads the experiment."""
        config, dims = self.job_config, self.parallel_dims
        schedule = self.lr_schedulers.schedulers[0]
        return {"framework": "tita", "framework_version": torchtitan.__version__, "max_steps": config.training.steps,
                "sequence_length": config.training.seq_len, **self.describe_layout(),
                **settings.describe_optimizer(self.optimizers.optimizers[0]),
                **settings.describe_schedule(schedule, config.training.steps),
                "clip_grad_norm": config.training.max_norm if math.isfinite(config.training.max_norm) else 0,
                **self.describe_products(), "recompute": self.describe_recompute(),
                "attention": self.describe_attention(), "parameters": self.count_parameters(),
                "seed": torch.initial_seed(), "tensor_model_parallel_size": dims.tp,
                "pipeline_model_parallel_size": dims.pp, "context_parallel_size": dims.cp, **self.describe_experts()}

    def describe_experts(self) -> settings.Settings:
        sparse = titan_experts.moes(self.model_parts)
        if not sparse:
            return {}
        dims, router = self.parallel_dims, sparse[0].router
        exchange = self.job_config.parallelism.expert_parallel_comm_backend
        return {"expert_model_parallel_size": dims.ep,
                "expert_tensor_parallel_size": dims.etp if dims.ep_enabled else dims.tp,
                "routing": "balanced" if router._debug_force_load_balance else "learned",
                "dispatcher": {"standard": "alltoall"}.get(exchange, exchange), "num_experts": router.num_experts,
                "moe_router_topk": router.top_k}

    def describe_layout(self) -> settings.Settings:
        config, dims = self.job_config, self.parallel_dims
        micro, accumulation = config.training.local_batch_size, self.gradient_accumulation_steps
        if dims.pp_enabled:
            accumulation *= micro // config.parallelism.pipeline_parallel_microbatch_size
            micro = config.parallelism.pipeline_parallel_microbatch_size
        shared = self.fsdp_group()
        stage = 0 if shared is None else 3 if shared.post_forward_mesh_info else 2
        return {**settings.describe_batch(micro, accumulation, dims.dp_replicate * dims.dp_shard), "zero_stage": stage}

    def blocks(self) -> list[torch.nn.Module]:
        return [block for part in self.model_parts for block in part.layers.values()]

    def fsdp_group(self) -> Any:
        """Of a block; None where nothing is sharded."""
        block = self.blocks()[0]
        return fully_shard.state(block)._fsdp_param_group if isinstance(block, FSDPModule) else None

    def describe_products(self) -> settings.Settings:
        shared, amp = self.fsdp_group(), self.maybe_enable_amp
        weight = next(self.blocks()[0].parameters()).dtype
        fast = getattr(amp, "fast_dtype", weight) if getattr(amp, "_enabled", False) else weight
        dtype = shared.mp_policy.param_dtype if shared else fast
        described = settings.describe_products(dtype, torch.device(torchtitan.tools.utils.device_type))
        narrow = any(type(module).__name__ == "Float8Linear" for module in self.blocks()[0].modules())
        return {**described, **({"precision": "fp8"} if narrow else {}),
                **({"reduce_precision": settings.PRECISIONS[shared.mp_policy.reduce_dtype]} if shared else {})}

    def describe_recompute(self) -> str:
        wrapped = any(isinstance(module, CheckpointWrapper) for module in self.blocks()[0].modules())
        return self.job_config.activation_checkpoint.mode if wrapped else "none"

    def describe_attention(self) -> str:
        """The kernel that PyTorch picks for a sequence; with CP it picks one for each part."""
        args, device = self.model_args, torch.device(torchtitan.tools.utils.device_type)
        if getattr(args, "attn_type", "sdpa") != "sdpa":
            return args.attn_type
        width = getattr(args, "head_dim", args.dim // args.n_heads)
        if hasattr(args, "qk_rope_head_dim"):
            width = args.qk_nope_head_dim + args.qk_rope_head_dim
        dtype = torch.float32 if self.describe_products()["precision"] in ("fp32", "tf32") else torch.bfloat16
        query, key = (torch.empty(1, self.job_config.training.seq_len, heads // self.parallel_dims.tp, width,
                                  dtype=dtype, device=device, requires_grad=True).transpose(1, 2)
                      for heads in (args.n_heads, args.n_kv_heads))
        with sdpa_kernel(ScaledDotProductAttentionWrapper().sdpa_backends, set_priority=True):
            try:
                kernel = torch._fused_sdp_choice(query, key, key, None, 0.0, True,
                                                 enable_gqa=args.n_heads > args.n_kv_heads)
            except RuntimeError as error:
                raise SystemExit(f"error: TPRIMAT_FLASH_ATTENTION is on, and PyTorch has no flash attention for "
                                 f"{dtype}, {args.n_heads} heads of {width} on {device}; leave it out, or train in "
                                 f"bf16: {error}") from error
        return f"sdpa_{KERNELS[SDPBackend(kernel)]}"

    def count_parameters(self) -> int:
        """Each weight counted once, also where ranks share it or a pipeline splits them."""
        count = sum(weight.numel() for part in self.model_parts for weight in part.parameters())
        stages = self.parallel_dims.get_optional_mesh("pp")
        if stages is None:
            return count
        total = torch.tensor(count, device=self.device)
        dist.all_reduce(total, group=stages.get_group())
        return int(total)


def stand_for_tokenizer(config: Any) -> SimpleNamespace:
    """torchtitan wants one where it draws masks, and asks a causal mask's nothing."""
    return SimpleNamespace(eos_id=None)


def register(config: Any, experiment: Any, samples: Samples) -> None:
    """The TrainSpec of the shape, under the names that torchtitan.toml has."""
    model = experiment.model
    families = titan_experts.FAMILIES if titan_experts.needs_own_family(model) else titan_models.FAMILIES
    family = families[config.model.name]
    parallelize = family.parallelize if torch.cuda.is_available() else parallelize_on_processor(family.parallelize)
    args = family.describe(experiment)
    together = config.training.local_batch_size // experiment.micro_batch_size
    if titan_experts.is_sparse(model):
        titan_experts.count_steps_alone()

    def build_dataloader(dp_rank: int, **_: Any) -> StepTokens:
        return StepTokens(experiment, samples, dp_rank, together)

    register_train_spec(config.model.name, TrainSpec(
        model_cls=family.model, model_args={config.model.flavor: args},
        parallelize_fn=parallelize, pipelining_fn=family.pipeline,
        build_optimizers_fn=build_sparse_optimizers if titan_experts.is_sparse(model) else build_optimizers,
        build_lr_schedulers_fn=build_schedules, build_dataloader_fn=build_dataloader,
        build_tokenizer_fn=stand_for_tokenizer if getattr(args, "attn_type", "sdpa") == "flex" else None,
        build_loss_fn=build_loss, build_metrics_processor_fn=Metrics))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--spec", required=True, type=pathlib.Path, help="train_spec.json")
    arguments, options = parser.parse_known_args()
    init_logger()
    if rank() != 0:
        logger.setLevel(logging.WARNING)  # the others would repeat every line
    if not torch.cuda.is_available():
        use_processor()
    choose_attention()
    experiment = load_experiment(arguments.spec)
    file = arguments.spec.with_name("torchtitan.toml")
    config = ConfigManager().parse_args(["--job.config_file", str(file), *options])
    if config.parallelism.pipeline_parallel_degree > 1:  # where its local batch size is not that of a micro-batch
        logger.addFilter(lambda record: not record.getMessage().startswith("Trainer is initialized"))
    samples = prepare_samples(arguments.spec)
    register(config, experiment, Samples(samples))
    logger.info(f"torchtitan version: {torchtitan.__version__}")
    training = Training(config)
    try:
        training.train()
    finally:
        training.close()
    dist.destroy_process_group()
    if local_rank() == 0:
        samples.unlink(missing_ok=True)
    # A thread of gloo may outlive what Python takes down, and would abort the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
