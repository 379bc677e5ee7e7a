#!/usr/bin/env python3
"""Hugging Face Transformers: its Trainer, with torchrun's data parallelism where there are several processes.

  train_tran.py --spec train_spec.json
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import Any

import torch
import transformers

from tprimat.steps import StepRecorder
from tprimat_adapter import model as models, settings
from tprimat_adapter.attention import describe_attention
from tprimat_adapter.experts import Experts
from tprimat_adapter.experiment import load_experiment, rank, world_size
from tprimat_adapter.loss_scale import LossScaler
from tprimat_adapter.profiling import last_step, note_further_step, open_window
from tprimat_adapter.samples import Samples, prepare_samples

DTYPES = {"no": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # accelerate's words
REPLICATED = ("NO", "MULTI_GPU", "MULTI_CPU")  # its layouts in which every rank holds all weights
NEVER = 1e30  # a norm that no gradient has


class OrderedSamples(torch.utils.data.Dataset):
    """The samples of this process, one after the other, as the data loader asks for them."""

    def __init__(self, samples: Samples, experiment: Any) -> None:
        self.samples, self.experiment = samples, experiment

    def __len__(self) -> int:
        return last_step(self.experiment) * self.experiment.global_batch_size // world_size()

    def __getitem__(self, n: int) -> dict[str, torch.Tensor]:
        mbs, accumulation = self.experiment.micro_batch_size, self.experiment.accumulation
        micro, within = divmod(n, mbs)
        step, index = divmod(micro, accumulation)
        tokens = self.samples.micro_batch(self.experiment, step + 1, index, rank())[within]
        return {"tokens": torch.from_numpy(tokens)}


class Recording(transformers.TrainerCallback):
    """Writes settings and step records. The loss is the one that was trained on, on average over all ranks."""

    def __init__(self, trainer: FaithfulTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        further = last_step(self.trainer.experiment) - self.trainer.experiment.steps  # profiled after the training
        settings.print_settings(describe(self.trainer, state.max_steps - further, **objects))
        experiment = self.trainer.experiment
        self.recorder = StepRecorder(args.device, experiment.global_batch_size * experiment.sequence_length)

    def on_step_begin(self, args: Any, state: Any, control: Any, lr_scheduler: Any = None, **objects: Any) -> None:
        self.trainer.losses = []
        self.figures = {"learning_rate": lr_scheduler.get_last_lr()[0], "loss_scale": self.trainer.scaler.value}

    def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        if state.global_step > self.trainer.experiment.steps:
            note_further_step(self.recorder, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **objects: Any) -> None:
        if "grad_norm" not in logs or state.global_step > self.trainer.experiment.steps:
            return
        loss = torch.stack(self.trainer.losses).mean()
        if world_size() > 1:
            torch.distributed.all_reduce(loss)
            loss /= world_size()
        skipped = self.trainer.accelerator.optimizer_step_was_skipped
        self.recorder.end_step(state.global_step, loss=loss, grad_norm=None if skipped else logs["grad_norm"],
                               skipped=skipped or None, **self.figures, **self.trainer.experts.end_step(not skipped))


class Profiling(transformers.TrainerCallback):
    """A profile of the steps that TPRIMAT_PROFILE names."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.window = open_window()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.window.begin(state.global_step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.window.end(state.global_step)


class FaithfulTrainer(transformers.Trainer):
    """The Trainer with our order of samples, our loss, our schedule and our loss scale."""

    def __init__(self, experiment: Any, **options: Any) -> None:
        self.experts = Experts(options["model"], experiment)
        super().__init__(**options)
        self.experiment, self.losses = experiment, []
        self.scaler = LossScaler(experiment, self.args.device)
        if self.accelerator.scaler is not None:  # with fp16
            self.accelerator.scaler = self.scaler

    def _get_train_sampler(self, *args: Any) -> torch.utils.data.Sampler:
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def get_train_dataloader(self) -> torch.utils.data.DataLoader:
        """Not split over processes once more: the samples are this process's already."""
        return torch.utils.data.DataLoader(self.train_dataset, batch_size=self.args.per_device_train_batch_size,
                                           sampler=self._get_train_sampler())

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False,
                     num_items_in_batch: Any = None) -> torch.Tensor:
        loss = models.mean_loss(model, inputs["tokens"].to(self.args.device))
        self.losses.append(loss.detach())
        loss = self.experts.add_losses(loss)
        return loss if num_items_in_batch is None else loss / self.args.gradient_accumulation_steps


