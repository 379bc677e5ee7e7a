#!/usr/bin/env python3
"""DeepSpeed: its engine with ZeRO-0 to 3, a plain loop around it.

  torchrun --nproc-per-node N train_deep.py --spec train_spec.json
"""

import argparse

import deepspeed
import torch

from tprimat_adapter import model as models
from tprimat_adapter.experiment import learning_rate_at, load_experiment, local_rank, rank, world_size
from tprimat_adapter.loop import run_steps
from tprimat_adapter.samples import Samples, prepare_samples


def zero_stage(experiment):
    """As asked for. One rank has nothing to share, but only with ZeRO does DeepSpeed add up bf16 gradients in fp32."""
    alone = experiment.parallel.data_parallel_size == 1 and experiment.precision == "bf16"
    return max(experiment.parallel.zero_stage, 1 if alone else 0)


def make_config(experiment):
    """The experiment in DeepSpeed's words (its ds_config.json)."""
    return {
        "train_batch_size": experiment.global_batch_size,
        "train_micro_batch_size_per_gpu": experiment.micro_batch_size,
        "gradient_accumulation_steps": experiment.accumulation,
        "gradient_clipping": experiment.optimizer.clip_grad_norm,
        "bf16": {"enabled": experiment.precision == "bf16"},
        "data_types": {"grad_accum_dtype": "fp32"},
        "zero_optimization": {"stage": zero_stage(experiment)},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": experiment.steps + 1,
    }


class Training:
    def __init__(self, spec_path):
        deepspeed.init_distributed()
        on_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda", local_rank()) if on_gpu else torch.device("cpu")
        self.experiment = load_experiment(spec_path)
        self.samples = Samples(prepare_samples(spec_path))
        model = models.make_model(self.experiment, spec_path).to(self.device)
        if self.experiment.recompute == "full":
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
        self.client_optimizer = models.make_optimizer(model, self.experiment.optimizer)
        self.engine, self.optimizer, _, _ = deepspeed.initialize(
            model=model, optimizer=self.client_optimizer, config=make_config(self.experiment))

    def run_step(self, step):
        rate = learning_rate_at(self.experiment.optimizer, step, self.experiment.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = torch.zeros((), device=self.device)
        for index in range(self.experiment.accumulation):
            tokens = torch.from_numpy(self.samples.micro_batch(self.experiment, step, index, rank())).to(self.device)
            part = models.mean_loss(self.engine, tokens)
            self.engine.backward(part)
            self.engine.step()  # updates at the end of an accumulation only
            loss += part.detach() / self.experiment.accumulation
        torch.distributed.all_reduce(loss)
        return loss / world_size(), self.engine.get_global_grad_norm(), rate

    def run(self):
        run_steps("deep", self.experiment, self.client_optimizer, self.device, self.run_step)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    Training(parser.parse_args().spec).run()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
