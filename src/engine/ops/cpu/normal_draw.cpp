#include "ops/reference/normal_draw.h"
#include "device/parallel.h"
#include "ops/op_table.h"

namespace tprimat::engine {
namespace {

template <class T>
void draw_normal(int64_t count, const NormalDraw& draw, T* to) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    NormalDraw part = draw;
    part.skip += begin;
    reference::draw_normal(end - begin, part, to + begin);
  });
}

}  // namespace

void set_cpu_ops(OpsByFormat<NormalDrawOps>& ops) {
  const auto set = [](auto& group) { group = {draw_normal, draw_normal}; };
  ops.set_fast(set);
  set(ops.f64);
}

}  // namespace tprimat::engine