def make_arguments(experiment: Any, folder: pathlib.Path) -> transformers.TrainingArguments:
    chosen = experiment.optimizer
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "tran"), max_steps=last_step(experiment), logging_steps=1, logging_nan_inf_filter=False,
        per_device_train_batch_size=experiment.micro_batch_size, gradient_accumulation_steps=experiment.accumulation,
        learning_rate=chosen.learning_rate, adam_beta1=chosen.beta1, adam_beta2=chosen.beta2,
        adam_epsilon=chosen.epsilon, weight_decay=chosen.weight_decay,
        max_grad_norm=chosen.clip_grad_norm or NEVER,  # at 0 the Trainer would not tell the norm either
        bf16=experiment.precision == "bf16" and chosen.master_weights,  # else the weights are in bf16 themselves
        fp16=experiment.precision == "fp16",
        gradient_checkpointing=experiment.recompute == "full",
        gradient_checkpointing_kwargs={"use_reentrant": False}, seed=experiment.seed, save_strategy="no", report_to=[],
        use_cpu=not torch.cuda.is_available(), remove_unused_columns=False, disable_tqdm=True)
    if world_size() == 1 and arguments.n_gpu > 1:
        arguments._n_gpu = 1  # else the Trainer alone would spread each batch over every GPU that it sees
    return arguments


def describe(trainer: FaithfulTrainer, steps: int, model: Any, optimizer: Any, lr_scheduler: Any,
             **others: Any) -> settings.Settings:
    """What the Trainer, its accelerator, optimizer and schedule hold."""
    arguments, accelerator = trainer.args, trainer.accelerator
    dtype = DTYPES[accelerator.mixed_precision] if accelerator.native_amp else model.dtype
    micro, length = arguments.train_batch_size, len(trainer.train_dataset[0]["tokens"]) - 1
    clip = arguments.max_grad_norm
    return {"framework": "tran", "framework_version": transformers.__version__, "max_steps": steps,
            "sequence_length": length,
            **settings.describe_batch(micro, arguments.gradient_accumulation_steps, accelerator.num_processes),
            **settings.describe_optimizer(optimizer), **settings.describe_schedule(lr_scheduler, steps),
            "clip_grad_norm": 0.0 if clip == NEVER else clip,
            "zero_stage": 0 if accelerator.distributed_type in REPLICATED else None,
            **settings.describe_products(dtype, arguments.device), **(accelerator.scaler or trainer.scaler).describe(),
            **settings.describe_model(model), **trainer.experts.describe(),
            "attention": describe_attention(model, length, dtype, arguments.device)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    spec_path = pathlib.Path(parser.parse_args().spec)
    experiment = load_experiment(spec_path)
    samples = Samples(prepare_samples(spec_path))
    model = models.make_model(experiment, spec_path)
    optimizer = models.make_optimizer(model, experiment.optimizer)
    trainer = FaithfulTrainer(experiment, model=model, args=make_arguments(experiment, spec_path.parent),
                              train_dataset=OrderedSamples(samples, experiment),
                              optimizers=(optimizer, models.make_schedule(optimizer, experiment)))
    trainer.add_callback(Recording(trainer))
    trainer.add_callback(Profiling())
    trainer.train()
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
        # A thread of the communication or of the profiler may outlive what Python takes down, and would abort the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
