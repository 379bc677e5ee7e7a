#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/op_table.h"
#include "ops/reference/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
void add_range(int64_t begin, int64_t end, const T* a, const T* b, T* y) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Add(load(d, a + i), load(d, b + i)), y + i); });
}

template <class T>
void add_row(int64_t begin, int64_t end, const T* x, float* sums) {
  for_lanes(begin, end,
            [&](auto d, int64_t c) HWY_ATTR { store(d, hn::Add(load(d, x + c), load(d, sums + c)), sums + c); });
}

// Both directions: one of From and To is float.
template <class From, class To>
void convert_range(int64_t begin, int64_t end, const From* from, To* to) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { store_exactly(d, load(d, from + i), to + i); });
}

// Squares are added in float within a block that is short enough to lose nothing that matters, blocks in double.
double squares_of_range(int64_t begin, int64_t end, const float* x) {
  constexpr int64_t k_block = 4096;
  double sum = 0;
  for (int64_t at = begin; at < end; at += k_block) {
    const int64_t stop = at + k_block < end ? at + k_block : end;
    sum += static_cast<double>(sum_lanes(at, stop, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = load_in_order(d, x + i);
      return hn::Mul(v, v);
    }));
  }
  return sum;
}

// 0·x is NaN where x is NaN or infinite.
bool finite_range(int64_t begin, int64_t end, const float* x) {
  return sum_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, x + i), hn::Zero(d)); }) ==
         0.0f;
}

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) { add_range(begin, end, a, b, y); });
}

template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x) {
  parallel_rows(rows, [&](int64_t r) { add_range(0, cols, x + r * cols, bias, x + r * cols); });
}

// Threads share out the columns, so that every sum is made in the order of the rows.
template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, float* sums) {
  parallel_ranges(cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rows; ++r) add_row(begin, end, x + r * cols, sums);
  });
}

template <class From, class To>
void convert(int64_t count, const From* from, To* to) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) { convert_range(begin, end, from, to); });
}

double sum_of_squares(std::span<const SquaresRange<float>> ranges) {
  double sum = 0;
  for (const SquaresRange<float>& range : ranges) {
    std::vector<double> partial(static_cast<size_t>(thread_count()), 0.0);
    parallel_ranges(range.count, [&](int64_t begin, int64_t end, int thread) {
      partial[static_cast<size_t>(thread)] = squares_of_range(begin, end, range.values);
    });
    sum += std::accumulate(partial.begin(), partial.end(), 0.0);
  }
  return sum;
}

bool are_finite(int64_t count, const float* x) {
  std::atomic<bool> finite = true;
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    if (!finite_range(begin, end, x)) finite = false;
  });
  return finite;
}

void widen_bf16(int64_t count, const bf16* from, float* to) { convert(count, from, to); }
void widen_f16(int64_t count, const f16* from, float* to) { convert(count, from, to); }

void elementwise(OpsByFormat<ElementwiseOps>& ops) {
  ops.set_fast([]<class T>(ElementwiseOps<T>& fast) {
    fast = {add<T>, add<float>, add_bias<T>, add_column_sums<T>, convert<float, T>, sum_of_squares};
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(elementwise);
HWY_EXPORT(are_finite);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_f16);

bool all_finite(int64_t count, const float* x) { return HWY_DYNAMIC_DISPATCH(are_finite)(count, x); }

template <>
void widen_all(int64_t count, const bf16* from, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(count, from, to);
}
template <>
void widen_all(int64_t count, const f16* from, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(count, from, to);
}

void set_cpu_ops(OpsByFormat<ElementwiseOps>& ops) {
  HWY_DYNAMIC_DISPATCH(elementwise)(ops);
  ops.f64 = {reference::add,
             reference::add,
             reference::add_bias,
             reference::add_column_sums,
             reference::convert<double>,
             reference::sum_of_squares};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
