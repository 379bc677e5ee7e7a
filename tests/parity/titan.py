#!/usr/bin/env python3
"""torchtitan trains as the native trainer does: same weights, same tokens, and the losses and gradient norms of every step agree.

  titan.py TPRIMAT

A small Llama, a Qwen 2.5 (bias, tied head) and a Qwen 3 (norms on queries and keys) on one to four ranks of the processor, with gloo:
FSDP2, tensor parallelism with its sequence parallelism and pipelines, alone and together, in fp32 and bf16. Also the settings that the
adapter reads back, and random initial weights, which do not depend on the layout. Small mixtures of experts (Mixtral, Qwen 3, DeepSeek-V3)
train alike in every layout; titan_experts.py compares their models with those of Hugging Face. TPRIMAT_PYTHON names the Python to use. Exit status:
0 all agree, 1 not all, 77 torchtitan is not installed there.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

STEPS, TOLERANCE, TOLERANCE_OF_BF16 = 8, 1e-5, 0.01  # relative
MODELS = {"llama": "", "qwen": ", qkv_bias: true, tied_embeddings: true", "qwen3": ", qk_norm: true"}
LAYOUTS = {"alone": (1, "DP: 1"), "dp": (2, "DP: 2, ZeRO: 3"), "zero2": (2, "DP: 2, ZeRO: 2"), "tp": (2, "TP: 2, SP: true"),
           "pp": (2, "PP: 2"), "vp": (2, "PP: 2, VP: 2"), "pp_dp": (4, "PP: 2, DP: 2, ZeRO: 3"), "tp_dp": (4, "TP: 2, DP: 2, ZeRO: 3, SP: true")}
# Model, layout, number format
CASES = [("llama", "alone", "fp32"), ("llama", "zero2", "fp32"), ("llama", "pp", "fp32"), ("llama", "vp", "fp32"), ("llama", "pp_dp", "bf16"),
         ("llama", "tp_dp", "bf16"), ("qwen", "dp", "fp32"), ("qwen", "tp", "fp32"), ("qwen3", "dp", "fp32"), ("llama", "alone", "bf16")]
# Key-value heads, traits and layouts of mixtures of experts. Those with a bias move it after every step.
EXPERTS = "experts: {{count: 8, per_token: 2, ffn_hidden_size: 48{}}}"
SPARSE = {"mixtral": (2, ", " + EXPERTS.format(", balancing: bias"), ["alone", "zero2"]),
          "qwen3_moe": (2, ", qk_norm: true, " + EXPERTS.format(", layer_interval: 2"), ["alone", "dp"]),
          "deepseek": (4, ", latent_attention: {query_rank: 32, key_value_rank: 24, rope_head_dim: 8, value_head_dim: 16}, " + EXPERTS.format(
              ", first_dense_layers: 1, shared_ffn_hidden_size: 96, router_score: sigmoid, weight_scale: 2.5, balancing: bias, groups: 4, "
              "groups_per_token: 2"), ["alone", "dp"])}

CONFIG = """
experiment: {{name: titan, methodology: {layout}}}
hardware: {{platforms: {{cpu: {{num_gpus: {ranks}}}}}}}
models:
  {model}: {{num_layers: 4, hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, num_key_value_heads: {key_heads}, head_dim: 16,
            vocab_size: 511, max_position_embeddings: 128{traits}}}
training:
  data: {{seq_length: 64, micro_batch_size: 2, global_batch_size: 8}}
  duration: {{max_steps: {steps}}}
  optimizer: {{learning_rate: 0.002, warmup_steps: 3, weight_decay: 0.1, clip_grad_norm: 1.0}}
