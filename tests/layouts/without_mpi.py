#!/usr/bin/env python3
"""Ranks that meet over TCP, started with torchrun's variables, train as those of mpirun do.

  without_mpi.py TPRIMAT

Every loss has the same bits as over MPI, where mpirun is there, and agrees to 1e-6 with the training on one rank. Ranks that
do not come, and ranks that are killed, end the others with a sentence.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "unit/comm/ranks"))
import torchrun_variables  # noqa: E402

TOLERANCE = 1e-6
MODEL = {"name": "tiny", "full_name": "tiny", "num_layers": 4, "hidden_size": 32, "ffn_hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 301, "max_position_embeddings": 64, "tied_embeddings": True}
SPEC = {"model": MODEL, "sequence_length": 32, "micro_batch_size": 1, "global_batch_size": 8, "steps": 6, "threads": 1,
        "precision": "fp32", "optimizer": {"learning_rate": 1e-3, "warmup_steps": 2}}
LAYOUTS = [
    (2, {"data_parallel_size": 2, "zero_stage": 1}),
    (2, {"tensor_model_parallel_size": 2, "sequence_parallel": True}),
    (2, {"pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 2}),
    (4, {"data_parallel_size": 4, "zero_stage": 3}),
    (4, {"pipeline_model_parallel_size": 2, "tensor_model_parallel_size": 2}),
]
LEFT_OUT = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "MASTER_", "LOCAL_")


def command_of(program, folder, layout, **changes):
    spec = folder / f"spec_{len(list(folder.iterdir()))}.json"
    spec.write_text(json.dumps({**SPEC, "parallel": layout, **changes}))
    return [program, "train", "--spec", str(spec)]


def losses_of(path):
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


def train_here(command, folder, launch=()):
    """As one process, or under mpirun."""
    steps = folder / f"steps_{len(list(folder.iterdir()))}.jsonl"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
    done = subprocess.run([*launch, *command], capture_output=True, text=True, timeout=200,
                          env={**kept, "TPRIMAT_STEPS": str(steps), "OMPI_MCA_mpi_yield_when_idle": "1"})
    assert done.returncode == 0, done.stderr
    return losses_of(steps)


def train_over_tcp(command, folder, ranks):
    steps = folder / f"steps_{len(list(folder.iterdir()))}.jsonl"
    os.environ["TPRIMAT_STEPS"] = str(steps)
    processes = torchrun_variables.start(command, ranks, stdout=subprocess.DEVNULL)
    statuses = torchrun_variables.wait_for_all(processes)
    assert statuses == [0] * ranks, f"statuses {statuses}"
    return losses_of(steps)


def check_layouts(program, folder):
    alone = train_here(command_of(program, folder, {}), folder)
    mpirun = shutil.which("mpirun")
    for ranks, layout in LAYOUTS:
        command = command_of(program, folder, layout)
        losses = train_over_tcp(command, folder, ranks)
        assert len(losses) == SPEC["steps"], losses
        for loss, expected in zip(losses, alone):
            assert abs(loss / expected - 1) <= TOLERANCE, f"{layout}: {losses} instead of {alone}"
        if mpirun:
            launch = [mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
            over_mpi = train_here(command, folder, launch)
            assert losses == over_mpi, f"{layout}: {losses} over TCP, {over_mpi} over MPI"
        print(f"ok   {ranks} ranks {layout}", flush=True)


def check_a_rank_that_does_not_come(program, folder):
    command = command_of(program, folder, {"data_parallel_size": 2})
    environment = {**torchrun_variables.environment_of(0, 2, torchrun_variables.free_port()), "TPRIMAT_RENDEZVOUS_TIMEOUT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 1, done
    assert "1 of 2 ranks did not join within 1 s: rank 1" in done.stderr, done.stderr
    print("ok   a rank that does not come is named")


def check_a_layout_of_other_size(program, folder):
    command = command_of(program, folder, {"data_parallel_size": 4})
    processes = torchrun_variables.start(command, 2, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 2 and "needs 4 ranks, but there are 2" in errors, errors
    print("ok   a layout of more ranks is refused")


def check_a_killed_rank(program, folder):
    command = command_of(program, folder, {"data_parallel_size": 2, "zero_stage": 1}, steps=10**6)
    os.environ["TPRIMAT_STEPS"] = os.devnull
    processes = torchrun_variables.start(command, 2, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "loss" not in processes[0].stdout.readline():
        assert processes[0].poll() is None, processes[0].stderr.read()
    processes[1].send_signal(signal.SIGKILL)
    _, errors = processes[0].communicate(timeout=100)
    processes[1].communicate()
    assert processes[0].returncode == 1, processes[0].returncode
    assert "rank 1 ended before its work was done" in errors, errors
    print("ok   a rank that is killed ends the other")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="tprimat_tcp_") as name:
        folder = pathlib.Path(name)
        check_layouts(program, folder)
        check_a_rank_that_does_not_come(program, folder)
        check_a_layout_of_other_size(program, folder)
        check_a_killed_rank(program, folder)


if __name__ == "__main__":
    main()
