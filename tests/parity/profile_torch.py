#!/usr/bin/env python3
"""A profile by PyTorch of a small training on the processor, in Transformers and in FSDP2 with two ranks.

  profile_torch.py TPRIMAT

The trace has its name, holds the steps of the window and no others, is summarised, and the measured results beside it
stay as they were. TPRIMAT_PYTHON names the Python to use. Exit status: 0 all holds, 1 something does not, 77 a
framework is not installed there.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import SKIPPED, lacks, use_chosen_python

CONFIG = """
experiment: {name: profile, methodology: one, profiling: PROFILING}
hardware: {platforms: {cpu: {num_gpus: 2}}}
models:
  llama: {num_layers: 2, hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, num_key_value_heads: 2,
          head_dim: 16, vocab_size: 512, max_position_embeddings: 128}
training:
  data: {seq_length: 64, micro_batch_size: 2, global_batch_size: 4}
  duration: {max_steps: 8}
  optimizer: {warmup_steps: 4}
parallelism: {one: {llama: {cpu: {DP: 2}}}}
platform_optimizations: {cpu: {precision: fp32}}
benchmarking: {enhanced_metrics: {hardware_specs: {cpu_auto: {peak_tflops_fp32: 1.0e+15, peak_tflops_bf16: 1.0e+15}}}}
"""


def call(folder, *words):
    environment = {**os.environ, "TPRIMAT_FRAMEWORKS": str(folder / "frameworks")}
    done = subprocess.run([sys.argv[1], *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        logs = "".join(f"\n{log}:\n" + log.read_text()[-3000:] for log in folder.rglob("*.log"))
        raise SystemExit(f"{words} failed with {done.returncode}:\n{done.stdout}{done.stderr}{logs}")
    return done.stdout


def steps_of(trace):
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return sorted({int(e["name"].split("#")[1]) for e in events if e.get("name", "").startswith("ProfilerStep#")})


def check(folder, framework, window):
    trace = folder / "output" / f"profile_cpu_llama_one_{framework}.json.gz"
    record = json.loads((folder / "output" / f"profile_cpu_llama_one_{framework}_summary.json").read_text())
    host = record["summary"]["host"]
    classes = {each["class"]: each["total_seconds"] for each in host["classes"]}
    assert steps_of(trace) == window, (framework, steps_of(trace))
    assert [step["step"] for step in host["steps"]] == window, host["steps"]
    assert record["first_step"] == window[0] and record["last_step"] == window[-1], record
    assert record["kind"] == "profile" and "tokens_per_second" not in json.dumps(record)
    assert 0 < classes["matmul"] < host["span_seconds"] * host["threads"], classes
    recorded = (folder / "output" / "runs" / f"profile_cpu_llama_one_{framework}" / "steps.jsonl").read_text()
    assert recorded.count("\n") == min(8, window[-1] + 1), recorded
    print(f"{framework}: steps {window}, {host['calls']} operations, matmul {classes['matmul'] * 1e3:.1f} ms")


def main():
    use_chosen_python()
    if lacks("torch", "transformers", "accelerate"):
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "frameworks").mkdir()
        for each in ("tran", "fsdp"):  # this Python serves both
            (folder / "frameworks" / each).symlink_to(sys.prefix)
        (folder / "config.yaml").write_text(CONFIG.replace("PROFILING", "true"))
        call(folder, "run", "--framework", "tran,fsdp", "-q")
        for framework in ("tran", "fsdp"):
            check(folder, framework, [5, 6, 7])
        results = {path: path.read_bytes() for path in (folder / "output").glob("train*")}
        assert len(results) == 4, list(results)  # a result and a log of each
        call(folder, "profile", "--framework", "tran,fsdp", "--window", "2:4", "-q")
        for framework in ("tran", "fsdp"):
            check(folder, framework, [2, 3, 4])
        assert all(path.read_bytes() == content for path, content in results.items()), "a measured result was changed"
    return 0


if __name__ == "__main__":
    sys.exit(main())
