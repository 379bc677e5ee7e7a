"""The fastest matrix product of a oneDNN library, of the shapes that `tprimat probe` tries: one line of JSON.

  onednn_products.py LIBRARY THREADS FORMAT      LIBRARY: the path of libdnnl.so.3; FORMAT: fp32 or bf16

It calls the C API of oneDNN 3: weights as they lie, n x k, and as the library packs them.
"""

import array
import ctypes
import json
import os
import random
import sys

import product_windows

# Of dnnl_types.h and dnnl_common_types.h.
CPU, IN_ORDER, ANY_TAG, WEIGHTS_DESCRIPTION = 1, 1, 1, 131
TYPES = {"bf16": 2, "fp32": 3}
SOURCE, RESULT, WEIGHTS = 1, 17, 33
ALLOCATE = ctypes.c_void_p(-1)


class Argument(ctypes.Structure):
    _fields_ = [("which", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Version(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("major", "minor", "patch")]


class OneDnn:
    def __init__(self, path, kind):
        self.library, self.kind = ctypes.CDLL(path), TYPES[kind]
        self.library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.library.dnnl_version.restype = ctypes.POINTER(Version)
        if (major := self.library.dnnl_version().contents.major) != 3:
            sys.exit(f"error: {path} is oneDNN {major}; this program calls the functions of oneDNN 3")
        self.engine = self.made("dnnl_engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.made("dnnl_stream_create", self.engine, IN_ORDER)

    def version(self):
        found = self.library.dnnl_version().contents
        return f"{found.major}.{found.minor}.{found.patch}"

    def call(self, name, *arguments):
        if (status := getattr(self.library, name)(*arguments)) != 0:
            sys.exit(f"error: oneDNN's {name} failed with status {status}")

    def made(self, name, *arguments):
        """The handle that a function of oneDNN returns through its first argument."""
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def matrix(self, rows, columns, strides):
        pair = ctypes.c_int64 * 2
        return self.made("dnnl_memory_desc_create_with_strides", 2, pair(rows, columns), self.kind, pair(*strides))

    def memory(self, description):
        return self.made("dnnl_memory_create", description, self.engine, ALLOCATE)

    def filled(self, description, count):
        """With normal random numbers: simpler ones can raise the processor's clock."""
        memory, data = self.memory(description), ctypes.c_void_p()
        self.call("dnnl_memory_get_data_handle", memory, ctypes.byref(data))
        numbers = array.array("f", (random.gauss(0, 1) for _ in range(9973)))
        if self.kind == TYPES["bf16"]:
            numbers = array.array("H", numbers.tobytes())[1::2]  # the upper halves
        numbers *= count // len(numbers) + 1
        ctypes.memmove(data, numbers.tobytes(), count * numbers.itemsize)
        return memory

    def execute(self, primitive, arguments):
        given = (Argument * len(arguments))(*[Argument(which, memory) for which, memory in arguments.items()])
        self.call("dnnl_primitive_execute", primitive, self.stream, len(arguments), given)
        self.call("dnnl_stream_wait", self.stream)

    def product(self, left, weights, result):
        return self.made("dnnl_matmul_primitive_desc_create", self.engine, left, weights, None, result, None)

    def primitive(self, description):
        return self.made("dnnl_primitive_create", description)

    def packed(self, plain, plain_memory, wanted):
        memory = self.memory(wanted)
        reorder = self.made("dnnl_reorder_primitive_desc_create", plain, self.engine, wanted, self.engine, None)
        self.execute(self.primitive(reorder), {SOURCE: plain_memory, RESULT: memory})
        return memory

    def forms_of_shape(self, m, n, k):
        left, weights, result = self.matrix(m, k, (k, 1)), self.matrix(k, n, (1, k)), self.matrix(m, n, (n, 1))
        x, w, y = self.filled(left, m * k), self.filled(weights, n * k), self.memory(result)
        plain = self.primitive(self.product(left, weights, result))
        any_layout = self.made("dnnl_memory_desc_create_with_tag", 2, (ctypes.c_int64 * 2)(k, n), self.kind, ANY_TAG)
        description = self.product(left, any_layout, result)
        fast = self.primitive(description)
        wanted = ctypes.c_void_p(self.library.dnnl_primitive_desc_query_md(description, WEIGHTS_DESCRIPTION, 0))
        packed = self.packed(weights, w, wanted)
        return {"as they lie": lambda: self.execute(plain, {SOURCE: x, WEIGHTS: w, RESULT: y}),
                "packed": lambda: self.execute(fast, {SOURCE: x, WEIGHTS: packed, RESULT: y})}


def main():
    library, threads, kind = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])  # oneDNN starts a thread on each
    peer = OneDnn(library, kind)
    print(json.dumps({**product_windows.fastest_product(peer.forms_of_shape), "version": peer.version()}))


main()
