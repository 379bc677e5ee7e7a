#!/usr/bin/env python3
"""The same training in four frameworks: one `tprimat run`, and the losses of all agree.

  frameworks.py TPRIMAT

A small Llama and a small Qwen in fp32, from the same weights, on two data-parallel ranks: native (mpirun), Transformers, FSDP2 and
DeepSpeed (torchrun). The Llama once more in what saves memory: DeepSpeed with ZeRO-1 and FSDP2 with their state on the host, and
Transformers with weights and moments in bf16, which may be off by as much as their rounding. TPRIMAT_PYTHON names the Python to use. Exit status: 0 they agree, 1 they do not, 77 a
framework is not installed there.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import SKIPPED, lacks, use_chosen_python

STEPS, TOLERANCE, TOLERANCE_OF_BF16 = 20, 1e-5, 0.01  # relative, of every step's loss
IDS = ["tran", "fsdp", "deep"]

CONFIG = """
experiment: {{name: agreement, methodology: dp}}
hardware: {{platforms: {{cpu: {{num_gpus: 2}}}}}}
models:
  llama: {{num_layers: 2, hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16,
           vocab_size: 512, max_position_embeddings: 128{llama}}}
  qwen: {{num_layers: 2, hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16,
          vocab_size: 512, max_position_embeddings: 128, qkv_bias: true, tied_embeddings: true{qwen}}}
training:
  data: {{seq_length: 64, micro_batch_size: 2, global_batch_size: 8}}
  duration: {{max_steps: {steps}}}
  optimizer: {{learning_rate: 0.002, warmup_steps: 4, weight_decay: 0.1, clip_grad_norm: 1.0}}
parallelism:
  dp: {{llama: {{cpu: {{DP: 2}}}}, qwen: {{cpu: {{DP: 2}}}}}}
  zero1: {{llama: {{cpu: {{DP: 2, ZeRO: 1}}}}, qwen: {{cpu: {{DP: 2, ZeRO: 1}}}}}}
platform_optimizations: {{cpu: {{precision: fp32}}}}
benchmarking: {{enhanced_metrics: {{hardware_specs: {{cpu_auto: {{peak_tflops_fp32: 1.0e+15,
  peak_tflops_bf16: 1.0e+15}}}}}}}}
"""
SAVERS = """
frameworks:
  deep: {strategy: zero1, offload: optimizer}
  fsdp: {offload: parameters}
  tran: {precision: bf16, optimizer: {moments: bf16, master_weights: false}}
"""


class Suite:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        (folder / "frameworks").mkdir()
        for each in IDS:  # this Python serves all of them
            (folder / "frameworks" / each).symlink_to(sys.prefix)
        self.environment = {**os.environ, "TPRIMAT_FRAMEWORKS": str(folder / "frameworks")}

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            logs = "".join(f"\n{log}:\n" + log.read_text()[-3000:] for log in self.folder.glob("out*/*.log"))
            raise SystemExit(f"{words} failed with {done.returncode}:\n{done.stdout}{done.stderr}{logs}")
        return done.stdout

    def write_config(self, more="", **weights):
        keys = {name: f", initial_weights: {path}" for name, path in weights.items()}
        path = self.folder / ("savers.yaml" if more else "config.yaml")
        path.write_text(CONFIG.format(steps=STEPS, **{"llama": "", "qwen": "", **keys}) + more)
        return path

    def export_weights(self, model):
        """Weights that every framework starts from: ours, random, after one step."""
        config = self.write_config()
        plans = json.loads(self.call("run", "--config", config, "--framework", "native", "--model", model, "--dry-run", "--json"))
        spec = json.loads(plans[0]["files"][0]["content"])
        spec["parallel"] = {"strategy_name": "single"}
        spec["steps"], spec["optimizer"]["warmup_steps"] = 1, 0
        (self.folder / "spec.json").write_text(json.dumps(spec))
        self.call("train", "--spec", self.folder / "spec.json", "--save", self.folder / f"{model}.checkpoint", "--export",
                  self.folder / f"{model}.weights")
        return self.folder / f"{model}.weights"

    def run(self, config, frameworks, *options):
        output = self.folder / f"out_{config.stem}"
        self.call("run", "--config", config, "--framework", frameworks, "--output", output, "--quiet", *options)
        return {path.name: json.loads(path.read_text()) for path in sorted(output.glob("train_*.json"))}


def compare(results, model):
    """The worst relative difference of a loss from the native trainer's, as a share of what is allowed."""
    native = next(r for name, r in results.items() if f"native_{model}" in name)["loss_values"]
    assert len(native) == STEPS
    worst = 0.0
    for name, result in results.items():
        if not name.endswith(f"_{model}.json"):
            continue
        assert result["status"] == "complete", (name, result["status"])
        differences = [abs(a - b) / b for a, b in zip(result["loss_values"], native, strict=True)]
        print(f"{name}: losses within {max(differences):.1e} of native")
        allowed = TOLERANCE if result["precision"] == "fp32" else TOLERANCE_OF_BF16
        worst = max(worst, *(each / allowed for each in differences))
    return worst


def main():
    use_chosen_python()
    if lacks("transformers", "accelerate", "deepspeed"):
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(sys.argv[1], pathlib.Path(folder))
        weights = {model: suite.export_weights(model) for model in ("llama", "qwen")}
        results = suite.run(suite.write_config(**weights), "native,tran,fsdp,deep")
        savers = suite.run(suite.write_config(SAVERS, **weights), "tran,fsdp,deep", "--model", "llama")
        results |= {f"saving_{name}": result for name, result in savers.items()}
        worst = max(compare(results, model) for model in ("llama", "qwen"))
    print(f"{len(results)} results, worst difference {worst:.2f} of what is allowed ({TOLERANCE:.0e}, in bf16 {TOLERANCE_OF_BF16})")
    return 0 if len(results) == 11 and worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
