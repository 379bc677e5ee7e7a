#!/usr/bin/env python3
"""A training that is killed with SIGKILL at a random step goes on where its newest sound checkpoint left off.

  resume.py TPRIMAT [SEED]

In the same layout the losses must have the same bits as those of a training that ran through; in another layout they must agree to
1e-6. Then the newest checkpoint is damaged: the one before it must be used, and the damage named.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STEPS, TOLERANCE = 24, 1e-6
MODEL = {"name": "tiny", "full_name": "tiny", "num_layers": 4, "hidden_size": 32, "ffn_hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 301, "max_position_embeddings": 64, "tied_embeddings": True}
SPEC = {"model": MODEL, "sequence_length": 32, "micro_batch_size": 1, "global_batch_size": 8, "steps": STEPS, "threads": 1,
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 5}}
LAYOUTS = [
    {},
    {"data_parallel_size": 2, "zero_stage": 1},
    {"tensor_model_parallel_size": 2, "sequence_parallel": True},
    {"pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 2},
    {"data_parallel_size": 2, "zero_stage": 3},
    {"context_parallel_size": 2, "zero_stage": 2},
]
KEYS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size", "context_parallel_size")


class Training:
    def __init__(self, program, folder, layout, precision):
        self.program, self.folder = program, folder
        self.ranks = 1
        for key in KEYS:
            self.ranks *= layout.get(key, 1)
        self.spec = folder / f"spec_{len(list(folder.iterdir()))}.json"
        self.spec.write_text(json.dumps({**SPEC, "parallel": layout, "precision": precision}))
        self.steps = self.spec.with_suffix(".steps")

    def start(self, *options):
        self.steps.unlink(missing_ok=True)
        launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.ranks)]
        command = [self.program, "train", "--spec", self.spec, *options]
        return subprocess.Popen((launch if self.ranks > 1 else []) + command, start_new_session=True, text=True,
                                env={**os.environ, "TPRIMAT_STEPS": str(self.steps), "OMPI_MCA_mpi_yield_when_idle": "1"},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *options):
        process = self.start(*options)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return self.losses(), errors

    def run_until(self, step, *options):
        process = self.start(*options)
        while process.poll() is None and len(self.losses()) < step:
            time.sleep(0.002)
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)  # every rank of the session
        process.kill()
        process.communicate()
        return self.losses()

    def losses(self):
        lines = self.steps.read_text().splitlines() if self.steps.exists() else []
        complete = [line for line in lines if line.endswith("}")]
        return {record["step"]: record["loss"] for record in map(json.loads, complete)}


def check_same(whole, resumed, tolerance, what):
    assert resumed and max(resumed) == STEPS, f"{what}: ended after step {max(resumed, default=0)}"
    for step, loss in resumed.items():
        error = abs(loss / whole[step] - 1)
        assert error <= tolerance, f"{what}: step {step} has loss {loss} instead of {whole[step]} ({error:.1e})"


def damage_newest(checkpoints, rng):
    newest = max(checkpoints.glob("step_*"))
    victim = rng.choice(sorted(newest.glob("*.bin")))
    data = bytearray(victim.read_bytes())
    data[rng.randrange(len(data) // 2, len(data))] ^= 1 << rng.randrange(8)
    victim.write_bytes(data)
    return victim.name


def kill_in_time(program, folder, training, rng, save):
    """A training that was killed before its end: on a busy machine the signal may come after the last step."""
    for _ in range(5):
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        killed = Training(program, folder, *training).run_until(rng.randrange(6, STEPS - 2), *save)
        if max(killed, default=0) < STEPS:
            return killed
    raise AssertionError("five trainings ended before they could be killed")


def check_case(program, rng, case):
    first, second, precision = case
    with tempfile.TemporaryDirectory() as name:
        folder, checkpoints = pathlib.Path(name), pathlib.Path(name) / "checkpoints"
        whole, _ = Training(program, folder, first, precision).run()
        save = ("--save", checkpoints, "--save-interval", str(rng.randrange(1, 5)), "--keep", "3")
        killed = kill_in_time(program, folder, (first, precision), rng, save)
        same = first == second
        resumed, notes = Training(program, folder, second, precision).run(*save)
        check_same(whole, resumed, 0 if same else TOLERANCE, f"{first} -> {second}")
        broken = damage_newest(checkpoints, rng)
        again, notes = Training(program, folder, second, precision).run(*save)
        assert broken in notes, f"the damage of {broken} is not named: {notes}"
        check_same(whole, again, 0 if same else TOLERANCE, f"{first} -> {second}, damaged")
        print(f"ok    {first} -> {second} {precision}: killed after step {max(killed, default=0)}, resumed at {min(resumed)}, "
              f"with damage at {min(again)}", flush=True)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    signal.alarm(900)
    cases = [(layout, layout, "fp32") for layout in LAYOUTS] + [({}, {}, "bf16"), ({}, {}, "fp16")]
    cases += [(a, b, "fp32") for a, b in zip(LAYOUTS, LAYOUTS[1:] + LAYOUTS[:1])]
    chosen = cases if "--all" in sys.argv else rng.sample(cases, 4)
    for case in chosen:
        check_case(program, rng, case)


if __name__ == "__main__":
    main()
