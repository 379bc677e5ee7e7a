"""What this machine is, as far as Python sees it: platform, device, software. What nobody states stays absent."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import subprocess
import sys
from importlib import metadata
from typing import Any

PACKAGES = ("torch", "transformers", "accelerate", "lightning", "pytorch-lightning", "nemo-toolkit", "megatron-core",
            "transformer-engine", "deepspeed", "flash-attn", "triton", "datasets", "peft", "numpy")
VARIABLES = ("OMP_", "KMP_", "MKL_", "GOMP_", "CUDA_", "HIP_", "ROCR_", "HSA_", "NCCL_", "RCCL_", "NVTE_",
             "TORCH_NCCL_", "PYTORCH_")
SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|KEY", re.IGNORECASE)

Facts = dict[str, Any]


def known(facts: Facts) -> Facts:
    """Without what is not known: None and the empty text."""
    return {key: value for key, value in facts.items() if value is not None and value != ""}


def read_text(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def find_platform(device: Any) -> str | None:
    """nvd, amd or cpu, of the device that trains; None for another kind."""
    kind = getattr(device, "type", None)
    if kind == "cuda":  # the type of ROCm's devices too
        return "amd" if getattr(sys.modules["torch"].version, "hip", None) else "nvd"
    return "cpu" if kind == "cpu" else None


def find_processor() -> str:
    """As tprimat detect names it. Of Arm's processors the kernel gives numbers, and lscpu knows the names."""
    named = re.search(r"^(?:model name|cpu model)\s*:\s*(.+)$", read_text("/proc/cpuinfo"), re.MULTILINE)
    if named and not named.group(1).startswith("ARMv"):  # "ARMv8 Processor rev 1 (v8l)" names none
        return named.group(1).strip()
    try:
        listed = subprocess.run(["lscpu"], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True).stdout
    except OSError:
        listed = ""
    names = dict.fromkeys(re.findall(r"^ *Model name: *(\w.*)$", listed, re.MULTILINE))
    return " + ".join(names) or platform.processor()


def count_threads() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def read_memory_gb() -> float | None:
    """Of the machine, or the container's limit where that is less. GB = 1e9 bytes."""
    total = re.search(r"^MemTotal:\s*(\d+) kB", read_text("/proc/meminfo"), re.MULTILINE)
    limit = read_text("/sys/fs/cgroup/memory.max").strip()
    sizes = ([int(total.group(1)) * 1024] if total else []) + ([int(limit)] if limit.isdigit() else [])
    return min(sizes) / 1e9 if sizes else None


def read_peak_memory_gb() -> float | None:
    """The most memory that this process held so far, GB."""
    peak = re.search(r"^VmHWM:\s*(\d+) kB", read_text("/proc/self/status"), re.MULTILINE)
    return int(peak.group(1)) * 1024 / 1e9 if peak else None


def describe_device(device: Any, count: int) -> Facts:
    """gpu_info of a result. The number of a GPU's cores is none of PyTorch's facts, so it is absent."""
    torch: Any = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    facts: Facts = {"device_count": count, "pytorch_version": version and str(version)}
    where = find_platform(device)
    if where == "cpu":
        facts |= {"device_name": find_processor(), "total_memory_gb": read_memory_gb(), "software_stack": "cpu"}
    elif where is not None:
        gpu = torch.cuda.get_device_properties(device)
        versions = {"nvd": ("cuda", torch.version.cuda), "amd": ("rocm", getattr(torch.version, "hip", None))}
        facts |= {"device_name": gpu.name, "total_memory_gb": gpu.total_memory / 1e9}
        facts["software_stack"], facts["software_version"] = versions[where]
    return {"device_name": "", **known(facts)}


def describe_environment(device: Any) -> dict[str, str]:
    """The fingerprint of machine and software, under the program's names."""
    facts: Facts = {"cpu": find_processor(), "cpu_threads_usable": count_threads(), "architecture": platform.machine(),
                    "kernel": f"{platform.system()} {platform.release()}", "python": platform.python_version()}
    torch = sys.modules.get("torch")
    if torch is not None and find_platform(device) == "cpu":
        facts["cpu_threads_used"] = torch.get_num_threads()
    driver = re.search(r"Kernel Module.*?\s(\d+\.\d+[\d.]*)\s", read_text("/proc/driver/nvidia/version"))
    facts["driver_nvml"] = driver.group(1) if driver else None
    for package in PACKAGES:
        facts[package] = find_version(package)
    for name, value in os.environ.items():
        if name.startswith(VARIABLES) and not SECRET.search(name):
            facts[f"env.{name}"] = value
    return {key: str(value) for key, value in known(facts).items()}


def find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
