#pragma once

#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/fp8.h"
#include "ops/fp8_product.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/matmul.h"
#include "ops/memory.h"
#include "ops/normal_draw.h"
#include "ops/ops_by_format.h"
#include "ops/rmsnorm.h"
#include "ops/rope.h"
#include "ops/swiglu.h"

namespace tprimat::engine {

// Groups of operations side by side. set_ops(OpsByFormat<Group>&) fills in one group as the device has it.
template <class T, template <class> class... Groups>
struct OpGroups : Groups<T>... {
  template <class SetOps>
  static OpGroups filled_by(const SetOps& set_ops) {
    return {filled_group<Groups>(set_ops)...};
  }

 private:
  template <template <class> class Group, class SetOps>
  static Group<T> filled_group(const SetOps& set_ops) {
    OpsByFormat<Group> ops;
    set_ops(ops);
    return ops.template of<T>();
  }
};

// Every operation of a training in number format T as one device does it; contracts and formulas stand in the header of
// each. All pointers point into the device's memory, unless said otherwise. A GPU does the work later, in the order of
// the calls: what a call only reads, it may still be reading when it returns.
template <class T>
using OpTable = OpGroups<T, MatmulOps, AttentionOps, RopeOps, HeadNormOps, RmsNormOps, LayerNormOps, SwigluOps, GeluOps,
                         EmbeddingOps, CrossEntropyOps, ElementwiseOps, NormalDrawOps, MemoryOps, Fp8Ops, Fp8ProductOps,
                         AdamwOps, CompactAdamwOps>;

// The processor's: each is defined in cpu/<op>.cpp.
void set_cpu_ops(OpsByFormat<MatmulOps>& ops);
void set_cpu_ops(OpsByFormat<AttentionOps>& ops);
void set_cpu_ops(OpsByFormat<RopeOps>& ops);
void set_cpu_ops(OpsByFormat<HeadNormOps>& ops);
void set_cpu_ops(OpsByFormat<RmsNormOps>& ops);
void set_cpu_ops(OpsByFormat<LayerNormOps>& ops);
void set_cpu_ops(OpsByFormat<SwigluOps>& ops);
void set_cpu_ops(OpsByFormat<GeluOps>& ops);
void set_cpu_ops(OpsByFormat<EmbeddingOps>& ops);
void set_cpu_ops(OpsByFormat<CrossEntropyOps>& ops);
void set_cpu_ops(OpsByFormat<ElementwiseOps>& ops);
void set_cpu_ops(OpsByFormat<NormalDrawOps>& ops);
void set_cpu_ops(OpsByFormat<MemoryOps>& ops);
void set_cpu_ops(OpsByFormat<Fp8Ops>& ops);
inline void set_cpu_ops(OpsByFormat<Fp8ProductOps>&) {}
void set_cpu_ops(OpsByFormat<AdamwOps>& ops);
void set_cpu_ops(OpsByFormat<CompactAdamwOps>& ops);

// As the best instruction set does them that may be used.
template <class T>
OpTable<T> find_cpu_ops() {
  limit_kernels();
  return OpTable<T>::filled_by([](auto& ops) { set_cpu_ops(ops); });
}

template <class T>
const OpTable<T>& cpu_ops() {
  static const OpTable<T> table = find_cpu_ops<T>();
  return table;
}

}  // namespace tprimat::engine
