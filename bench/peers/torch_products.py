"""The fastest matrix product of PyTorch on this processor, of the shapes that `tprimat probe` tries: one line of JSON.

  torch_products.py FORMAT      fp32 or bf16; OMP_NUM_THREADS says how many threads

Plain products, and those of weights that the oneDNN inside PyTorch has packed.
"""

import json
import sys
import time

import torch

SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (2048, 4096, 1024), (2048, 1024, 4096), (2048, 8192, 1024))  # m, n, k
WINDOW_SECONDS, WINDOWS = 0.05, 8


def fastest_seconds(work):
    """Of one repetition, in the fastest of some windows; the first window warms up."""
    best = float("inf")
    for window in range(WINDOWS + 1):
        begin, repetitions = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - begin) < WINDOW_SECONDS:
            work()
            repetitions += 1
        best = min(best, elapsed / repetitions) if window else best
    return best


def forms_of(x, weight):
    """Name to a product of x and weight (n x k)."""
    forms = {"matmul": lambda: torch.matmul(x, weight.T)}
    if torch.backends.mkldnn.is_available() and x.dtype != torch.float32:  # MKL's are faster in float
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, x.shape[0])
        forms["packed"] = lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return forms


def main():
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]
    best = {"flops_per_second": 0.0}
    with torch.inference_mode():
        for m, n, k in SHAPES:
            x, weight = torch.randn(m, k).to(kind), torch.randn(n, k).to(kind)
            for form, work in forms_of(x, weight).items():
                rate = 2.0 * m * n * k / fastest_seconds(work)
                if rate > best["flops_per_second"]:
                    best = {"flops_per_second": rate, "form": form, "shape": [m, n, k]}
    print(json.dumps(best))


main()
