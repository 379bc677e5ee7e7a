"""Attention: which implementation computes it, and whether its core is computed again in the backward pass."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable

import torch
from torch.nn.attention import SDPBackend
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

WORDS = {SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.EFFICIENT_ATTENTION: "efficient", SDPBackend.MATH: "math",
         SDPBackend.CUDNN_ATTENTION: "cudnn"}


def choose_implementation() -> str | None:
    """TPRIMAT_FLASH_ATTENTION: `on` leaves PyTorch no kernel but the flash one, `off` multiplies out the whole matrix
    of scores; absent: as Transformers has it."""
    wanted = os.environ.get("TPRIMAT_FLASH_ATTENTION", "")
    if wanted not in ("on", "off", ""):
        raise SystemExit(f"error: TPRIMAT_FLASH_ATTENTION is '{wanted}'; it may be on, off or absent")
    if wanted == "on":
        torch.backends.cuda.enable_math_sdp(False)  # these four hold on every device, whatever their name says
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cuda.enable_flash_sdp(True)
    return {"on": "sdpa", "off": "eager", "": None}[wanted]


def recompute_attention(model: Any) -> None:
    """`recompute: selective` as in Megatron-LM: of each block, the backward pass computes the attention's core again
    (scores, softmax, their product with the values) from queries, keys and values, which are kept."""
    name = model.config._attn_implementation
    eager = getattr(inspect.getmodule(type(model)), "eager_attention_forward", None)
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(name, eager)
    AttentionInterface.register(f"{name}_recomputed", recomputing(attend))
    AttentionMaskInterface.register(f"{name}_recomputed", ALL_MASK_ATTENTION_FUNCTIONS[name])
    model.set_attn_implementation(f"{name}_recomputed")


def recomputing(attend: Callable[..., Any]) -> Callable[..., Any]:
    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any) -> Any:
        core = lambda q, k, v: attend(module, q, k, v, attention_mask, **options)
        return checkpoint(core, query, key, value, use_reentrant=False)
    return attention


def describe_attention(model: Any, length: int, dtype: torch.dtype, device: torch.device) -> str:
    """`eager`, or `sdpa_<kernel>`: the kernel that PyTorch itself picks for the shapes and strides of a sequence."""
    name = model.config._attn_implementation.removesuffix("_recomputed")
    if name != "sdpa":
        return name
    config = model.config
    heads, pairs = config.num_attention_heads, getattr(config, "num_key_value_heads", config.num_attention_heads)
    width, value_width = head_widths(config)
    mask = window_mask(config, length, device)
    shared = pairs if mask is None else heads  # with a mask Transformers repeats keys and values for their query heads
    query, key, value = (
        torch.empty(1, length, count, size, dtype=dtype, device=device, requires_grad=True).transpose(1, 2)
        for count, size in ((heads, width), (shared, width), (shared, value_width)))
    try:
        kernel = torch._fused_sdp_choice(query, key, value, mask, 0.0, mask is None, enable_gqa=shared != heads)
    except RuntimeError as error:
        raise SystemExit(f"error: TPRIMAT_FLASH_ATTENTION is on, and PyTorch has no flash attention for {dtype}, "
                         f"{heads} heads of {width} on {device}; leave it out, or train in bf16: {error}") from error
    return f"sdpa_{WORDS[SDPBackend(kernel)]}"


def head_widths(config: Any) -> tuple[int, int]:
    """Of queries and keys, and of values. With latent attention (DeepSeek) head_dim is the rotary part alone."""
    width = getattr(config, "qk_head_dim", None) or getattr(config, "head_dim", None)
    width = width or config.hidden_size // config.num_attention_heads
    return width, getattr(config, "v_head_dim", None) or width


def window_mask(config: Any, length: int, device: torch.device) -> torch.Tensor | None:
    """Transformers gives SDPA a mask where attention has a window (Mistral); otherwise it is causal without one."""
    window = getattr(config, "sliding_window", None)
    if not window or window >= length:
        return None
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
