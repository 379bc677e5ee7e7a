#!/usr/bin/env python3
"""PyTorch FSDP2: fully_shard on every block, a plain loop around it.

  torchrun --nproc-per-node N train_fsdp.py --spec train_spec.json
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

from tprimat_adapter import model as models, settings
from tprimat_adapter.attention import describe_attention
from tprimat_adapter.experts import Experts
from tprimat_adapter.experiment import load_experiment, local_rank, rank, world_size
from tprimat_adapter.loop import run_steps
from tprimat_adapter.loss_scale import LossScaler
from tprimat_adapter.profiling import next_batch
from tprimat_adapter.samples import Samples, prepare_samples

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def offloads(experiment: Any) -> bool:
    """FSDP2 moves weights, gradients and optimizer to the host's memory together."""
    return getattr(experiment, "offload", "none") != "none"


def start(experiment: Any) -> torch.device:
    """The process group and this process's device. Gradients on the host need a group there."""
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank())
        torch.cuda.set_device(device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if offloads(experiment) else "nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


def blocks(model: torch.nn.Module) -> torch.nn.ModuleList:
    """The transformer blocks, which each are gathered on their own."""
    return next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))


def shard(model: torch.nn.Module, experiment: Any, device: torch.device) -> None:
    policy = MixedPrecisionPolicy(param_dtype=DTYPES[experiment.precision], reduce_dtype=torch.float32)
    mesh = dist.init_device_mesh(device.type, (world_size(),))
    offload = CPUOffloadPolicy(pin_memory=torch.cuda.is_available()) if offloads(experiment) else OffloadPolicy()
    keep = experiment.parallel.zero_stage == 2  # the weights stay gathered between forward and backward
    for block in blocks(model):
        fully_shard(block, mesh=mesh, mp_policy=policy, offload_policy=offload, reshard_after_forward=not keep)
    fully_shard(model, mesh=mesh, mp_policy=policy, offload_policy=offload, reshard_after_forward=not keep)


class Training:
    def __init__(self, spec_path: str) -> None:
        self.experiment = load_experiment(spec_path)
        self.device = start(self.experiment)
        self.samples = Samples(prepare_samples(spec_path))
        self.model = models.make_model(self.experiment, spec_path)
        self.experts = Experts(self.model, self.experiment)
        if not offloads(self.experiment):  # else fully_shard brings one block after the other to the device, and back
            self.model.to(self.device)
        if self.experiment.recompute == "full":
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.model.train()
        shard(self.model, self.experiment, self.device)
        self.optimizer = models.make_optimizer(self.model, self.experiment.optimizer)
        self.schedule = models.make_schedule(self.optimizer, self.experiment)
        self.scaler = LossScaler(self.experiment, self.device)
        self.clip = self.experiment.optimizer.clip_grad_norm

    def read_tokens(self, step: int, index: int) -> torch.Tensor:
        with next_batch():
            return torch.from_numpy(self.samples.micro_batch(self.experiment, step, index, rank())).to(self.device)

    def run_step(self, step: int) -> dict[str, Any]:
        figures = {"learning_rate": self.schedule.get_last_lr()[0], "loss_scale": self.scaler.value}
        loss = torch.zeros((), device=self.device)
        for index in range(self.experiment.accumulation):
            last = index + 1 == self.experiment.accumulation
            self.model.set_requires_gradient_sync(last)
            part = models.mean_loss(self.model, self.read_tokens(step, index))
            self.scaler.scale(self.experts.add_losses(part) / self.experiment.accumulation).backward()
            loss += part.detach() / self.experiment.accumulation
        dist.all_reduce(loss)
        figures["grad_norm"] = self.update()
        return {"loss": loss / world_size(), "skipped": self.scaler.skipped or None, **figures,
                **self.experts.end_step(not self.scaler.skipped)}

    def update(self) -> torch.Tensor:
        """Clips and updates; returns the norm from before."""
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip or float("inf"))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if not self.scaler.skipped:
            self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm

    def describe(self) -> settings.Settings:
        """What FSDP2, optimizer, schedule and samples hold."""
        tokens, group = self.read_tokens(1, 0), fully_shard.state(blocks(self.model)[0])._fsdp_param_group
        dtype = group.mp_policy.param_dtype
        batch = settings.describe_batch(len(tokens), self.experiment.accumulation, dist.get_world_size())
        steps, length = len(self.samples) // batch["global_batch_size"], tokens.shape[1] - 1
        return {"framework": "fsdp", "framework_version": torch.__version__, "max_steps": steps,
                "sequence_length": length, **batch, **settings.describe_optimizer(self.optimizer),
                **settings.describe_schedule(self.schedule, steps), "clip_grad_norm": self.clip,
                "zero_stage": 3 if group.post_forward_mesh_info else 2,
                "reduce_precision": settings.PRECISIONS[group.mp_policy.reduce_dtype],
                **settings.describe_products(dtype, self.device), **self.scaler.describe(),
                **settings.describe_model(self.model), **self.experts.describe(),
                "attention": describe_attention(self.model, length, dtype, self.device)}

    def run(self) -> None:
        settings.print_settings(self.describe())
        run_steps(self.experiment, self.device, self.run_step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    Training(parser.parse_args().spec).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