parallelism: {{{layout}: {{{model}: {{cpu: {{{sizes}}}}}}}}}
platform_optimizations: {{cpu: {{precision: {precision}}}}}
"""
ASKED = {"framework": "tita", "max_steps": "8", "sequence_length": "64", "micro_batch_size": "2", "global_batch_size": "8", "optimizer":
         "adamw", "schedule": "cosine", "warmup_steps": "3", "weight_decay": "0.1", "clip_grad_norm": "1.0", "recompute": "none", "seed": "42"}


class Runs:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        (folder / "frameworks").mkdir()
        (folder / "frameworks" / "tita").symlink_to(sys.prefix)
        self.environment = {**os.environ, "TPRIMAT_FRAMEWORKS": str(folder / "frameworks")}
        self.weights = {model: self.export_weights(model) for model in MODELS}

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            logs = "".join(f"\n{log}:\n" + log.read_text()[-5000:] for log in self.folder.glob("out*/*.log"))
            raise SystemExit(f"{words} failed with {done.returncode}:\n{done.stdout}{done.stderr}{logs}")
        return done.stdout

    def write_config(self, model, layout, precision, weights=None):
        key_heads, sparse_traits, _ = SPARSE.get(model, (2, "", []))
        traits = MODELS.get(model, sparse_traits) + (f", initial_weights: {weights}" if weights else "")
        ranks, sizes = LAYOUTS[layout]
        path = self.folder / "config.yaml"
        path.write_text(CONFIG.format(model=model, layout=layout, precision=precision, traits=traits, sizes=sizes, steps=STEPS,
                                      ranks=ranks, key_heads=key_heads))
        return path

    def export_weights(self, model):
        """Ours, random, after one step."""
        config = self.write_config(model, "alone", "fp32")
        plans = json.loads(self.call("run", "--config", config, "--framework", "native", "--dry-run", "--json"))
        spec = json.loads(plans[0]["files"][0]["content"])
        spec["steps"], spec["optimizer"]["warmup_steps"] = 1, 0
        (self.folder / "spec.json").write_text(json.dumps(spec))
        self.call("train", "--spec", self.folder / "spec.json", "--save", self.folder / f"{model}.checkpoint", "--export",
                  self.folder / f"{model}.weights")
        return self.folder / f"{model}.weights"

    def train(self, framework, model, layout, precision, *options, random=False):
        output = self.folder / f"out_{framework}_{model}_{layout}_{precision}_{random}"
        config = self.write_config(model, layout, precision, None if random else self.weights[model])
        self.call("run", "--config", config, "--framework", framework, "--output", output, "--quiet", *options)
        result = json.loads(next(output.glob("train_*.json")).read_text())
        assert result["status"] == "complete" and len(result["loss_values"]) == STEPS, result["status"]
        return result, next(output.glob("*.log")).read_text()


def worst_of(values, wanted):
    return max(abs(value / right - 1) for value, right in zip(values, wanted, strict=True))


def compare(runs, model, layout, precision):
    """How far losses, gradient norms and rates are from the native trainer's, as a share of what is allowed."""
    native, _ = runs.train("native", model, "alone", precision)
    titan, log = runs.train("tita", model, layout, precision)
    allowed = TOLERANCE if precision == "fp32" else TOLERANCE_OF_BF16
    loss, norm = (worst_of(titan[key], native[key]) for key in ("loss_values", "grad_norms"))
    rate = worst_of(titan["learning_rates"], native["learning_rates"])
    print(f"{model} {layout} {precision}: losses within {loss:.1e} of native, gradient norms {norm:.1e}, rates {rate:.1e}", flush=True)
    settings = dict(line.split(" ", 2)[1:] for line in log.splitlines() if line.startswith("setting "))
    for key, value in ASKED.items():
        assert settings.get(key) == value, f"{key} is {settings.get(key)} instead of {value}"
    assert settings["precision"] == precision, settings["precision"]
    assert [entry["key"] for entry in titan.get("config_audit", []) if entry["asked"] is not None] == [], titan["config_audit"]
    return max(loss / allowed, norm / (10 * allowed), rate / 1e-6)


def compare_layouts(runs, model):
    """How far the losses of a mixture of experts are between its layouts, as a share of what is allowed; also the load of experts and what
    the adapter reads back."""
    losses, loads = [], []
    for layout in SPARSE[model][2]:
        result, log = runs.train("tita", model, layout, "fp32", random=True)
        losses.append(result["loss_values"])
        loads.append([json.loads(line)["expert_load"] for line in next((runs.folder / f"out_tita_{model}_{layout}_fp32_True").rglob(
            "steps.jsonl")).read_text().splitlines()])
        settings = dict(line.split(" ", 2)[1:] for line in log.splitlines() if line.startswith("setting "))
        wanted = {"routing": "learned", "dispatcher": "alltoall", "expert_model_parallel_size": "1", "moe_router_topk": "2"}
        assert {key: settings.get(key) for key in wanted} == wanted, settings
    assert all(1 <= load <= 8 for values in loads for load in values), loads
    loss, load = (max(worst_of(values, several[0]) for values in several) for several in (losses, loads))
    print(f"{model} {' '.join(SPARSE[model][2])}: losses within {loss:.1e} of each other, loads {load:.1e}", flush=True)
    return max(loss / TOLERANCE, load / 0.02)  # a token more or less of a full expert


def main():
    use_chosen_python()
    if importlib.util.find_spec("torchtitan") is None:
        print(f"skipped: {sys.executable} has no torchtitan: pip install -r frameworks/requirements/tita.txt, or name another in TPRIMAT_PYTHON")
        return 77
    with tempfile.TemporaryDirectory(prefix="tprimat_titan_") as folder:
        runs = Runs(sys.argv[1], pathlib.Path(folder))
        worst = max([compare(runs, *case) for case in CASES] + [compare_layouts(runs, model) for model in SPARSE])
        first = [runs.train("tita", "llama", layout, "fp32", random=True)[0]["loss_values"] for layout in ("alone", "tp_dp")]
        layouts = max(worst_of(losses, first[0]) for losses in first)
    print(f"worst difference {worst:.2f} of what is allowed; from random weights the layouts are within {layouts:.1e}")
    return 0 if worst <= 1 and layouts <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
