#!/usr/bin/env python3
"""Hugging Face Transformers: its Trainer, with torchrun's data parallelism where there are several processes.

  train_tran.py --spec train_spec.json
"""

import argparse
import pathlib

import torch
import transformers

from tprimat_adapter import model as models
from tprimat_adapter.experiment import learning_rate_at, load_experiment, rank, world_size
from tprimat_adapter.profiling import open_window
from tprimat_adapter.samples import Samples, prepare_samples
from tprimat_adapter.steps import StepRecorder


class OrderedSamples(torch.utils.data.Dataset):
    """The samples of this process, one after the other, as the data loader asks for them."""

    def __init__(self, samples, experiment):
        self.samples, self.experiment = samples, experiment

    def __len__(self):
        return self.experiment.steps * self.experiment.global_batch_size // world_size()

    def __getitem__(self, n):
        mbs, accumulation = self.experiment.micro_batch_size, self.experiment.accumulation
        micro, within = divmod(n, mbs)
        step, index = divmod(micro, accumulation)
        tokens = self.samples.micro_batch(self.experiment, step + 1, index, rank())[within]
        return {"tokens": torch.from_numpy(tokens)}


class Recording(transformers.TrainerCallback):
    """Writes the step records. The loss is the one that was trained on, not the rounded one of the log."""

    def __init__(self, trainer):
        self.trainer, self.recorder = trainer, None

    def on_train_begin(self, args, state, control, **kwargs):
        experiment = self.trainer.experiment
        self.recorder = StepRecorder(args.device, experiment.global_batch_size * experiment.sequence_length)

    def on_step_begin(self, args, state, control, **kwargs):
        self.trainer.losses = []

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        self.rate = optimizer.param_groups[0]["lr"]

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "grad_norm" not in logs:
            return
        loss = torch.stack(self.trainer.losses).mean()
        if world_size() > 1:
            torch.distributed.all_reduce(loss)
            loss /= world_size()
        self.recorder.end_step(state.global_step, loss=loss, grad_norm=logs["grad_norm"], learning_rate=self.rate)


class Profiling(transformers.TrainerCallback):
    """A profile of the steps that TPRIMAT_PROFILE names."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.window = open_window()

    def on_step_begin(self, args, state, control, **kwargs):
        self.window.begin(state.global_step + 1)

    def on_step_end(self, args, state, control, **kwargs):
        self.window.end(state.global_step)


class FaithfulTrainer(transformers.Trainer):
    """The Trainer with our order of samples, our loss and our schedule."""

    def __init__(self, experiment, **kwargs):
        super().__init__(**kwargs)
        self.experiment, self.losses = experiment, []

    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def get_train_dataloader(self):  # not split over processes once more: the samples are this process's already
        return torch.utils.data.DataLoader(self.train_dataset, batch_size=self.args.per_device_train_batch_size,
                                           sampler=self._get_train_sampler())

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss = models.mean_loss(model, inputs["tokens"].to(self.args.device))
        self.losses.append(loss.detach())
        return loss if num_items_in_batch is None else loss / self.args.gradient_accumulation_steps


def make_arguments(experiment, folder):
    settings = experiment.optimizer
    return transformers.TrainingArguments(
        output_dir=str(folder / "tran"), max_steps=experiment.steps, logging_steps=1, logging_nan_inf_filter=False,
        per_device_train_batch_size=experiment.micro_batch_size, gradient_accumulation_steps=experiment.accumulation,
        learning_rate=settings.learning_rate, adam_beta1=settings.beta1, adam_beta2=settings.beta2,
        adam_epsilon=settings.epsilon, weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip_grad_norm or 1e30,  # never clips; at 0 the Trainer would not tell the norm either
        bf16=experiment.precision == "bf16", gradient_checkpointing=experiment.recompute == "full",
        gradient_checkpointing_kwargs={"use_reentrant": False}, seed=experiment.seed, save_strategy="no", report_to=[],
        use_cpu=not torch.cuda.is_available(), remove_unused_columns=False, disable_tqdm=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="train_spec.json")
    spec_path = pathlib.Path(parser.parse_args().spec)
    experiment = load_experiment(spec_path)
    samples = Samples(prepare_samples(spec_path))
    model = models.make_model(experiment, spec_path)
    optimizer = models.make_optimizer(model, experiment.optimizer)
    peak = experiment.optimizer.learning_rate
    schedule = torch.optim.lr_scheduler.LambdaLR(  # called with 0 for the first step
        optimizer, lambda done: learning_rate_at(experiment.optimizer, done + 1, experiment.steps) / peak)
    trainer = FaithfulTrainer(experiment, model=model, args=make_arguments(experiment, spec_path.parent),
                              train_dataset=OrderedSamples(samples, experiment), optimizers=(optimizer, schedule))
    trainer.add_callback(Recording(trainer))
    trainer.add_callback(Profiling())
    if rank() == 0:
        models.print_settings("tran", experiment, optimizer)
    trainer.train()


if __name__ == "__main__":
    main()
