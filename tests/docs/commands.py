#!/usr/bin/env python3
"""Runs the commands of the documentation: every `tprimat` line in a ```sh block of README.md and docs/*.md.

Each page gets a folder with the files that its commands name, and its lines run there from top to bottom; so do the commands
in the last column of the tables of docs/coming_from_tprimat.md, on a configuration in the older form. A command that
needs a GPU, a cluster, a container, the network or a framework is not run; `tprimat COMMAND --help` must know its
options.

usage: commands.py PROGRAM SOURCE_DIR [PAGE...]
"""

import collections
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# A line that calls tprimat, or makes a file that the next lines read.
OWN = re.compile(r"(^|[|;&(] *|^[A-Z_]+=\S+ |-- )tprimat [a-z]|^echo |^python3 bench/compare/make_results")
# What is not run, and why it cannot be here.
ELSEWHERE = [
    (r"--follow", "a log that grows"),
    (r"tprimat docker |--launcher docker", "a container"),
    (r"--launcher (slurm|mpi)(?!.*--dry-run)|^srun |^torchrun |scontrol", "a cluster"),
    (r"^mpirun ", "ranks"),
    (r"--device nvd|^(?!tprimat estimate).*--platform nvd(?!.*(--dry-run|doctor))", "a GPU"),
    (r"--install", "the network"),
    (r"^(?!tprimat estimate).*--framework (native,)?(tran|fsdp|tita|mega)(?!.*--dry-run)", "a framework: frameworks/setup.sh NAME"),
    (r"--profiler torch", "a framework: frameworks/setup.sh NAME"),
    (r"perf_report\.xlsx", "a workbook of AMD's TraceLens"),
    (r"tensorboard --logdir|duckdb |mlflow |wandb ", "a program of others"),
    (r"initial[-_]weights|tokenizer\.json", "weights or a tokenizer of others"),
    (r"--calibrate published .*--folds|--intervals", "half a minute or more of two cores"),
    (r"--dataset PREFIX|--spec FILE|megatron_2104\.tsv|--validate (results|mlperf)\.tsv|--table results\.tsv|claim output/|--calibrate|parameters\.tsv",
     "files of the reader"),
    (r"^tprimat probe$|--gpu cpu|probe --threads|probe --model", "half a minute of all processors"),
    (r"^tprimat why (old|h100|workers|A |A.json|'a/)", "profiles of the reader"),
    (r"--format parquet", "pyarrow: pip install pyarrow"),
    (r"--output /var/lib", "another service's folder"),
    (r"data info data/corpus|restarts\.log", "files of the reader"),
]
# Exit statuses that the text explains: a verdict withheld (3), a gate that fires (5, 6), findings of the machine.
ENDS = [
    (r"^([A-Z_]+=\S+ )?tprimat compare", {0, 3, 5, 6}),
    (r"^tprimat claim", {0, 1, 5}),  # a verdict
    (r"^tprimat why before", {0, 2}),  # where other programs slow the recorded steps, they are refused
    (r"--target-days", {0, 1}),
    (r"^tprimat extract$", {0, 1, 2}),  # 2 in the folder of a page that makes no log
    (r"config init", {0, 2}),  # which does not overwrite
    (r"^tprimat doctor", {0, 1, 4}),
    (r"^tprimat run --(config|framework mega|framework nemo|launcher slurm)|^MOMENTS", {0, 2, 4}),
    (r"steps\.jsonl|oom\.log|doubled\.log|extract logs/|train\.log|job\.log", {0, 1}),
]
# A stated peak, so that no command waits for its measurement.
CONFIG = """\
models:
  llama: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, vocab_size: 64, max_position_embeddings: 64}
  qwen: {num_layers: 1, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16, vocab_size: 64, max_position_embeddings: 64}
training:
  data: {seq_length: 16, micro_batch_size: 1, global_batch_size: 2}
  duration: {max_steps: 25}
  optimizer: {warmup_steps: 1}
benchmarking: {enhanced_metrics: {hardware_specs: {cpu_auto: {peak_tflops_fp32: 1.0e+15, peak_tflops_bf16: 1.0e+15}}}}
"""


OLDER = "coming_from_tprimat"


def commands_of(page):
    """The lines of the ```sh blocks, without their comments, and what the table for users of older scripts says to type."""
    language = None
    for line in page.read_text().splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if fence:
            language = fence.group(1) if language is None else None
        elif page.stem == OLDER and language is None and line.startswith("| "):
            yield from re.findall(r"`((?:[A-Z_]+=\S+ |eval \"\$\()?tprimat [^`]*)`", line.split(" | ")[-1])
        elif language == "sh" and line.strip():
            yield re.sub(r"\s+# .*$", "", line.strip())


def put(folder, names, source):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)


