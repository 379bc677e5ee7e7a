"""What platforms and frameworks are called: the program's own names, and those that it accepts besides."""

from __future__ import annotations

PLATFORMS = ("nvd", "amd", "cpu")
PLATFORM_ALIASES = {"nvidia": "nvd", "cuda": "nvd", "rocm": "amd"}
FRAMEWORKS = ("nemo", "mega", "deep", "tran", "fsdp", "tita", "prim", "mgds", "native")
FRAMEWORK_ALIASES = {"primus": "prim", "megatron": "mega", "megatron-lm": "mega", "deepspeed": "deep",
                     "transformers": "tran", "torchtitan": "tita", "megatron-deepspeed": "mgds",
                     "megatron_deepspeed": "mgds"}


def name_platform(name: str) -> str:
    """nvd for nvidia and cuda, amd for rocm; any other name as it is."""
    return PLATFORM_ALIASES.get(name.lower(), name)


def name_framework(name: str) -> str:
    """prim for Primus; any other name as it is."""
    return FRAMEWORK_ALIASES.get(name.lower(), name)
