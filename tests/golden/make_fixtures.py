"""Writes the result files of the golden comparisons: small, made up, the same on every run. Usage: python3 make_fixtures.py"""
import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent / "compare"
SHAPE = dict(name="llama", full_name="Llama 3.1 8B", num_layers=32, hidden_size=4096, ffn_hidden_size=14336,
             num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=128256, max_position_embeddings=131072)
H100, MI300X = "NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"
PEAKS = {H100: ("catalogue:H100-SXM-80GB:bf16", 989e12), MI300X: ("catalogue:MI300X:bf16", 1307e12)}


def wave(i, phase):
    return math.sin(1.7 * i + phase) + 0.6 * math.sin(4.1 * i + 2 * phase)


def series(step_time, steps, file):
    """Noise of its own for each file: two runs that share theirs are one measurement."""
    noise = random.Random(file)
    return [round(step_time * (6 if i == 0 else 1 + 0.0025 * noise.gauss(0, 1)), 5) for i in range(steps)]


def older(case, name, platform, device, step_time, batch, length, stored_rate=None, **more):
    steps = 12
    result = dict(platform=platform, gpu_info=dict(device_name=device, device_count="N/A", software_stack="nemo" if platform == "nvd" else "rocm"),
                  timestamp="2026-01-05T12:00:00",
                  training_config=dict(max_steps=steps, global_batch_size=batch, sequence_length=length, num_gpus=8),
                  raw_step_times=series(step_time, steps, f"{case}/{name}"), **more)
    if stored_rate:
        result["performance_metrics"] = dict(total_steps=steps, total_time_seconds=1.0, avg_step_time_seconds=step_time,
                                             tokens_per_second=stored_rate, tokens_per_second_per_gpu=stored_rate / 8)
    write(case, name, result)


def current(case, name, platform, framework, device, step_time, phase, steps=40, **changes):
    training = dict(max_steps=steps, global_batch_size=64, micro_batch_size=1, sequence_length=4096, num_gpus=8,
                    learning_rate=3e-4, optimizer="adamw", weight_decay=0.1, seed=42)
    training.update(changes.pop("training", {}))
    peak_id, flops = PEAKS[device]
    result = dict(
        schema_version=1, status="complete", platform=platform, framework=framework, timestamp="2026-02-02T16:18:53Z",
        model_info=dict(name=changes.pop("model", "llama"), shape=SHAPE), precision="bf16", dataset="synthetic",
        gpu_info=dict(device_name=device, device_count=8, software_stack="cuda" if platform == "nvd" else "rocm"),
        training_config=training,
        parallelism_config=dict(strategy_name="balanced", tensor_model_parallel_size=2, pipeline_model_parallel_size=1, data_parallel_size=4),
        memory_metrics=dict(peak_memory_allocated_gb=60.5, peak_memory_reserved_gb=71.25, measurement_method="torch allocator"),
        derived=dict(peak=dict(id=peak_id, flops_per_second=flops, source="made up"), usd_per_hour=24.0),
        step_times=series(step_time, steps, f"{case}/{name}"),
        loss_values=[round(4 + 7.8 * math.exp(-i / 15) + 0.01 * wave(i, phase), 4) for i in range(steps)],
        learning_rates=[round(3e-4 * min(1, (i + 1) / 5) * (0.5 + 0.5 * math.cos(math.pi * i / steps)), 9) for i in range(steps)])
    result.update(changes)
    write(case, name, result)


def write(case, name, result):
    folder = HERE / case / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(result) + "\n")


current("clear_winner", "train_nvd_nemo_llama.json", "nvd", "nemo", H100, 3.2, 0.1)
current("clear_winner", "train_amd_prim_llama.json", "amd", "prim", MI300X, 2.9, 0.9)

for run in (1, 2, 3):  # a thousandth apart is the same, what differs by its own spread is not certain
    for framework, step_time, spread in (("nemo", 3.2, 0.001), ("mega", 3.203, 0.001), ("deep", 3.25, 0.015)):
        current("same_and_inconclusive", f"train_nvd_{framework}_llama_r{run}.json", "nvd", framework, H100,
                step_time + spread * (run - 2), 0.1 * run + 10 * spread)

older("different_work", "benchmark_cuda_llama.json", "nvd", H100, 1.6, 8, 8192)
older("different_work", "benchmark_rocm_llama.json", "amd", MI300X, 9.7, 128, 2048, stored_rate=108000.0, source="primus_log_extraction")
(HERE / "different_work" / "runs" / "notes.json").write_text('{"comment": "no result"}\n')

current("different_training", "train_nvd_nemo_llama.json", "nvd", "nemo", H100, 3.9, 0.1)
current("different_training", "train_amd_prim_llama.json", "amd", "prim", MI300X, 2.5, 0.9,
        loss_values=[round(11.8 * math.exp(-i / 3), 5) for i in range(40)], learning_rates=[3e-4 * (1 - i / 40) for i in range(39)])

current("different_models", "train_nvd_nemo_llama.json", "nvd", "nemo", H100, 3.2, 0.1)
current("different_models", "train_amd_prim_qwen.json", "amd", "prim", MI300X, 2.9, 0.9, model="qwen")

for run in (1, 2, 3):
    current("repeated_runs", f"train_nvd_nemo_llama_r{run}.json", "nvd", "nemo", H100, 3.2 + 0.01 * run, 0.1 * run)
    current("repeated_runs", f"train_amd_prim_llama_r{run}.json", "amd", "prim", MI300X, 2.9 - 0.01 * run, 0.1 * run,
            training=dict(global_batch_size=128))
