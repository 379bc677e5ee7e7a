#!/usr/bin/env python3
"""`tprimat run --launcher kubernetes` from the manifest to the result, against a stand-in for kubectl whose pods are processes here.

The native trainer really trains: two pods of one rank each, which meet over TCP. The cases wait more than they work, so they run together.

usage: kubernetes_test.py PROGRAM
"""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
STEPS = 5000  # for which a training takes seconds
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
  duration: {max_steps: 3}
  optimizer: {warmup_steps: 1}
  precision: {default: fp32}
launch:
  nodes: 2
  master_address: 127.0.0.1
  kubernetes: {image: "registry/tprimat:cpu", cpus: 1, memory: 1Gi, secrets: {HF_TOKEN: hf/token}}
benchmarking: {enhanced_metrics: {hardware_specs: {cpu_auto: {peak_tflops_fp32: 1.0e+15, peak_tflops_bf16: 1.0e+15}}}}
"""


class Case:
    """A run in a folder of its own, on a cluster of its own."""
    ports = iter(range(23000 + os.getpid() % 500 * 16, 65000))

    def __init__(self, program, folder, behaviour=""):
        self.program, self.folder, self.cluster = program, folder, folder / "cluster"
        tools = folder / "bin"
        tools.mkdir(parents=True)
        self.cluster.mkdir()
        (folder / "config.yaml").write_text(CONFIGURATION)
        (self.cluster / "behaviour").write_text(behaviour)
        (tools / "kubectl").write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_kubectl.py"} "$@"\n')
        (tools / "kubectl").chmod(0o755)
        (tools / "tprimat").symlink_to(program)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "OMPI_", "CONFIG_"))}
        self.environment = {**kept, "PATH": f"{tools}:{os.environ['PATH']}", "FAKE_CLUSTER": str(self.cluster), "HF_TOKEN": "hf_very_secret"}

    def start(self, *more):
        command = [self.program, "run", "--launcher", "kubernetes", "--set", f"launch.master_port={next(Case.ports)}", *more]
        self.process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, start_new_session=True)
        return self

    def end(self, status):
        self.output, _ = self.process.communicate(timeout=120)
        log = next(iter(self.folder.glob("output/*.log")), None)
        shown = self.output + (log.read_text() if log else "")
        assert self.process.returncode == status, f"exit {self.process.returncode}:\n{shown[-3000:]}"
        self.result = json.loads(next(self.folder.glob("output/train_*.json")).read_text())
        return self

    def path(self, name):
        return next(self.folder.glob(f"output/runs/*/{name}"))

    def records(self):
        return [json.loads(line) for line in self.path("steps.jsonl").read_text().splitlines()]


def check_secrets(case):
    for path in [*case.folder.glob("output/**/*"), *case.cluster.glob("*")]:
        if path.is_file():
            assert b"hf_very_secret" not in path.read_bytes(), path


def records_come_by_the_log(program, folder):
    """No volume: the pods' folder is theirs alone. A connection that breaks loses and repeats nothing."""
    case = Case(program, folder, "drop").start("--steps", str(STEPS)).end(0)
    assert case.result["status"] == "complete" and case.result["source"]["format"] == "tprimat-steps", case.result
    assert [record["step"] for record in case.records()] == list(range(1, STEPS + 1)), len(case.records())
    assert (case.cluster / "dropped").read_text() == "while the pod ran", "the connection broke too late to be made again"
    assert len(case.result["loss_values"]) == STEPS and case.result["gpu_info"]["device_count"] == 2
    log = next(case.folder.glob("output/*.log")).read_text()
    assert "tprimat-record" not in log and f"iteration {STEPS:8}/" in log, log[:2000]
    assert (case.cluster / "deleted").exists()
    assert case.path("pods.txt").read_text() == "Name: pod\n" and case.path("node_1.log").exists()
    check_secrets(case)
    alone = subprocess.run([program, "run", "--nodes", "1", "--steps", str(STEPS), "--set", "hardware.platforms.cpu.num_gpus=1",
                            "--set", "parallelism.two.tiny.cpu.DP=1", "--output", "alone"], cwd=folder, env=case.environment, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    expected = json.loads(next(folder.glob("alone/train_*.json")).read_text())["loss_values"]
    for loss, other in list(zip(case.result["loss_values"], expected, strict=True))[:6]:
        assert abs(loss / other - 1) < 1e-5, (case.result["loss_values"][:6], expected[:6])


def a_shared_folder_needs_no_log(program, folder):
    case = Case(program, folder).start("--set", f"launch.kubernetes.volumes={json.dumps([f'host:{folder}:{folder}'])}").end(0)
    assert case.result["status"] == "complete" and len(case.records()) == 3
    assert "tprimat-record" not in case.path("node_0.log").read_text()


def a_folder_that_is_not_shared_is_named(program, folder):
    case = Case(program, folder, "elsewhere").start("--set", f"launch.kubernetes.volumes={json.dumps([f'host:{folder}:{folder}'])}").end(1)
    assert "does not see the pods' folder" in case.result["status_reason"], case.result["status_reason"]


def unschedulable_pods_are_the_cause(program, folder):
    case = Case(program, folder, "unschedulable").start("--set", "launch.kubernetes.pending_seconds=1").end(1)
    reason = case.result["status_reason"]
    assert "cannot schedule the pod of node" in reason and "Insufficient nvidia.com/gpu | untolerated taint" in reason, reason
    assert "Insufficient" in case.output and (case.cluster / "deleted").exists()


def a_time_limit_says_what_the_run_waited_for(program, folder):
    case = Case(program, folder, "unschedulable").start("--timeout", "5s").end(1)
    assert case.result["failure_kind"] == "time_limit" and "Insufficient" in case.result["status_reason"], case.result["status_reason"]
    assert case.output.count("Insufficient") >= 2, "it was not told while the run waited"
    assert (case.cluster / "deleted").exists()


def an_image_that_cannot_be_fetched_is_the_cause(program, folder):
    case = Case(program, folder, "image").start().end(1)
    assert "cannot get its image (ImagePullBackOff)" in case.result["status_reason"], case.result["status_reason"]


def memory_that_ran_out_is_the_cause(program, folder):
    case = Case(program, folder, "oom").start("--steps", "100000").end(1)
    assert case.result["failure_kind"] == "host_out_of_memory" and "node 1 (OOMKilled)" in case.result["status_reason"], case.result


def a_failing_program_explains_itself(program, folder):
    case = Case(program, folder).start("--set", "launch.program_inside=no_such_program").end(1)
    assert "no_such_program" in case.result["status_reason"] and case.result["failure_kind"] == "missing_program", case.result


def pods_that_vanish_are_named(program, folder):
    case = Case(program, folder, "vanish").start("--steps", "100000").end(1)
    assert "2 of 2 pods vanished" in case.result["status_reason"], case.result["status_reason"]
    assert case.result["step_times"], "the records up to then are kept"


def a_cluster_without_jobset_is_named(program, folder):
    case = Case(program, folder, "no_jobset").start().end(1)
    assert "the cluster has no JobSet" in case.result["status_reason"], case.result["status_reason"]
    assert (case.cluster / "deleted").exists(), "the ConfigMap is left"


def another_jobset_is_left_alone(program, folder):
    case = Case(program, folder, "exists").start().end(1)
    assert "already exists" in case.result["status_reason"], case.result["status_reason"]
    assert not (case.cluster / "deleted").exists()


def ctrl_c_deletes_and_keeps(program, folder):
    case = Case(program, folder).start("--steps", "100000")
    deadline = time.time() + 60
    while not any(path.stat().st_size for path in folder.glob("output/runs/*/steps.jsonl")):
        assert time.time() < deadline and case.process.poll() is None, case.process.communicate()[0]
        time.sleep(0.1)
    os.kill(case.process.pid, signal.SIGINT)
    case.end(130)
    assert case.result["status"] == "interrupted" and case.result["step_times"], case.result
    assert (case.cluster / "deleted").exists()
    left = subprocess.run(["pgrep", "-f", str(case.cluster)], capture_output=True, text=True).stdout
    assert not left, left


CASES = [records_come_by_the_log, a_shared_folder_needs_no_log, unschedulable_pods_are_the_cause, a_time_limit_says_what_the_run_waited_for,
         an_image_that_cannot_be_fetched_is_the_cause, memory_that_ran_out_is_the_cause, a_failing_program_explains_itself,
         pods_that_vanish_are_named, a_cluster_without_jobset_is_named, another_jobset_is_left_alone, ctrl_c_deletes_and_keeps,
         a_folder_that_is_not_shared_is_named]


def can_mount():
    command = ["unshare", "-m" if os.getuid() == 0 else "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


def main():
    if not can_mount():
        print("skipped: no mount namespace can be made here, which gives each pod a folder of its own; run it as root, outside a "
              "container without CAP_SYS_ADMIN")
        return SKIPPED
    program = str(pathlib.Path(sys.argv[1]).resolve())
    chosen = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tprimat_kubernetes_") as name, concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        running = {case.__name__: pool.submit(case, program, pathlib.Path(name, case.__name__)) for case in chosen}
        for case, future in running.items():
            error = future.exception()
            failed += error is not None
            print(f"{'FAIL' if error else 'ok  '} {case}{f': {error}' if error else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
