#!/usr/bin/env python3
"""Mixtures of experts in Transformers, FSDP2 and DeepSpeed: their losses agree with those of a plain PyTorch loop.

  moe.py TPRIMAT

Small Mixtral, Qwen3-MoE and DeepSeek-V3 shapes in fp32, from the same weights, on two data-parallel ranks. `tprimat run --dry-run`
writes what each training gets; the adapters then train from it, all in processes that one Python forks, because its imports take
longer than a training. The loop beside them has its own losses of balance and its own bias. Further trainings compute blocks again,
share the weights (ZeRO-3), and balance the load by force. TPRIMAT_PYTHON names the Python to use. Exit status: 0 they agree, 1 they
do not, 77 a framework is not installed there.
"""

import importlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import traceback

from chosen_python import SKIPPED, lacks, use_chosen_python

STEPS, RANKS, TOLERANCE = 20, 2, 1e-5  # relative, of every step's loss
FRAMEWORKS = ("tran", "fsdp", "deep")

CONFIG = """
experiment: {{name: experts, methodology: dp}}
hardware: {{platforms: {{cpu: {{num_gpus: 2}}}}}}
models:
  mixtral: {{num_layers: 2, {common}, num_key_value_heads: 2, head_dim: 16, experts: {{count: 4, per_token: 2,
             ffn_hidden_size: 96, balancing: aux_loss, aux_loss_coefficient: 0.02, z_loss_coefficient: 0.001}}}}
  qwen: {{num_layers: 3, {common}, num_key_value_heads: 2, head_dim: 24, qk_norm: true, tied_embeddings: true,
          experts: {{count: 8, per_token: 3, ffn_hidden_size: 48, first_dense_layers: 1, balancing: sequence_aux_loss,
          aux_loss_coefficient: 0.01}}}}
  deepseek: {{num_layers: 3, {common}, num_key_value_heads: 4, head_dim: 16, latent_attention: {{query_rank: 32,
              key_value_rank: 24, rope_head_dim: 8, value_head_dim: 12}}, experts: {{count: 8, per_token: 2,
              ffn_hidden_size: 40, shared_ffn_hidden_size: 80, first_dense_layers: 1, router_score: sigmoid,
              weight_scale: 2.5, groups: 4, groups_per_token: 2, balancing: bias}}}}
training:
  data: {{seq_length: 64, micro_batch_size: 2, global_batch_size: 8}}
  duration: {{max_steps: {steps}}}
  optimizer: {{learning_rate: 0.002, warmup_steps: 4, weight_decay: 0.1, clip_grad_norm: 1.0}}
parallelism:
  dp: {{mixtral: {{cpu: {{DP: 2}}}}, qwen: {{cpu: {{DP: 2}}}}, deepseek: {{cpu: {{DP: 2}}}}}}
platform_optimizations: {{cpu: {{precision: fp32}}}}
benchmarking: {{enhanced_metrics: {{hardware_specs: {{cpu_auto: {{peak_tflops_fp32: 1.0e+15}}}}}}}}
"""
COMMON = "hidden_size: 64, ffn_hidden_size: 160, num_attention_heads: 4, vocab_size: 512, max_position_embeddings: 128, norm_eps: 1.0e-6"


def read_plans(program, folder):
    """{(framework, model): spec} of what the suite would start, its files written below `folder`."""
    (folder / "frameworks").mkdir()
    for each in FRAMEWORKS:  # this Python serves all of them
        (folder / "frameworks" / each).symlink_to(sys.prefix)
    (folder / "config.yaml").write_text(CONFIG.format(steps=STEPS, common=COMMON))
    words = [program, "run", "--config", folder / "config.yaml", "--framework", ",".join(FRAMEWORKS), "--output", folder / "out",
             "--dry-run", "--json"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                          env={**os.environ, "TPRIMAT_FRAMEWORKS": str(folder / "frameworks")})
    assert done.returncode == 0, done.stderr
    places = {}
    for plan in json.loads(done.stdout):
        files = {pathlib.Path(each["path"]): each["content"] for each in plan["files"]}
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        spec = next(path for path in files if path.name == "train_spec.json")
        places[plan["run"].split()[0], json.loads(files[spec])["model"]["name"]] = spec
    return places


