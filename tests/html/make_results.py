"""Result files for the tests of the HTML page: made up, the same on every run. Usage: make_results.py FOLDER [RUNS]"""

import json
import math
import pathlib
import sys

SHAPE = dict(num_layers=32, hidden_size=4096, ffn_hidden_size=14336, num_attention_heads=32, num_key_value_heads=8,
             head_dim=128, vocab_size=128256, max_position_embeddings=131072)
DEVICES = {"nvd": ("NVIDIA H100 80GB HBM3", "catalogue:H100-SXM-80GB:bf16", 989e12),
           "amd": ("AMD Instinct MI300X", "measured:MI300X:bf16", 810e12)}
FRAMEWORKS = ("nemo", "mega", "deep", "prim", "fsdp")
STRATEGIES = ("balanced", "memory_optimized")


def wave(i, phase):
    return math.sin(1.7 * i + phase) + 0.6 * math.sin(4.1 * i + 2 * phase) + 0.3 * math.sin(0.31 * i * i + phase)


def step_times(seconds, steps, phase):
    times = [seconds * (1 + 0.004 * wave(i, phase)) for i in range(steps)]
    times[0] *= 9
    for i in range(40, steps, 97):
        times[i] *= 1.3
    return [round(each, 4) for each in times]


def result(platform, framework, strategy, model, seconds, phase, steps, **changes):
    device, peak_id, flops = DEVICES[platform]
    power = 5200 + 40 * wave(7, phase)
    run = dict(
        schema_version=1, status="complete", platform=platform, framework=framework, framework_version="1.2.3",
        timestamp="2026-02-02T16:18:53Z", model_info=dict(name=model, shape=dict(name=model, **SHAPE)),
        precision="bf16", dataset="synthetic",
        gpu_info=dict(device_name=device, device_count=8, total_memory_gb=85.9,
                      software_stack="cuda" if platform == "nvd" else "rocm"),
        training_config=dict(max_steps=steps, global_batch_size=64, micro_batch_size=1, sequence_length=4096,
                             num_gpus=8, learning_rate=3e-4, optimizer="adamw", weight_decay=0.1, seed=42),
        parallelism_config=dict(strategy_name=strategy, tensor_model_parallel_size=2, pipeline_model_parallel_size=1,
                                data_parallel_size=4),
        memory_metrics=dict(peak_memory_allocated_gb=60.5 + phase, peak_memory_reserved_gb=71.25 + phase,
                            measurement_method="torch allocator"),
        telemetry=[dict(source="nvml" if platform == "nvd" else "amd_smi", samples=5 * steps, interval_seconds=0.2,
                        mean_power_watts=power, energy_joules=power * seconds * (steps - 1), energy_valid=True)],
        environment={"kernel": "6.1.0", "cpu": "AMD EPYC 9654", "hostname": f"node{int(phase * 10):02d}",
                     **{f"NCCL_SETTING_{i}": str(i) for i in range(12)}},
        derived=dict(peak=dict(id=peak_id, flops_per_second=flops, source="made up", memory_bytes_per_second=3.2e12),
                     usd_per_hour=24.0 if platform == "nvd" else 20.0),
        step_times=step_times(seconds, steps, phase),
        loss_values=[round(4 + 7.8 * math.exp(-i / 60) + 0.01 * wave(i, phase), 4) for i in range(steps)],
        learning_rates=[float(f"{3e-4 * min(1, (i + 1) / 50) * (0.5 + 0.5 * math.cos(math.pi * i / steps)):.6g}")
                        for i in range(steps)])
    run.update(changes)
    return run


def write(folder, name, run):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(run) + "\n", encoding="utf-8")


def make_many(folder, files, steps=500, repetitions=5):
    """Models of twenty participants, each repeated."""
    per_model = 2 * len(FRAMEWORKS) * len(STRATEGIES)
    for number in range(files):
        participant, repetition = divmod(number, repetitions)
        model = f"model_{participant // per_model}"
        platform = ("nvd", "amd")[participant % 2]
        framework = FRAMEWORKS[participant // 2 % len(FRAMEWORKS)]
        strategy = STRATEGIES[participant // (2 * len(FRAMEWORKS)) % len(STRATEGIES)]
        seconds = 3.4 + 0.05 * (participant % per_model) + 0.004 * repetition
        write(folder, f"train_{platform}_{framework}_{model}_{strategy}_r{repetition + 1}.json",
              result(platform, framework, strategy, model, seconds, 0.1 * participant, steps))


def make_hostile(folder):
    """What a file can try to bring into a page, in every text that reaches it."""
    evil = "</script><script>document.title='taken'</script>"
    image = "<img src=x onerror=\"document.title='taken'\">"
    run = result("nvd", "nemo", f"\"'><svg onload=alert(1)>{evil}", f"llama {evil}", 3.0, 0.2, 60,
                 dataset=f"<!--{evil}",
                 environment={f"key {image}": f"\u2028{image}\u202e\x07", "HOME": "&lt;b&gt;"}, warnings=[image, evil],
                 framework_version="${alert(1)}")
    run["gpu_info"]["device_name"] = image
    run["memory_metrics"]["measurement_method"] = image
    write(folder, "<img src=x onerror=alert(1)>.json", run)
    other = result("amd", "prim", "javascript:alert(1)", f"llama {evil}", 2.5, 0.4, 60)
    write(folder, "'; document.title='taken'; '.json", other)


if __name__ == "__main__":
    make_many(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20)
