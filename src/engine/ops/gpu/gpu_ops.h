#pragma once

// The operations on a GPU, with the contracts of ops/<op>.h, in float, bf16 and f16; every pointer is the device's.
#include "ops/op_table.h"

namespace tprimat::engine::gpu {

// Each is defined in <op>.cu or matmul.cpp.
void set_ops(OpsByFormat<MatmulOps>& ops);
void set_ops(OpsByFormat<AttentionOps>& ops);
void set_ops(OpsByFormat<RopeOps>& ops);
void set_ops(OpsByFormat<HeadNormOps>& ops);
void set_ops(OpsByFormat<RmsNormOps>& ops);
void set_ops(OpsByFormat<LayerNormOps>& ops);
void set_ops(OpsByFormat<SwigluOps>& ops);
void set_ops(OpsByFormat<GeluOps>& ops);
void set_ops(OpsByFormat<EmbeddingOps>& ops);
void set_ops(OpsByFormat<CrossEntropyOps>& ops);
void set_ops(OpsByFormat<ElementwiseOps>& ops);
void set_ops(OpsByFormat<NormalDrawOps>& ops);
void set_ops(OpsByFormat<MemoryOps>& ops);
void set_ops(OpsByFormat<Fp8Ops>& ops);
void set_ops(OpsByFormat<Fp8ProductOps>& ops);
void set_ops(OpsByFormat<AdamwOps>& ops);
void set_ops(OpsByFormat<CompactAdamwOps>& ops);

// The product of fp8_quantize.cu's group (fp8_matmul.cpp).
template <class C>
void fp8_matmul(const Fp8Product<C>& product);

template <class T>
const OpTable<T>& gpu_ops() {
  static const auto table = OpTable<T>::filled_by([](auto& ops) { set_ops(ops); });
  return table;
}

}  // namespace tprimat::engine::gpu
