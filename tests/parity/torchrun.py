#!/usr/bin/env python3
"""The native trainer under PyTorch's own launcher: torchrun starts the ranks, and they meet without MPI.

  torchrun.py TPRIMAT

Losses of two ranks agree to 1e-6 with those of one. A rank that fails makes torchrun fail. TPRIMAT_PYTHON names the Python
to use. Exit status: 0 all holds, 1 something does not, 77 PyTorch is not installed there.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "unit/comm/ranks"))
import torchrun_variables  # noqa: E402

MODEL = {"name": "tiny", "full_name": "tiny", "num_layers": 2, "hidden_size": 32, "ffn_hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 301, "max_position_embeddings": 64}
SPEC = {"model": MODEL, "sequence_length": 32, "micro_batch_size": 1, "global_batch_size": 4, "steps": 5, "threads": 1,
        "precision": "fp32", "optimizer": {"learning_rate": 1e-3, "warmup_steps": 2}}
TORCHRUN = ["-m", "torch.distributed.run"]


def ways_to_start():
    """Its own store at a port that it picks, and at one that is given."""
    return [["--standalone"], ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--nnodes", "1"],
            ["--master-addr", "127.0.0.1", "--master-port", str(torchrun_variables.free_port())]]


def start(folder, launch, layout, **changes):
    number = len(list(folder.iterdir()))
    spec, steps = folder / f"{number}.json", folder / f"{number}.jsonl"
    spec.write_text(json.dumps({**SPEC, "parallel": layout, **changes}))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "SLURM_", "TORCHELASTIC_"))}
    done = subprocess.run([*launch, sys.argv[1], "train", "--spec", str(spec)], capture_output=True, text=True, timeout=200,
                          env={**kept, "TPRIMAT_STEPS": str(steps), "TPRIMAT_RENDEZVOUS_TIMEOUT": "60"})
    losses = [json.loads(line)["loss"] for line in steps.read_text().splitlines()] if steps.exists() else []
    return done, losses


def main():
    use_chosen_python()
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch; pip install -r tests/parity/requirements.txt, or name another with TPRIMAT_PYTHON")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tprimat_torchrun_") as name:
        folder = pathlib.Path(name)
        done, alone = start(folder, [], {})
        assert done.returncode == 0 and len(alone) == SPEC["steps"], done.stderr
        for way in ways_to_start():
            launch = [sys.executable, *TORCHRUN, *way, "--nproc-per-node", "2", "--no-python"]
            done, losses = start(folder, launch, {"data_parallel_size": 2, "zero_stage": 1})
            assert done.returncode == 0, done.stdout + done.stderr
            worst = max(abs(loss / expected - 1) for loss, expected in zip(losses, alone, strict=True))
            assert worst <= 1e-6, f"{losses} instead of {alone}"
            print(f"ok   torchrun {' '.join(way)}: losses within {worst:.1e} of one rank", flush=True)
        done, _ = start(folder, launch, {"data_parallel_size": 4})
        assert done.returncode != 0 and "needs 4 ranks, but there are 2" in done.stderr, done.stderr
        print("ok   torchrun fails where its ranks fail")


if __name__ == "__main__":
    main()
