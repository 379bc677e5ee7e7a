"""Routers of a mixture of experts: how evenly they spread a step's tokens over the experts."""

from __future__ import annotations

import re
import sys
from typing import Any

from tprimat.steps import find_ranks

ROUTER_CLASS = re.compile(r"Top[Kk]Router$")  # of Transformers 5: forward returns logits, weights and chosen experts


def find_routers(model: Any) -> list[Any]:
    """One for each layer with experts, in the model's order; none of a dense model or of unknown classes."""
    modules = model.modules() if hasattr(model, "modules") else ()
    return [each for each in modules if ROUTER_CLASS.search(type(each).__name__)
            and type(each).__module__.startswith("transformers.")]


def read_choice(output: Any) -> Any:
    """Of what a router returned: for each token the numbers of its experts, [tokens, per token], or None."""
    chosen: Any = output[2] if isinstance(output, tuple) and len(output) == 3 else None
    integer = chosen is not None and not chosen.is_floating_point() and not chosen.is_complex()
    return chosen if integer and chosen.ndim == 2 else None


def is_recomputing() -> bool:
    """Within the backward pass, which computes a forward pass again."""
    within = getattr(sys.modules["torch"]._C, "_current_graph_task_id", None)
    return within is not None and within() != -1


class LoadCounter:
    """Counts each expert's tokens during training, on the device and without waiting for it."""

    def __init__(self, model: Any) -> None:
        self.routers = find_routers(model)
        self.counts: dict[int, Any] = {}  # of the router with this number
        self.hooks = [router.register_forward_hook(self.make_hook(number)) for number, router in
                      enumerate(self.routers)]

    def make_hook(self, number: int) -> Any:
        def count(router: Any, inputs: Any, output: Any) -> None:
            chosen = read_choice(output)
            if chosen is not None and router.training and not is_recomputing():
                self.add(number, chosen.detach(), output[0].shape[-1])
        return count

    def add(self, number: int, chosen: Any, experts: int) -> None:
        places = chosen.flatten().long()
        if number not in self.counts:
            self.counts[number] = places.new_zeros(experts)
        places = places.to(self.counts[number].device)  # a single process may spread its batch over several GPUs
        self.counts[number].scatter_add_(0, places, sys.modules["torch"].ones_like(places))

    def take(self) -> list[Any]:
        """Tokens of each expert since the last call, over all ranks; one tensor for each layer, and then from zero."""
        counts, self.counts, ranks = [self.counts[each] for each in sorted(self.counts)], {}, find_ranks()
        if ranks is not None and len({len(each) for each in counts}) == 1:
            whole = sys.modules["torch"].stack(counts)
            ranks.all_reduce(whole)
            counts = list(whole)
        return counts

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks = []


def measure_load(counts: list[Any]) -> Any:
    """Tokens of the fullest expert / mean, averaged over the layers: 1 where all have as many. None without layers."""
    loads = [each.max() / each.float().mean().clamp(min=1e-9) for each in counts]
    return sum(loads) / len(loads) if loads else None
