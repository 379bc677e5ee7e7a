#!/usr/bin/env python3
"""What `tprimat plan --yaml` prints for a framework that we start, `tprimat run --dry-run` takes.

usage: planned_launches.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile

CASES = [(model, gpus, length, batch) for model, length in (("llama3_8b", 8192), ("llama3.1_70b", 4096), ("llama3.1_405b", 8192), ("qwen2.5_7b", 32768))
         for gpus, batch in ((8, 128), (48, 96), (64, 512), (1024, 1024))]
PLATFORMS = {"nemo": ("H100", "nvd"), "mega": ("H100", "nvd"), "tran": ("H100", "nvd"), "fsdp": ("H100", "nvd"), "tita": ("H100", "nvd"), "prim": ("MI300X", "amd")}


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    planned = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "data", "make", "--prefix", "corpus", "--tokens", "1000", "--vocab", "256"], check=True, capture_output=True, cwd=folder)
        for framework, (gpu, platform) in PLATFORMS.items():
            for model, gpus, length, batch in CASES:
                request = [program, "plan", model, "--gpu", gpu, "--gpus", str(gpus), "--seq", str(length), "--gbs", str(batch), "--framework", framework]
                plan = subprocess.run([*request, "--yaml"], capture_output=True, text=True, cwd=folder)
                if plan.returncode == 1:
                    continue  # nothing fits
                path = pathlib.Path(folder, "planned.yaml")
                path.write_text(plan.stdout)
                run = subprocess.run([program, "run", "--dry-run", "--config", str(path), "--platform", platform, "--framework", framework, "--dataset", "corpus"],
                                     capture_output=True, text=True, cwd=folder)
                planned += 1
                if plan.returncode != 0 or run.returncode != 0:
                    failed += 1
                    print(" ".join(request[1:]), plan.stderr, run.stderr, sep="\n")
    print(f"{planned} plans, {failed} of them refused")
    return 1 if failed or planned < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
