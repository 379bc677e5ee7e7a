"""The fastest matrix product of PyTorch on this processor, of the shapes that `tprimat probe` tries: one line of JSON.

  torch_products.py FORMAT      fp32 or bf16; OMP_NUM_THREADS says how many threads

Plain products, and those of weights that the oneDNN inside PyTorch has packed.
"""

import json
import sys

import torch

import product_windows


def forms_of(x, weight):
    """Name to a product of x and weight (n x k)."""
    forms = {"matmul": lambda: torch.matmul(x, weight.T)}
    if torch.backends.mkldnn.is_available() and x.dtype != torch.float32:  # MKL's are faster in float
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, x.shape[0])
        forms["packed"] = lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return forms


def main():
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]
    with torch.inference_mode():
        print(json.dumps(product_windows.fastest_product(
            lambda m, n, k: forms_of(torch.randn(m, k).to(kind), torch.randn(n, k).to(kind)))))


main()
