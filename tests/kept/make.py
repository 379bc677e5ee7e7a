#!/usr/bin/env python3
"""Makes the kept files of a version with its own program, once, before the version after it:

  make.py PROGRAM FOLDER PYTHON

PROGRAM is the tprimat of that version, with its trainer beside it; FOLDER, such as tests/kept/0.1, is made anew but for
its README.md and what other programs and versions before it wrote, in older/. PYTHON is a Python environment
with PyTorch, which trains the mixture of experts. Trainings are real and short; the processor's peak is measured.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import questions

HERE = pathlib.Path(__file__).resolve().parent
PLACE = pathlib.Path("/tmp/kept")  # results name the folder they were made in
CONFIGURATION = """\
models:
  dense: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1,
          head_dim: 16, vocab_size: 64, max_position_embeddings: 64}
  sparse: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1,
           head_dim: 16, vocab_size: 64, max_position_embeddings: 64,
           experts: {count: 4, per_token: 2, ffn_hidden_size: 32, balancing: aux_loss, aux_loss_coefficient: 0.01}}
training:
  data: {seq_length: 64, micro_batch_size: 1, global_batch_size: 2}
  duration: {max_steps: 20}
  optimizer: {warmup_steps: 2}
"""


class Maker:
    def __init__(self, program):
        self.program = pathlib.Path(program).resolve()

    def run(self, arguments, allowed=(0,)):
        done = subprocess.run([self.program, *arguments, "--quiet"], cwd=PLACE, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(PLACE), "LC_ALL": "C.UTF-8"})
        if done.returncode not in allowed:
            raise SystemExit(f"tprimat {' '.join(arguments)} ended with {done.returncode}")

    def train(self, output, *options, framework="native", allowed=(0,)):
        self.run(["run", "--platform", "cpu", "--framework", framework, "--output", output, *options], allowed)


def make_results(maker):
    maker.train("results", "--model", "dense", "--runs", "3")
    maker.train("results", "--model", "sparse", framework="fsdp")
    # A training whose loss becomes NaN: the run fails, and its result says so.
    maker.train("failed", "--model", "dense", "--set", "training.optimizer.learning_rate=100",
                "--set", "training.optimizer.weight_decay=1", "--strategy", "single", allowed=(1,))
    shutil.move(PLACE / "failed/train_cpu_native_dense.json", PLACE / "results/train_cpu_native_dense_failed.json")
    shutil.copy(HERE.parent / "cli/extract/megatron.log", PLACE / "results/megatron.log")
    maker.run(["extract", "results/megatron.log", "--device", "H100", "--sequence-length", "2048", "--output", "results"])


def make_history(maker):
    for night in (1, 2, 3):
        maker.train(f"history/night_{night}", "--model", "dense", "--steps", "12", "--set", f"training.general.seed={night}")
    maker.run(["compare", "--history", "history"])
    for path in list(PLACE.glob("history/**/*")):
        if path.is_file() and (path.suffix not in (".json", ".sqlite") or path.parent.name.startswith("train_")):
            path.unlink()


def make_archives(maker):
    (PLACE / "archives").mkdir()
    maker.run(["archive", "results", "config.yaml", "--output", "archives/plain.tar.zst"])
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kept@example.org", "-f", "signer"], cwd=PLACE, check=True)
    maker.run(["archive", "history", "--sign", "signer", "--output", "archives/signed.tar.gz"])
    shutil.copy(PLACE / "signer.pub", PLACE / "archives/signer.pub")


def make_older():
    """A mixture of experts as results described it before `experts` became a section of the shape."""
    (PLACE / "older").mkdir()
    result = json.loads((PLACE / "results/train_cpu_fsdp_sparse.json").read_text(encoding="utf-8"))
    shape = result["model_info"]["shape"]
    experts = shape.pop("experts")
    shape.update(num_experts=experts["count"], experts_per_token=experts["per_token"])
    shape["ffn_hidden_size"] = experts["ffn_hidden_size"]  # the same width for all layers, then
    (PLACE / "older/flat_experts.json").write_text(json.dumps(result) + "\n", encoding="utf-8")


def keep(target):
    for path in PLACE.glob("results/**/*"):  # their records and logs are in the archive
        if path.is_file() and (path.parent.name != "results" or path.name.startswith("training_")):
            path.unlink()
    for name in ("results", "history", "archives"):
        shutil.rmtree(target / name, ignore_errors=True)
    for name in ("results", "history", "archives", "older"):
        shutil.copytree(PLACE / name, target / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("runs", "*.lock"))


def keep_answers(maker, target):
    said = target / "said"
    shutil.rmtree(said, ignore_errors=True)
    said.mkdir()
    statuses = {}
    for name, (status, stdout, _) in questions.answers(maker.program, target).items():
        (said / name).write_text(stdout, encoding="utf-8")
        statuses[name] = status
    (said / "exit_statuses.json").write_text(json.dumps(statuses, indent=2) + "\n", encoding="utf-8")


def main(program, target, python):
    maker, target = Maker(program), pathlib.Path(target).resolve()
    shutil.rmtree(PLACE, ignore_errors=True)
    (PLACE / ".local/share/tprimat/frameworks").mkdir(parents=True)
    (PLACE / ".local/share/tprimat/frameworks/fsdp").symlink_to(pathlib.Path(python).resolve())
    (PLACE / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    target.mkdir(parents=True, exist_ok=True)
    make_results(maker)
    make_history(maker)
    make_archives(maker)
    make_older()
    keep(target)
    keep_answers(maker, target)
    shutil.rmtree(PLACE)


if __name__ == "__main__":
    main(*sys.argv[1:])
