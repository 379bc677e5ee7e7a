#!/usr/bin/env python3
"""Writes a trace as PyTorch's profiler does: a few steps of a model of two layers on one GPU.

usage: why_trace.py FILE [product=US] [attention=US] [gap=US] [data=US] [copies=N] [steps=N] [slow=STEP] [size=N]

product: duration of a matrix product; gap: the host's time between launches; data: of the data loader; copies: copies
per layer that nothing else has; slow: a step that takes 5 ms more; size: of the matrices.
"""

import json
import sys

DEFAULTS = {"product": 400, "attention": 300, "gap": 4, "data": 200, "copies": 0, "steps": 5, "slow": -1, "size": 4096}


class Writer:
    def __init__(self, settings):
        self.__dict__.update(settings)
        self.events, self.host, self.device, self.number = [], 1000.0, 0.0, 0

    def add(self, category, name, begin, length, lane, **arguments):
        pid, tid = (0, 7) if lane == "stream" else (100, 100)
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": begin,
                            "dur": length, "args": arguments})

    def launch(self, operation, kernel, length, shapes, jitter):
        """An operation that launches a kernel; the device works through them in order."""
        self.number += 1
        begin, self.host = self.host, self.host + self.gap + 3
        self.add("cpu_op", operation, begin, 3, "host", **{"External id": self.number, "Input Dims": shapes,
                                                           "Input type": ["c10::BFloat16"] * len(shapes)})
        self.add("cuda_runtime", "cudaLaunchKernel", begin + 1, 1.5, "host", correlation=self.number,
                 **{"External id": self.number})
        start = max(self.device, begin + 5)
        self.device = start + length + jitter
        self.add("kernel", kernel, start, length + jitter, "stream", device=0, stream=7, correlation=self.number,
                 **{"External id": self.number})

    def layer(self, jitter):
        n = self.size
        self.launch("aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", self.product, [[n, n], [n, n]], jitter)
        self.launch("aten::_flash_attention_forward", "pytorch_flash::flash_fwd_kernel", self.attention,
                    [[1, 32, n, 128]] * 3, 0)
        self.launch("aten::add", "at::native::vectorized_elementwise_kernel<4, add>", 60, [[n, n], [n, n]], 0)
        for _ in range(self.copies):
            self.launch("aten::clone", "at::native::transpose_copy_kernel", 80, [[n, n]], 0)

    def step(self, number):
        begin, jitter = self.host, 0.25 * (number * 7 % 5)
        self.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", self.host, self.data,
                 "host")
        self.host += self.data
        for _ in range(2):
            self.layer(jitter)
        self.host = max(self.host, self.device) + 10 + (5000 if number == self.slow else 0)
        self.add("user_annotation", f"ProfilerStep#{number}", begin, self.host - begin, "host")

    def write(self, file):
        for number in range(3, 3 + self.steps):
            self.step(number)
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
                       "traceEvents": self.events}, out)


def main():
    given = dict(word.split("=") for word in sys.argv[2:])
    unknown = given.keys() - DEFAULTS.keys()
    if unknown:
        sys.exit(f"error: unknown {unknown}")
    Writer({name: int(given.get(name, value)) for name, value in DEFAULTS.items()}).write(sys.argv[1])


main()
