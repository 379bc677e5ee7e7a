#!/usr/bin/env python3
"""Trains on two ranks under a real Slurm, started here for the purpose, and compares with the same training under mpirun.

Every way that `tprimat run --launcher slurm` knows must give the same losses; a run that is stopped, interrupted or killed
must leave no job and no process. Exit status 77 (skipped) where slurm-wlm or munge is not installed.

usage: slurm_test.py PROGRAM
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from slurm_cluster import Cluster, missing_programs, processes_of, tidy_after_death

SKIPPED = 77
FOREVER = 10**8  # steps
PATIENCE = 180  # seconds for what takes one or two on a quiet machine
# A stated peak, so that no run waits for its measurement.
CONFIGURATION = """
experiment: {methodology: two}
hardware: {platforms: {cpu: {num_gpus: 2}}}
models:
  tiny: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1,
         head_dim: 16, vocab_size: 64, max_position_embeddings: 64}
parallelism: {two: {tiny: {cpu: {DP: 2}}}}
training:
  data: {seq_length: 16, micro_batch_size: 1, global_batch_size: 2}
  duration: {max_steps: 5}
  optimizer: {warmup_steps: 1}
benchmarking: {enhanced_metrics: {hardware_specs: {cpu_auto: {peak_tflops_fp32: 1.0e+15, peak_tflops_bf16: 1.0e+15}}}}
"""
# name: words after `tprimat run`, and what comes before it
WAYS = {
    "sbatch": ([], []),
    "srun": (["--set", "launch.slurm.start=srun"], []),
    "step": ([], ["salloc", "--quiet", "--nodes=1", "--ntasks=2"]),
    "nodes": (["--nodes", "2"], []),
    "nodes_srun": (["--nodes", "2", "--set", "launch.slurm.start=srun"], []),
    "nodes_mpirun": (["--nodes", "2", "--set", "launch.slurm.mpi=mpirun"], []),
    "mpirun": (["--set", "launch.slurm.mpi=mpirun"], []),
    "arguments": (["--set", "launch.slurm.time=10", "--set", "launch.slurm.partition=all", "--set",
                   "launch.slurm.arguments=[--comment=two words, --mem=200]"], []),
}


class Suite:
    def __init__(self, program, cluster, folder):
        self.program, self.cluster, self.folder = program, cluster, folder
        self.start_time = time.monotonic()
        (folder / "config.yaml").write_text(CONFIGURATION)

    def tell(self, sentence):
        print(f"{time.monotonic() - self.start_time:6.1f} s  {sentence}", flush=True)

    def words(self, output, more=(), before=()):
        return [*before, self.program, "run", "--config", "config.yaml", "--output", output, "--quiet", *more]

    def run(self, output, more=(), before=()):
        done = subprocess.run(self.words(output, more, before), cwd=self.folder, env=self.cluster.environment,
                              capture_output=True, text=True, timeout=2 * PATIENCE, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def start(self, output, more=()):
        return subprocess.Popen(self.words(output, more), cwd=self.folder, env=self.cluster.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def result(self, output, framework="native"):
        return json.loads((self.folder / output / f"train_cpu_{framework}_tiny.json").read_text())

    def log(self, output, framework="native"):
        return (self.folder / output / f"training_{framework}_tiny.log").read_text(errors="replace")

    def steps(self, output):
        path = self.folder / output / "runs/train_cpu_native_tiny/steps.jsonl"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def trainers(self):
        return processes_of(self.folder)

    def jobs(self):
        return self.cluster.ask("squeue", "--noheader", "--format=%i %j %T")


def expect(is_so, complaint):
    if not is_so:
        raise AssertionError(complaint)


def await_that(is_so, complain):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        expect(time.monotonic() < deadline, complain())
        time.sleep(0.1)


def expect_nothing_left(suite, case):
    await_that(lambda: not suite.jobs(), lambda: f"{case}: a job is left: {suite.jobs()}")
    await_that(lambda: not suite.trainers(), lambda: f"{case}: processes are left: {suite.trainers()}")


def check_ways(suite):
    status, output = suite.run("local")
    expect(status == 0, f"mpirun: exit status {status}\n{output}")
    losses = suite.result("local")["loss_values"]
    expect(len(losses) == 5, f"mpirun: losses {losses}")
    for name, (more, before) in WAYS.items():
        status, output = suite.run(name, ["--launcher", "slurm", *more], before)
        expect(status == 0, f"{name}: exit status {status}\n{output}\n{suite.log(name)}")
        result = suite.result(name)
        expect(result["status"] == "complete", f"{name}: {result['status']}, {result.get('status_reason')}")
        expect(result["loss_values"] == losses, f"{name}: losses {result['loss_values']} are not {losses}")
        expect("lm loss" in suite.log(name), f"{name}: the log lacks the steps\n{suite.log(name)}")
        expect_nothing_left(suite, name)
        suite.tell(f"{name}: {len(losses)} steps, the same losses as under mpirun")


def check_torchrun(suite):
    """FSDP2 on two nodes, a torchrun on each; the nodes are this machine, so their names lead nowhere."""
    python = os.environ.get("TPRIMAT_PYTHON")
    if not python or subprocess.run([python, "-c", "import torch, transformers"], capture_output=True).returncode != 0:
        return suite.tell("torchrun: not tried, TPRIMAT_PYTHON names no Python with torch and transformers")
    (suite.folder / "frameworks").mkdir()
    prefix = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    (suite.folder / "frameworks/fsdp").symlink_to(prefix.stdout.strip())
    suite.cluster.environment["TPRIMAT_FRAMEWORKS"] = str(suite.folder / "frameworks")
    two_nodes = ["--launcher", "slurm", "--nodes", "2", "--set", "launch.master_address=localhost"]
    losses = []
    for name, more in (("local_fsdp", []), ("nodes_fsdp", two_nodes)):
        status, output = suite.run(name, ["--framework", "fsdp", *more])
        expect(status == 0, f"{name}: exit status {status}\n{output}\n{suite.log(name, 'fsdp')}")
        losses.append(suite.result(name, "fsdp")["loss_values"])
    expect(losses[0] == losses[1], f"torchrun: losses {losses[1]} are not {losses[0]}")
    expect_nothing_left(suite, "nodes_fsdp")
    suite.tell("nodes_fsdp: the same losses as under one torchrun")


def check_failure(suite):
    """A trainer that fails fails the job, and its last words come back."""
    (suite.folder / "damaged.bin").touch()
    (suite.folder / "damaged.idx").touch()
    status, output = suite.run("failing", ["--launcher", "slurm", "--dataset", "damaged"])
    expect(status == 1, f"failing: exit status {status}\n{output}")
    expect("damaged.idx" in suite.log("failing"), f"failing: {suite.log('failing')}")
    expect_nothing_left(suite, "failing")
    suite.tell("failing: the job's exit status and last words come back")


def check_time_limit(suite, name):
    more, before = WAYS[name]
    for limit in (6, 60):  # on a loaded machine no step may happen within the first
        output = f"late_{limit}_{name}"
        status, text = suite.run(output, ["--launcher", "slurm", "--steps", str(FOREVER), "--timeout", f"{limit}s", *more], before)
        result = suite.result(output)
        if result.get("loss_values"):
            break
    expect(status == 1, f"{output}: exit status {status}\n{text}")
    expect("time limit" in result["status_reason"], f"{output}: {result['status_reason']}\n{suite.log(output)}")
    expect(len(result["loss_values"]) > 0, f"{output}: no step was recorded\n{suite.log(output)}")
    expect_nothing_left(suite, output)
    suite.tell(f"{output}: stopped after {len(result['loss_values'])} steps, nothing left")


def check_signal(suite, name, number):
    """A signal to the suite while the job runs: Ctrl-C, or kill -9, after which only the warden is left to act."""
    output = f"signal_{int(number)}_{name}"
    suite_process = suite.start(output, ["--launcher", "slurm", "--steps", str(FOREVER), *WAYS[name][0]])
    try:
        await_that(lambda: suite.steps(output) > 0, lambda: f"{output}: no step")
        suite_process.send_signal(number)
        status = suite_process.wait(PATIENCE)
    finally:
        suite_process.kill()
    if number == signal.SIGINT:
        expect(status == 130, f"{output}: exit status {status}")
        expect(suite.result(output)["status"] == "interrupted", f"{output}: {suite.result(output)['status']}")
    expect_nothing_left(suite, output)
    suite.tell(f"{output}: nothing left")


def check(suite):
    check_ways(suite)
    check_torchrun(suite)
    check_failure(suite)
    for name in ("sbatch", "srun", "step"):
        check_time_limit(suite, name)
    for name in ("sbatch", "srun"):
        check_signal(suite, name, signal.SIGINT)
        check_signal(suite, name, signal.SIGKILL)


def main():
    missing = missing_programs()
    if missing:
        print(f"skipped: {', '.join(missing)} not found; sudo apt-get install slurm-wlm munge")
        sys.exit(SKIPPED)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_slurm_"))
    tidy_after_death(folder)
    (folder / "cluster").mkdir()
    (folder / "work").mkdir()
    cluster = Cluster(folder / "cluster")
    try:
        cluster.start()
        check(Suite(str(pathlib.Path(sys.argv[1]).resolve()), cluster, folder / "work"))
    except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(f"{cluster.logs()}\nfailed: {error}")
        sys.exit(1)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
