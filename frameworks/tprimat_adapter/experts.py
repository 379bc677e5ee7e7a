"""Training of a mixture of experts: the losses and the bias that keep the load even, forced balance, and the figures of
a step. With a dense model nothing here does anything."""

from __future__ import annotations

from typing import Any

import torch

from tprimat.routers import LoadCounter, find_routers, is_recomputing, measure_load, read_choice

BIAS_RATE = 0.001  # arXiv 2408.15664, section 4.1; Megatron-LM's --moe-router-bias-update-rate
BIAS = "e_score_correction_bias"  # of a router in Transformers: added to the scores where experts are chosen

Choice = tuple[torch.Tensor, torch.Tensor]  # a layer's logits [tokens, experts] and its choice [tokens, per token]


class Experts:
    """Made before a framework wraps the model, so that hooks see each router's own output."""

    def __init__(self, model: Any, experiment: Any) -> None:
        self.shape, self.routers = getattr(experiment.model, "experts", None), find_routers(model)
        check_routers(self.routers, experiment.model)
        self.sequences, self.accumulation = experiment.micro_batch_size, experiment.accumulation
        self.choices: list[Choice] = []  # of the micro-batch
        self.sums: dict[str, torch.Tensor] = {}  # losses of the step
        self.biases: list[torch.Tensor] = []
        self.routing = getattr(experiment, "routing", "learned")
        if self.routing == "balanced":
            self.hook(deal_out)  # before the others, which see what it returns
        self.coefficients = read_coefficients(self.shape)
        if self.coefficients:
            self.hook(self.remember)
        self.counter = LoadCounter(model)

    def hook(self, function: Any) -> None:
        for router in self.routers:
            router.register_forward_hook(function)

    def remember(self, router: Any, inputs: Any, output: Any) -> None:
        if router.training and not is_recomputing():
            self.choices.append((output[0], read_choice(output)))

    def add_losses(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to be trained on, of the micro-batch whose forward pass has just ended."""
        choices, self.choices = self.choices, []
        for name, coefficient in self.coefficients.items():
            part = coefficient * sum(self.measure(name, *each) for each in choices)
            self.sums[name] = self.sums.get(name, 0.0) + part.detach() / self.accumulation
            loss = loss + part
        return loss

    def measure(self, name: str, logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        if name == "z_loss":
            return logits.float().logsumexp(dim=-1).square().mean()
        groups = 1 if self.shape.balancing == "aux_loss" else self.sequences
        return balance_loss(logits, chosen, self.shape.router_score, groups)

    def end_step(self, updated: bool = True) -> dict[str, Any]:
        """The step's figures, on the device, over all ranks. `updated`: the optimizer took the step."""
        if not self.routers:
            return {}
        counts = self.counter.take()
        if self.shape.balancing == "bias" and updated:
            self.move_biases(counts)
        sums, self.sums = self.sums, {}
        return {"expert_load": measure_load(counts), "dropped_share": 0.0,  # Transformers' experts take every token
                **{name: mean_over_ranks(each) for name, each in sums.items()}}

    @torch.no_grad()
    def move_biases(self, counts: list[torch.Tensor]) -> None:
        """Each expert's bias rises where it had fewer tokens than the mean, and falls where it had more. It stays in
        fp32, whatever format the framework has put the router's buffers into."""
        self.biases = self.biases or [getattr(router, BIAS).detach().float().clone() for router in self.routers]
        for router, bias, count in zip(self.routers, self.biases, counts, strict=True):
            load = count.to(torch.float64)
            bias += BIAS_RATE * torch.sign(load.mean() - load).to(bias)
            getattr(router, BIAS).copy_(bias)

    def describe(self) -> dict[str, Any]:
        """Settings that hold: each rank computes all experts of its tokens."""
        if not self.routers:
            return {}
        return {"num_experts": getattr(self.routers[0], "num_experts", None),
                "moe_router_topk": getattr(self.routers[0], "top_k", None), "routing": self.routing,
                "expert_model_parallel_size": 1, "expert_tensor_parallel_size": 1}


def check_routers(routers: list[Any], model: Any) -> None:
    """Weights from a folder bring a config.json of their own."""
    shape = getattr(model, "experts", None)
    expected = (model.num_layers - shape.first_dense_layers) // shape.layer_interval if shape else 0
    found = {(each.weight.shape[0], each.top_k) for each in routers}
    if len(routers) != expected or found - {(shape.count, shape.per_token) if shape else None}:
        raise SystemExit(f"error: the model has {len(routers)} layers with known routers, (experts, experts per token) "
                         f"{sorted(found)}, but the experiment has {expected} layers"
                         + (f" with ({shape.count}, {shape.per_token})" if shape else "")
                         + "; use initial_weights of the experiment's shape, and Transformers 5")
    if shape and shape.balancing == "bias" and not all(hasattr(each, BIAS) for each in routers):
        raise SystemExit(f"error: balancing is bias, but these routers have no {BIAS}; choose aux_loss or none")


def read_coefficients(shape: Any) -> dict[str, float]:
    """Of the losses that the shape asks for. Beside the bias there may be one too (arXiv 2412.19437, eq. 17)."""
    if shape is None:
        return {}
    asked = {"aux_loss": shape.aux_loss_coefficient if shape.balancing != "none" else 0.0,
             "z_loss": shape.z_loss_coefficient}
    return {name: coefficient for name, coefficient in asked.items() if coefficient}


def balance_loss(logits: torch.Tensor, chosen: torch.Tensor, score: str, groups: int) -> torch.Tensor:
    """experts x sum over experts of (its share of the choices) x (its mean score), 1 where both are even: of all tokens
    together (arXiv 2101.03961, eq. 4), or the mean over as many groups of tokens (arXiv 2405.04434, eq. 23)."""
    experts = logits.shape[-1]
    scores = logits.float().softmax(dim=-1) if score == "softmax" else normalize(logits.float().sigmoid())
    places = chosen.reshape(groups, -1).long()
    counts = scores.new_zeros(groups, experts).scatter_add_(1, places, torch.ones_like(places, dtype=scores.dtype))
    means = scores.reshape(groups, -1, experts).mean(dim=1)
    return experts * (counts / places.shape[1] * means).sum(dim=-1).mean()


def normalize(scores: torch.Tensor) -> torch.Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def deal_out(router: Any, inputs: Any, output: Any) -> Any:
    """Forced balance: places go to the experts in turn, so that no two of a token are the same and no expert has more
    than one place above another. The weights are the router's own, so that it is trained at the same cost."""
    logits, weights, chosen = output
    turns = torch.arange(chosen.numel(), device=chosen.device, dtype=chosen.dtype) % logits.shape[-1]
    return logits, weights, turns.view_as(chosen)


def mean_over_ranks(figure: torch.Tensor) -> torch.Tensor:
    if torch.distributed.is_initialized():
        torch.distributed.all_reduce(figure)
        figure = figure / torch.distributed.get_world_size()
    return figure
