#!/usr/bin/env python3
"""The manifest of `tprimat run --launcher kubernetes` against the published schemas.

- PyYAML reads the documents, and every file in the ConfigMap has the bytes of the generated file.
- kubeflow-trainer-api has JobSet's own models: each field is one of theirs, with their type, and nothing is lost in them.
- kubernetes-validate has the schemas of Kubernetes' own objects: the ConfigMap and the job that each pod is from, strictly.

usage: kubernetes_manifest.py PROGRAM; exit status 77: the packages are not installed
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

use_chosen_python()
try:
    import kubernetes_validate
    import yaml
    from kubeflow_trainer_api.models import JobsetV1alpha2JobSet
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}; pip install -r tests/parity/requirements.txt, or name another in TPRIMAT_PYTHON")
    sys.exit(77)

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"
VERSIONS = ("1.28", kubernetes_validate.latest_version())
KUBERNETES = {
    "namespace": "ml", "image": "nvcr.io/nvidia/pytorch:25.06-py3", "pull_policy": "IfNotPresent", "pull_secrets": ["registry"],
    "volumes": ["claim:shared:/shared", "host:/nvme/data:/data:ro"], "shm_size": "64Gi", "cpus": 96, "memory": "1500Gi",
    "resources": ["rdma/ib=8", "example.com/very-fast=1"], "node_selector": ["example.com/gpu=yes", "zone=1e3"],
    "tolerations": ["nvidia.com/gpu:NoSchedule", "dedicated=training:NoExecute", "anything"], "labels": ["kueue.x-k8s.io/queue-name=team"],
    "secrets": {"HF_TOKEN": "hf-token/token"}, "capabilities": ["IPC_LOCK"], "service_account": "trainer", "host_network": True,
}
HOSTILE = "a: b # 'c' \"d\" $(HOME) $$ \\n \u00e9 - [x] {y}"
CONFIG_OF = {"fsdp": "kubernetes_2x8.yaml"}  # which trains data-parallel only
TRAININGS = [("cpu", "native"), ("nvd", "fsdp"), ("amd", "fsdp"), ("nvd", "mega"), ("amd", "prim")]


def plan(program, folder, platform, framework, settings):
    words = [program, "run", "--dry-run", "--json", "--launcher", "kubernetes", "--platform", platform, "--framework", framework, "--model", "llama",
             "--config", str(CONFIGS / CONFIG_OF.get(framework, "compare_8gpu.yaml")), "--output", "/shared/out", "--nodes", "2", "--set", f"launch.kubernetes={json.dumps(settings)}"]
    if platform == "cpu":
        config = folder / "cpu.yaml"
        config.write_text("hardware: {platforms: {cpu: {num_gpus: 2}}}\nexperiment: {methodology: two}\n"
                          "models: {llama: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, vocab_size: 64, max_position_embeddings: 64}}\n"
                          "parallelism: {two: {llama: {cpu: {DP: 2}}}}\ntraining: {data: {seq_length: 16, micro_batch_size: 1, global_batch_size: 2}}\n"
                          f"platform_optimizations: {{cpu: {{environment: {{ODD: {json.dumps(HOSTILE)}}}}}}}\n")
        words[words.index("--config") + 1] = str(config)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


def check_fields(jobset):
    read = JobsetV1alpha2JobSet.from_dict(jobset).to_dict()
    assert json.dumps(read, sort_keys=True) == json.dumps(jobset, sort_keys=True), f"JobSet's models read\n{read}\nof\n{jobset}"


def check_objects(config, jobset):
    for version in VERSIONS:
        kubernetes_validate.validate(config, version, strict=True)
        for each in jobset["spec"]["replicatedJobs"]:
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": each["name"]}, **each["template"]}
            kubernetes_validate.validate(job, version, strict=True)


def check_files(config, run):
    files = {file["path"]: file["content"] for file in run["files"]}
    contents = list(config["data"].values())
    for path, content in files.items():
        if not path.endswith(("/jobset.yaml", "/follow.sh", "/delete.sh")):
            assert content in contents, path


def check_meaning(jobset, platform):
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    container = job["template"]["spec"]["containers"][0]
    assert job["completions"] == job["parallelism"] == 2 and job["completionMode"] == "Indexed" and job["backoffLimit"] == 0
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 0 and job["template"]["spec"]["restartPolicy"] == "Never"
    gpus = {"nvd": "nvidia.com/gpu", "amd": "amd.com/gpu"}.get(platform)
    assert {key for key in container["resources"]["limits"] if key.endswith("/gpu")} == ({gpus} if gpus else set())
    token = next(each for each in container["env"] if each["name"] == "HF_TOKEN")
    assert token["valueFrom"] == {"secretKeyRef": {"name": "hf-token", "key": "token"}} and "value" not in token
    odd = [each["value"] for each in container["env"] if each["name"] == "ODD"]
    assert not odd or odd == [HOSTILE.replace("$", "$$")], odd


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        for platform, framework in TRAININGS:
            run = plan(program, pathlib.Path(name), platform, framework, KUBERNETES)
            text = next(file["content"] for file in run["files"] if file["path"].endswith("/jobset.yaml"))
            config, jobset = yaml.safe_load_all(text)
            check_fields(jobset)
            check_objects(config, jobset)
            check_files(config, run)
            check_meaning(jobset, platform)
            print(f"ok   {framework} on {platform}: {len(text)} bytes")


if __name__ == "__main__":
    main()
