"""The model: its shape from config.json beside the experiment, or the weights of a Hugging Face folder."""

import pathlib

import torch
import transformers


def make_model(experiment, spec_path):
    """In fp32 and on the processor; autocast does the rest. Without a folder the weights are random, from the seed."""
    torch.manual_seed(experiment.seed)
    folder = experiment.checkpoint.initial_weights
    if folder:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    config = transformers.AutoConfig.from_pretrained(pathlib.Path(spec_path).parent, local_files_only=True)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def parameter_groups(model, weight_decay):
    """Matrices decay; norms and biases do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [{"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0}]


def make_optimizer(model, optimizer):
    return torch.optim.AdamW(parameter_groups(model, optimizer.weight_decay), lr=optimizer.learning_rate,
                             betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.epsilon)


def mean_loss(model, tokens):
    """The mean over all positions, in nats. The logits become fp32 first, as in the native trainer."""
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def print_settings(framework, experiment, optimizer):
    """What the optimizer and the loop really hold, one line each in the log."""
    group = optimizer.param_groups[0]
    settings = {"framework": framework, "micro_batch_size": experiment.micro_batch_size,
                "global_batch_size": experiment.global_batch_size, "sequence_length": experiment.sequence_length,
                "steps": experiment.steps, "precision": experiment.precision, "weight_decay": group["weight_decay"],
                "beta1": group["betas"][0], "beta2": group["betas"][1], "epsilon": group["eps"], "seed": experiment.seed}
    for name, value in settings.items():
        print(f"setting {name} {value}", flush=True)