def change_spec(path, name, **changes):
    """The experiment once more, with other settings; `name` is a folder beside it."""
    folder = path.parent / name
    folder.mkdir()
    for key, value in changes.items():
        assert key not in ("parallel", "checkpoint") or isinstance(value, dict)
    spec = json.loads(path.read_text())
    for key, value in changes.items():
        spec[key] = {**spec[key], **value} if isinstance(value, dict) else value
    (folder / "train_spec.json").write_text(json.dumps(spec))
    (folder / "config.json").write_bytes((path.parent / "config.json").read_bytes())
    return folder / "train_spec.json"


def fork(function, log, environment):
    """A child with the modules that are loaded already; its output goes to `log`."""
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        with open(log, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ.update(environment)
        function()
        status = 0
    except BaseException as error:
        status = 0 if isinstance(error, SystemExit) and not error.code else 1
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


def wait(children):
    """children: {pid: log}"""
    for child, log in children.items():
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit(f"{log}:\n{log.read_text()[-4000:]}")


def train(framework, spec):
    """All ranks of one training by an adapter's own main(); its step records."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    main = importlib.import_module(f"train_{framework}").main
    steps = spec.parent / "steps.jsonl"

    def run():
        sys.argv = [framework, "--spec", str(spec)]
        main()

    wait({fork(run, spec.parent / f"rank{rank}.log", {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TPRIMAT_STEPS": str(steps), "TORCHELASTIC_RUN_ID": str(port)}): spec.parent / f"rank{rank}.log"
        for rank in range(RANKS)})
    return [json.loads(line) for line in steps.read_text().splitlines()]


def save_weights(config, folder):
    """Random weights. Routers get larger ones, so that loads are uneven and near ties rare."""
    import torch
    import transformers
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(config.parent), dtype=torch.float32)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("gate.weight"):
                weight.mul_(20)
    model.save_pretrained(folder)


class Twin:
    """The training as a plain loop over Transformers' model, on one process, with the whole batch."""

    def __init__(self, spec, weights, program):
        import numpy
        import torch
        import transformers
        self.torch, self.spec = torch, json.loads(spec.read_text())
        self.shape = self.spec["model"]["experts"]
        subprocess.run([program, "data", "samples", "--spec", str(spec), "--output", str(weights / "samples.npy")], check=True)
        self.samples = torch.from_numpy(numpy.load(weights / "samples.npy").astype(numpy.int64))
        self.model = transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32).train()
        self.gates = [module for name, module in self.model.named_modules() if name.endswith("mlp.gate")]
        self.seen = []
        for gate in self.gates:
            gate.register_forward_hook(lambda module, inputs, output: self.seen.append((output[0], output[2])))
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        chosen = self.spec["optimizer"]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": chosen["weight_decay"]},
             {"params": [p for p in self.model.parameters() if p.ndim <= 1], "weight_decay": 0.0}],
            betas=(chosen["beta1"], chosen["beta2"]), eps=chosen["epsilon"])

    def rate(self, step):
        chosen, steps = self.spec["optimizer"], self.spec["steps"]
        if step <= chosen["warmup_steps"]:
            return chosen["learning_rate"] * step / chosen["warmup_steps"]
        done = (step - chosen["warmup_steps"]) / (steps - chosen["warmup_steps"])
        cosine = (1 + self.torch.cos(self.torch.tensor(done * self.torch.pi, dtype=self.torch.float64)).item()) / 2
        return chosen["min_learning_rate"] + (chosen["learning_rate"] - chosen["min_learning_rate"]) * cosine

    def balance(self, logits, chosen, sequences):
        """Switch, equation 4, over all tokens of a micro-batch, or over each sequence."""
        torch, shape = self.torch, self.shape
        if shape["balancing"] not in ("aux_loss", "sequence_aux_loss"):
            return 0.0
        scores = torch.softmax(logits, dim=-1)
        picked = torch.nn.functional.one_hot(chosen, shape["count"]).sum(dim=1).float()
        parts = 1 if shape["balancing"] == "aux_loss" else sequences
        losses = [shape["count"] / shape["per_token"] * (f.mean(dim=0) * p.mean(dim=0)).sum()
                  for f, p in zip(picked.chunk(parts), scores.chunk(parts), strict=True)]
        return shape["aux_loss_coefficient"] * sum(losses) / parts

    def step(self, number):
        torch, size = self.torch, self.spec["micro_batch_size"]
        batch = self.samples[(number - 1) * self.spec["global_batch_size"]:number * self.spec["global_batch_size"]]
        micro = batch.split(size)
        figures = {"loss": 0.0, "aux_loss": 0.0, "z_loss": 0.0}
        counts = [torch.zeros(self.shape["count"]) for _ in self.gates]
        for tokens in micro:
            self.seen.clear()
            logits = self.model(input_ids=tokens[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            aux = sum(self.balance(*each, size) for each in self.seen)
            z = self.shape["z_loss_coefficient"] * sum(torch.logsumexp(each, -1).pow(2).mean() for each, _ in self.seen)
            ((loss + aux + z) / len(micro)).backward()
            for name, part in (("loss", loss), ("aux_loss", aux), ("z_loss", z)):
                figures[name] += float(part) / len(micro)
            for count, (_, chosen) in zip(counts, self.seen, strict=True):
                count += torch.bincount(chosen.flatten(), minlength=self.shape["count"])
        figures["grad_norm"] = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.spec["optimizer"]["clip_grad_norm"]))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(number)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.shape["balancing"] == "bias":
            for gate, count in zip(self.gates, counts, strict=True):
                gate.e_score_correction_bias += 0.001 * torch.sign(count.mean() - count)
        return {**figures, "expert_load": float(sum(count.max() / count.mean() for count in counts) / len(counts))}

    def run(self, path):
        path.write_text(json.dumps([self.step(number) for number in range(1, self.spec["steps"] + 1)]))


