#!/usr/bin/env python3
"""DeepSpeed: its engine with ZeRO-0 to 3, a plain loop around it.

  torchrun --nproc-per-node N train_deep.py --spec train_spec.json
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import deepspeed
import torch

from tprimat_adapter import model as models, settings
from tprimat_adapter.attention import describe_attention
from tprimat_adapter.experts import Experts
from tprimat_adapter.experiment import load_experiment, local_rank, rank, world_size
from tprimat_adapter.loop import run_steps
from tprimat_adapter.profiling import last_step, next_batch
from tprimat_adapter.samples import Samples, prepare_samples


def zero_stage(experiment: Any) -> int:
    """As asked for, but only with ZeRO does DeepSpeed add up short gradients in fp32."""
    return max(experiment.parallel.zero_stage, 0 if experiment.precision == "fp32" else 1)


def offload(experiment: Any) -> dict[str, Any]:
    """What the host's memory keeps: the optimizer's state, or that and the weights."""
    kept = getattr(experiment, "offload", "none")
    parts = {"none": [], "optimizer": ["optimizer"], "parameters": ["optimizer", "param"]}[kept]
    return {f"offload_{part}": {"device": "cpu", "pin_memory": torch.cuda.is_available()} for part in parts}


def make_config(experiment: Any) -> dict[str, Any]:
    """The experiment in DeepSpeed's words (its ds_config.json)."""
    scale = experiment.loss_scale
    return {
        "train_batch_size": experiment.global_batch_size,
        "train_micro_batch_size_per_gpu": experiment.micro_batch_size,
        "gradient_accumulation_steps": experiment.accumulation,
        "gradient_clipping": experiment.optimizer.clip_grad_norm,
        "bf16": {"enabled": experiment.precision == "bf16"},
        "fp16": {"enabled": experiment.precision == "fp16", "loss_scale": 0,  # 0: dynamic
                 "initial_scale_power": round(math.log2(scale.initial)), "loss_scale_window": scale.window,
                 "hysteresis": 1, "min_loss_scale": scale.minimum},
        "data_types": {"grad_accum_dtype": "fp32"},
        "zero_optimization": {"stage": zero_stage(experiment), **offload(experiment)},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # torch's AdamW runs on the host too, with the sums that others have
        "steps_per_print": last_step(experiment) + 1,
    }


class Training:
    def __init__(self, spec_path: str) -> None:
        deepspeed.init_distributed()
        on_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda", local_rank()) if on_gpu else torch.device("cpu")
        self.experiment = load_experiment(spec_path)
        self.samples = Samples(prepare_samples(spec_path))
        model = models.make_model(self.experiment, spec_path).to(self.device)
        if self.experiment.recompute == "full":
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
        self.experts = Experts(model, self.experiment)
        optimizer = models.make_optimizer(model, self.experiment.optimizer)
        self.engine, self.optimizer, _, self.schedule = deepspeed.initialize(
            model=model, optimizer=optimizer, lr_scheduler=models.make_schedule(optimizer, self.experiment),
            config=make_config(self.experiment))

    def read_tokens(self, step: int, index: int) -> torch.Tensor:
        with next_batch():
            return torch.from_numpy(self.samples.micro_batch(self.experiment, step, index, rank())).to(self.device)

    def run_step(self, step: int) -> dict[str, Any]:
        scale = self.optimizer.cur_scale if self.engine.fp16_enabled() else None
        figures = {"learning_rate": self.schedule.get_last_lr()[0], "loss_scale": scale}
        loss = torch.zeros((), device=self.device)
        for index in range(self.experiment.accumulation):
            part = models.mean_loss(self.engine, self.read_tokens(step, index))
            self.engine.backward(self.experts.add_losses(part))
            self.engine.step()  # updates at the end of an accumulation only
            loss += part.detach() / self.experiment.accumulation
        torch.distributed.all_reduce(loss)
        return {"loss": loss / world_size(), "grad_norm": self.engine.get_global_grad_norm(),
                "skipped": not self.engine.was_step_applied() or None, **figures,
                **self.experts.end_step(self.engine.was_step_applied())}

    def describe(self) -> settings.Settings:
        """What DeepSpeed's engine, the optimizer in it, schedule and samples hold."""
        engine, length = self.engine, self.samples.sequence_length
        batch, micro = engine.train_batch_size(), engine.train_micro_batch_size_per_gpu()
        accumulation, steps = engine.gradient_accumulation_steps(), len(self.samples) // batch
        fp16, bf16 = engine.fp16_enabled(), engine.bfloat16_enabled()
        dtype = torch.float16 if fp16 else torch.bfloat16 if bf16 else torch.float32
        return {"framework": "deep", "framework_version": deepspeed.__version__, "max_steps": steps,
                "sequence_length": length, **settings.describe_batch(micro, accumulation, engine.dp_world_size),
                "global_batch_size": batch, **settings.describe_optimizer(self.optimizer),
                **settings.describe_schedule(self.schedule, steps), "clip_grad_norm": engine.gradient_clipping(),
                "zero_stage": engine.zero_optimization_stage(), **settings.describe_products(dtype, self.device),
                **(self.describe_loss_scale() if fp16 else {}), **settings.describe_model(engine.module),
                **self.experts.describe(),
                "attention": describe_attention(engine.module, length, dtype, self.device)}

    def describe_loss_scale(self) -> settings.Settings:
        scaler = self.optimizer.loss_scaler
        return {"loss_scale.initial": scaler.cur_scale, "loss_scale.window": scaler.scale_window,
                "loss_scale.minimum": scaler.min_scale}

    def run(self) -> None:
        settings.print_settings(self.describe())
        run_steps(self.experiment, self.device, self.run_step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    Training(parser.parse_args().spec).run()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
