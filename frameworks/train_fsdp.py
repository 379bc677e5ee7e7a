#!/usr/bin/env python3
"""PyTorch FSDP2: fully_shard on every block, a plain loop around it.

  torchrun --nproc-per-node N train_fsdp.py --spec train_spec.json
"""

import argparse

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from tprimat_adapter import model as models
from tprimat_adapter.experiment import learning_rate_at, load_experiment, local_rank, rank, world_size
from tprimat_adapter.loop import run_steps
from tprimat_adapter.samples import Samples, prepare_samples

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def start():
    """The process group and this process's device."""
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank())
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


def blocks(model):
    """The transformer blocks, which each are gathered on their own."""
    return next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))


def shard(model, experiment, device):
    policy = MixedPrecisionPolicy(param_dtype=DTYPES[experiment.precision], reduce_dtype=torch.float32)
    mesh = dist.init_device_mesh(device.type, (world_size(),))
    keep = experiment.parallel.zero_stage < 3  # ZeRO-2: the weights stay gathered between forward and backward
    for block in blocks(model):
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=not keep)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=not keep)


class Training:
    def __init__(self, spec_path):
        self.device = start()
        self.experiment = load_experiment(spec_path)
        self.samples = Samples(prepare_samples(spec_path))
        self.model = models.make_model(self.experiment, spec_path).to(self.device)
        if self.experiment.recompute == "full":
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.model.train()
        shard(self.model, self.experiment, self.device)
        self.optimizer = models.make_optimizer(self.model, self.experiment.optimizer)

    def run_step(self, step):
        loss = torch.zeros((), device=self.device)
        for index in range(self.experiment.accumulation):
            last = index + 1 == self.experiment.accumulation
            self.model.set_requires_gradient_sync(last)
            tokens = torch.from_numpy(self.samples.micro_batch(self.experiment, step, index, rank())).to(self.device)
            part = models.mean_loss(self.model, tokens) / self.experiment.accumulation
            part.backward()
            loss += part.detach()
        dist.all_reduce(loss)
        return loss / world_size(), *self.update(step)

    def update(self, step):
        """Clips, updates, and returns the norm from before and the rate."""
        settings = self.experiment.optimizer
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_grad_norm or float("inf"))
        rate = learning_rate_at(settings, step, self.experiment.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm, rate

    def run(self):
        run_steps("fsdp", self.experiment, self.optimizer, self.device, self.run_step)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    Training(parser.parse_args().spec).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