class Comparison:
    def __init__(self):
        self.worst = 0.0

    def compare(self, title, records, twin, steps=STEPS):
        assert len(records) == steps <= len(twin) == STEPS, (title, len(records))
        pairs = list(zip(records, twin))
        worst = max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in pairs)
        norms = max([abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in pairs if "grad_norm" in a], default=0.0)
        loads = max(abs(a["expert_load"] - b["expert_load"]) for a, b in pairs)
        print(f"{title}: losses within {worst:.1e}, gradient norms {norms:.1e}, loads {loads:.1e} (1.. {twin[0]['expert_load']:.2f}"
              f" to {twin[-1]['expert_load']:.2f})")
        for a, b in pairs:
            assert a["dropped_share"] == 0
            for name in ("aux_loss", "z_loss"):
                assert abs(a.get(name, 0.0) - b[name]) <= 1e-5 * max(b[name], 1e-3), (title, name, a, b)
        self.worst = max(self.worst, worst)


def compare_all(places, folder, program):
    models = sorted({model for _, model in places})
    for model in models:
        spec, weights = places["fsdp", model], folder / f"weights_{model}"
        wait({fork(lambda: save_weights(spec, weights), folder / "weights.log", {}): folder / "weights.log"})
    changed = {key: change_spec(path, "from_weights", checkpoint={"initial_weights": str(folder / f"weights_{key[1]}")})
               for key, path in places.items()}
    twins = {}
    for model in models:
        spec, path = changed["fsdp", model], folder / f"{model}.json"
        wait({fork(lambda: Twin(spec, folder / f"weights_{model}", program).run(path), folder / "twin.log", {}): folder / "twin.log"})
        twins[model] = json.loads(path.read_text())
    comparison = Comparison()
    for (framework, model), spec in sorted(changed.items()):
        comparison.compare(f"{framework} {model}", train(framework, spec), twins[model])
    again = change_spec(changed["fsdp", "qwen"], "recompute", recompute="full", parallel={"zero_stage": 3})
    comparison.compare("fsdp qwen, recompute full", train("fsdp", again), twins["qwen"])
    shared = change_spec(changed["deep", "mixtral"], "zero3", parallel={"zero_stage": 3})
    comparison.compare("deep mixtral, ZeRO-3", train("deep", shared), twins["mixtral"])
    forced = train("tran", change_spec(changed["tran", "deepseek"], "forced", routing="balanced", steps=5))
    loads = [record["expert_load"] for record in forced]
    print(f"tran deepseek, forced balance: loads {loads}")
    assert loads == [1.0] * 5 and min(record["expert_load"] for record in twins["deepseek"]) > 1.05, "balance is not forced"
    return comparison.worst


def main():
    os.environ.update(OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu", HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    use_chosen_python()
    if lacks("transformers", "accelerate", "deepspeed"):
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = os.path.abspath(sys.argv[1])
        os.environ["TPRIMAT_PROGRAM"] = program
        places = read_plans(program, folder)
        assert len(places) == 9, sorted(places)
        for framework in FRAMEWORKS:  # the sources that the suite writes beside a run
            sys.path.insert(0, str(places[framework, "qwen"].parent / "adapter"))
            importlib.import_module(f"train_{framework}")
        worst = compare_all(places, folder, program)
    print(f"worst difference of a loss {worst:.1e}, {TOLERANCE:.0e} is allowed")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
