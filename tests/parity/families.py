#!/usr/bin/env python3
"""Every model family against Hugging Face's transformers: logits, loss, every weight's gradient, and fifty AdamW steps.

  families.py MODEL_FILES_TOOL DUMP_FAMILY        two test programs

A tiny random model that transformers saved is trained by us, and by PyTorch on the same tokens. fp32 on both sides. TPRIMAT_PYTHON
names the Python to use. Exit status: 0 all within tolerance, 1 not, 77 this Python has no transformers.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import hugging_face_files as files
from chosen_python import SKIPPED, lacks, use_chosen_python

STEPS, SL, MBS, GBS, RATE, CLIP = 50, 48, 2, 4, 1e-3, 1.0
LOGITS, LOSS, GRADIENT, CURVE = 1e-5, 1e-5, 1e-5, 1e-4  # relative; a gradient's to its own norm


def relative(actual, expected):
    return float((actual - expected).norm() / expected.norm())


class Family:
    def __init__(self, programs, folder, config_class, settings):
        self.tool, self.dump, self.folder = *programs, folder
        self.files = files.Comparison(self.tool, folder, config_class, settings)
        self.torch, self.model = self.files.torch, self.files.model
        self.files.transformers.utils.logging.disable_progress_bar()
        with self.torch.no_grad():  # of the size that training begins with
            for parameter in self.model.parameters():
                parameter.mul_(0.5)
        self.model.save_pretrained(folder / "model")
        self.files.call("read", folder / "model", folder / "flat")
        self.spec = {
            "model": json.loads((folder / "flat/spec.json").read_text()), "sequence_length": SL, "micro_batch_size": MBS,
            "global_batch_size": GBS, "steps": STEPS, "precision": "fp32", "threads": 1,
            "optimizer": {"learning_rate": RATE, "schedule": "constant", "weight_decay": 0.1, "clip_grad_norm": CLIP},
            "checkpoint": {"initial_weights": str(folder / "model")}}

    def train_natively(self):
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        done = subprocess.run([self.dump, self.folder / "spec.json", self.folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads((self.folder / "steps.json").read_text())

    def load(self, name, dtype):
        return self.torch.frombuffer(bytearray((self.folder / name).read_bytes()), dtype=dtype)

    def loss(self, samples):
        logits = self.model(input_ids=samples[:, :-1].long()).logits
        return self.torch.nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].long().flatten())

    def optimizer(self):
        groups = [{"params": [p for p in self.model.parameters() if p.ndim > 1], "weight_decay": 0.1},
                  {"params": [p for p in self.model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
        return self.torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), eps=1e-8)

    def gradients(self):
        """Theirs in our order: saved as if they were weights, and read by our reader."""
        with self.torch.no_grad():
            kept = [p.detach().clone() for p in self.model.parameters()]
            for parameter in self.model.parameters():
                parameter.copy_(parameter.grad)
            self.model.save_pretrained(self.folder / "gradients")
            for parameter, value in zip(self.model.parameters(), kept):
                parameter.copy_(value)
        self.files.call("read", self.folder / "gradients", self.folder / "gradients.flat")
        return self.load("gradients.flat/weights.f32", self.torch.float32).double()

    def worst_gradient(self):
        ours, theirs = self.load("gradients.f32", self.torch.float32).double(), self.gradients()
        worst, at = 0.0, 0
        for shape in json.loads((self.folder / "flat/weights.json").read_text()):
            end = at + shape["rows"] * shape["cols"]
            error = float((ours[at:end] - theirs[at:end]).norm() / theirs[at:end].norm())
            worst, at = max(worst, error), end
        return worst

    def compare(self):
        steps = self.train_natively()
        samples = self.load("samples.i32", self.torch.int32).reshape(STEPS, GBS, SL + 1)
        with self.torch.no_grad():
            logits = self.model(input_ids=samples[0, :MBS, :-1].long()).logits.double().flatten()
        errors = {"logits": relative(self.load("logits.f64", self.torch.float64), logits)}
        optimizer, curve = self.optimizer(), []
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = self.loss(samples[step])
            loss.backward()
            if step == 0:
                errors["gradient"] = self.worst_gradient()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
            optimizer.step()
            curve.append(abs(steps[step]["loss"] / float(loss.detach()) - 1))
        errors["loss"], errors["curve"] = curve[0], max(curve)
        return errors


def main():
    use_chosen_python()
    if lacks(*files.PACKAGES):
        return SKIPPED
    failed = 0
    for name, (config_class, settings) in files.CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            errors = Family(sys.argv[1:3], pathlib.Path(folder), config_class, settings).compare()
        good = (errors["logits"] <= LOGITS and errors["loss"] <= LOSS and errors["gradient"] <= GRADIENT and
                errors["curve"] <= CURVE)
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name:24}" + "".join(f"  {key} {value:.1e}" for key, value in errors.items()),
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
