"""Dynamic scaling of the loss for fp16: PyTorch's GradScaler with the experiment's numbers."""

from __future__ import annotations

from typing import Any

import torch


class LossScaler(torch.amp.GradScaler):
    """An overflow halves the scale and leaves the update out, `window` updates without one double it, and the scale
    never falls below `minimum`, which GradScaler does not know: an overflow there ends the training, unless the
    experiment skips what is not finite. With other precisions than fp16 it does nothing."""

    def __init__(self, experiment: Any, device: torch.device) -> None:
        chosen = experiment.loss_scale
        super().__init__(device.type, init_scale=float(chosen.initial), growth_interval=chosen.window,
                         growth_factor=2.0, backoff_factor=0.5, enabled=experiment.precision == "fp16")
        self.minimum = float(chosen.minimum)
        self.goes_on = experiment.anomalies.not_finite == "skip"
        self.skipped = False  # the last update

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        before = self.get_scale()
        super().update(new_scale)
        self.skipped = self.get_scale() < before
        if self.skipped and before <= self.minimum and not self.goes_on:
            raise SystemExit(f"error: a gradient overflows at the least loss scale, {before}; lower the learning rate, "
                             "or lengthen the warm-up")
        if self.get_scale() < self.minimum:
            super().update(self.minimum)

    @property
    def value(self) -> float | None:
        """None where the loss is not scaled."""
        return self.get_scale() if self.is_enabled() else None

    def describe(self) -> dict[str, Any]:
        if not self.is_enabled():
            return {}
        return {"loss_scale.initial": self.get_scale(), "loss_scale.window": self.get_growth_interval(),
                "loss_scale.minimum": self.minimum}
