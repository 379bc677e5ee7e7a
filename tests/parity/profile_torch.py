#!/usr/bin/env python3
"""A profile by PyTorch of a small training on the processor, in Transformers and in FSDP2 with two ranks.

  profile_torch.py TPRIMAT

Each measured run has the traces of both ranks' further steps beside it. Of `tprimat profile`, the trace has its name, holds the steps of the window and no others, is summarised, and the measured results beside it
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
experiment: {name: profile, methodology: one, profiling: PROFILING, profile_steps: 2}
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


def names_of(events, category):
    return {event["name"] for event in events if event.get("cat") == category}


def check_further_steps(folder, framework):
    """Two steps after the eight measured ones, of both ranks, with shapes and marks; no figure counts them."""
    result = json.loads((folder / "output" / f"train_cpu_{framework}_llama.json").read_text())
    profile = result["profile"]
    assert len(result["step_times"]) == 8 and result["training_config"]["max_steps"] == 8, result["step_times"]
    assert not [entry for entry in result["config_audit"] if entry["key"] == "max_steps"], result["config_audit"]
    assert (profile["profiler"], profile["first_step"], profile["last_step"]) == ("torch", 10, 11), profile
    assert len(profile["step_times"]) == 2 and len(profile["files"]) == 2, profile
    assert abs(profile["step_time_seconds"] / result["statistics"]["mean"] - 1 - profile["cost"]) < 1e-9, profile
    for rank, name in enumerate(profile["files"]):
        trace = json.loads(gzip.decompress((folder / "output" / name).read_bytes()))
        events = trace["traceEvents"]
        ranges = names_of(events, "user_annotation")
        assert trace["distributedInfo"]["rank"] == rank and trace["distributedInfo"]["world_size"] == 2
        assert steps_of(folder / "output" / name) == [10, 11]
        assert any("DataLoader" in each or each == "tprimat: next batch" for each in ranges), ranges
        assert any(each.startswith("Optimizer.step#") for each in ranges), ranges
        assert any(event.get("args", {}).get("Input Dims") for event in events if event.get("name") == "aten::mm")
    print(f"{framework}: further steps cost {profile['cost']:+.0%}")


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
            check_further_steps(folder, framework)
        results = {path: path.read_bytes() for path in (folder / "output").glob("train*") if path.is_file()}
        assert len(results) == 4, list(results)  # a result and a log of each
        call(folder, "profile", "--framework", "tran,fsdp", "--window", "2:4", "-q")
        for framework in ("tran", "fsdp"):
            check(folder, framework, [2, 3, 4])
        assert all(path.read_bytes() == content for path, content in results.items()), "a measured result was changed"
    return 0


if __name__ == "__main__":
    sys.exit(main())
