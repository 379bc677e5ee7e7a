#include "ops/normal_draw.h"

#include "device/parallel.h"
#include "ops/reference/normal_draw.h"

namespace tprimat::engine {

template <class T>
void draw_normal(int64_t count, const NormalDraw& draw, T* to) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    NormalDraw part = draw;
    part.skip += begin;
    reference::draw_normal(end - begin, part, to + begin);
  });
}
template void draw_normal(int64_t, const NormalDraw&, float*);
template void draw_normal(int64_t, const NormalDraw&, bf16*);
template void draw_normal(int64_t, const NormalDraw&, f16*);
template void draw_normal(int64_t, const NormalDraw&, double*);

}  // namespace tprimat::engine