def prepare(folder, program, source):
    """The files that the pages name."""
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "my.yaml").write_text(CONFIG)
    (folder / "measured.yaml").write_text(CONFIG.split("benchmarking:")[0])
    run([program, "run", "-q"], folder)
    runs = source / "tests/golden/compare/clear_winner/runs"
    shutil.copytree(runs, folder / "results")
    shutil.copytree(runs, folder / "DIR")
    put(folder, ["a.json", "new.json", "output/new/new.json", "machine_a/output/a.json"],
        runs / "train_nvd_nemo_llama.json")
    put(folder, ["b.json", "old.json", "main.json", "main_results/main.json", "machine_b/output/b.json"],
        runs / "train_nvd_nemo_llama.json")
    log = source / "tests/cli/extract/megatron.log"
    put(folder, ["train.log", "logs/one.log", "logs/two.log"], log)
    put(folder, ["gpu.csv", "node1.csv", "node2.csv"], source / "tests/cli/extract/gpu.csv")
    (folder / "job.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    put(folder, ["steps.jsonl"], next((folder / "output").rglob("*steps.jsonl")))
    put(folder, ["probe.json"], source / "tests/cli/probes/h100.json")
    put(folder, ["links.json"], source / "tests/cli/probes/h100_collectives.json")
    put(folder, ["train_spec.json"], next((folder / "output").rglob("train_spec.json")))
    trace = (source / "tests/fuzz/corpus/trace/small.json").read_bytes()
    (folder / "trace.json.gz").write_bytes(gzip.compress(trace))
    run([program, "data", "make", "--prefix", "corpus/text", "--tokens", "100000", "--vocab", "64"], folder)
    for inside in ("tests/golden/compare", "tests/unit/extract/fixtures", "tests/cli/extract", "configs", "bench/compare"):
        shutil.copytree(source / inside, folder / inside)
    (folder / ".ssh").mkdir()
    for key in (folder / ".ssh/id_ed25519", folder / "alice"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], folder)
    shutil.copy(folder / ".ssh/id_ed25519.pub", folder / "alice.pub")


def prepare_older(folder, program, source):
    """What users of the older scripts have: their configuration, results and logs."""
    shutil.copy(source / f"tests/docs/{OLDER}.yaml", folder / "config.yaml")
    for name in ("output-00", "output-01"):
        shutil.copytree(folder / "results", folder / name)
    log = (source / "tests/cli/extract/megatron.log").read_text().splitlines(keepends=True)
    (folder / "training_llama.log").write_text("".join(line for line in log if "... " not in line))  # states no sizes
    shutil.rmtree(folder / "output")
    shutil.copytree(folder / "results", folder / "output")


def run(command, folder):
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300,
                          shell=isinstance(command, str), executable="/bin/bash" if isinstance(command, str) else None)
    if not isinstance(command, str) and done.returncode != 0:
        raise SystemExit(f"{command}: exit status {done.returncode}\n{done.stderr}")
    return done


PATH = os.environ["PATH"]


def environment(folder):
    return {**os.environ, "HOME": str(folder), "PATH": f"{folder / 'bin'}:{PATH}"}


def elsewhere(command):
    return next((why for pattern, why in ELSEWHERE if re.search(pattern, command)), None)


def unknown_options(program, command, helps):
    """Options of the `tprimat` commands in a line that --help does not print."""
    found = []
    command = re.sub(r"'[^']*'", "TEXT", command)  # whose options are another program's
    for part in re.findall(r"tprimat (\w+(?: \w+)?)([^|&;]*)", command):
        words = part[0].split()
        for count in (2, 1):
            key = tuple(words[:count])
            if key not in helps:
                done = subprocess.run([program, *key, "--help"], capture_output=True, text=True, timeout=60)
                helps[key] = done.stdout if done.returncode == 0 else None
            if helps[key]:
                break
        if not helps[key]:
            found.append(f"no command '{part[0]}'")
            continue
        own = part[1].split(" -- ")[0]
        found += [f"no option {each}" for each in OPTION.findall(own) if each not in helps[key]]
    return found


def check_page(page, folder, program, helps):
    for command in commands_of(page):
        if not OWN.search(command):
            continue
        failures = unknown_options(program, command, helps)
        if not failures and not elsewhere(command):
            if "--from-plan" in command:  # the planner ranks by a measured peak
                command = command.replace("tprimat run", "tprimat run --config measured.yaml", 1)
            done = run(command, folder)
            ends = next((statuses for pattern, statuses in ENDS if re.search(pattern, command)), {0})
            if done.returncode not in ends:
                failures = [f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"]
        for failure in failures:
            yield f"{page.name}: {command}\n    {failure}"


def main():
    program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    pages = [source / name for name in sys.argv[3:]] or [source / "README.md", *sorted((source / "docs").glob("*.md"))]
    failures, helps, count, left = [], {}, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as root:
        model = pathlib.Path(root) / "model"
        (model / "bin").mkdir(parents=True)
        (model / "bin/tprimat").symlink_to(program)
        prepare(model, program, source)
        for page in pages:
            folder = pathlib.Path(root) / page.stem
            shutil.copytree(model, folder, symlinks=True)
            if page.stem == OLDER:
                prepare_older(folder, program, source)
            own = [each for each in commands_of(page) if OWN.search(each)]
            left.update(elsewhere(each) for each in own if elsewhere(each))
            count += sum(1 for each in own if not elsewhere(each))
            failures += check_page(page, folder, program, helps)
    print("\n".join(failures) or f"{count} commands of {len(pages)} pages ran")
    for why, number in sorted(left.items()):
        print(f"{number} not run, their options were looked up: they need {why}")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
