#!/usr/bin/env python3
"""The training of a specification in PyTorch: transformers' model from the same weights, on the same samples in order.

  torch_train.py SPEC OUT                  writes losses, validation losses and seconds as JSON
  torch_train.py SPEC OUT --evaluate DIR   only evaluates the model in DIR, on the samples of the last evaluation

AdamW, schedule, clipping and precision are the specification's; bf16 is autocast over weights in fp32.
"""

import argparse
import json
import math
import pathlib
import time

import torch
import transformers

import samples


class Data:
    """Training samples, and validation samples of which each evaluation takes the next ones."""

    def __init__(self, spec):
        evaluation, steps, self.rows = spec["evaluation"], spec["steps"], spec["global_batch_size"]
        self.evaluated = evaluation["batches"] * self.rows
        self.training = self.read(spec, 0, steps * self.rows)
        self.validation = self.read(spec, 1, (steps // evaluation["interval"] + 1) * self.evaluated)

    @staticmethod
    def read(spec, which, wanted):
        pair = samples.Pair(spec["data"]["dataset"])
        part = samples.split_of(spec["data"]["split"], which, len(pair.sizes))
        found = samples.read_samples(pair, spec["sequence_length"], spec["seed"], wanted, part)
        return torch.from_numpy(found.astype("int64"))

    def step(self, number):
        return self.training[(number - 1) * self.rows:number * self.rows]

    def evaluation(self, number):
        return self.validation[(number - 1) * self.evaluated:number * self.evaluated]


class Trainer:
    def __init__(self, spec, weights):
        self.spec, self.o = spec, spec["optimizer"]
        self.model = transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32,
                                                                       attn_implementation="sdpa")
        self.model.train()
        parameters = list(self.model.parameters())
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": self.o["weight_decay"]},
                  {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, betas=(self.o["beta1"], self.o["beta2"]), eps=self.o["epsilon"],
                                           fused=True)

    def loss(self, batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.spec["precision"] == "bf16"):
            logits = self.model(input_ids=batch[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())

    def rate(self, step):
        o, steps = self.o, self.spec["steps"]
        if step <= o["warmup_steps"]:
            return o["learning_rate"] * step / o["warmup_steps"]
        part = (step - o["warmup_steps"]) / (steps - o["warmup_steps"])
        above = (o["learning_rate"] - o["min_learning_rate"]) * (1 + math.cos(math.pi * part)) / 2
        return o["min_learning_rate"] + above

    def update(self, step, batch):
        total = 0.0
        for micro in batch.split(self.spec["micro_batch_size"]):
            loss = self.loss(micro) * (len(micro) / len(batch))
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.o["clip_grad_norm"])
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def evaluate(self, batch):
        with torch.no_grad():
            losses = [self.loss(micro).item() * len(micro) for micro in batch.split(self.spec["micro_batch_size"])]
        return sum(losses) / len(batch)


def train(spec, data):
    trainer = Trainer(spec, spec["checkpoint"]["initial_weights"])
    record = {"torch": torch.__version__, "losses": [], "validation": {}, "seconds": []}
    for step in range(1, spec["steps"] + 1):
        start = time.perf_counter()
        record["losses"].append(trainer.update(step, data.step(step)))
        record["seconds"].append(time.perf_counter() - start)
        if step % spec["evaluation"]["interval"] == 0:
            record["validation"][step] = trainer.evaluate(data.evaluation(step // spec["evaluation"]["interval"]))
            print(f"PyTorch  step {step}  training {record['losses'][-1]:.4f}"
                  f"  validation {record['validation'][step]:.4f}", flush=True)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--evaluate", metavar="DIR")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    spec = json.loads(options.spec.read_text())
    data = Data(spec)
    if options.evaluate:
        last = spec["steps"] // spec["evaluation"]["interval"]
        record = {"validation": Trainer(spec, options.evaluate).evaluate(data.evaluation(last))}
    else:
        record = train(spec, data)
    options.out.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
