#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "ops/elementwise.h"

#include <hwy/highway.h>

#include <numeric>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
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

void add_range_float(int64_t begin, int64_t end, const float* a, const float* b, float* y) {
  add_range(begin, end, a, b, y);
}
void add_range_bf16(int64_t begin, int64_t end, const bf16* a, const bf16* b, bf16* y) {
  add_range(begin, end, a, b, y);
}
void add_row_float(int64_t begin, int64_t end, const float* x, float* sums) { add_row(begin, end, x, sums); }
void add_row_bf16(int64_t begin, int64_t end, const bf16* x, float* sums) { add_row(begin, end, x, sums); }

// Squares are added in float within a block that is short enough to lose nothing that matters, blocks in double.
double squares_of_range(int64_t begin, int64_t end, const float* x) {
  constexpr int64_t k_block = 4096;
  double sum = 0;
  for (int64_t at = begin; at < end; at += k_block) {
    const int64_t stop = at + k_block < end ? at + k_block : end;
    sum += static_cast<double>(sum_lanes(at, stop, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = load(d, x + i);
      return hn::Mul(v, v);
    }));
  }
  return sum;
}

void narrow_range(int64_t begin, int64_t end, const float* from, bf16* to) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(add_range_float);
HWY_EXPORT(add_range_bf16);
HWY_EXPORT(add_row_float);
HWY_EXPORT(add_row_bf16);
HWY_EXPORT(squares_of_range);
HWY_EXPORT(narrow_range);

template <class T, class Kernel>
void add_parallel(int64_t count, const T* a, const T* b, T* y, Kernel kernel) {
  parallel_ranges(count, [&](int64_t begin, int64_t end, int) { kernel(begin, end, a, b, y); });
}

template <class T, class Kernel>
void add_bias_parallel(int64_t rows, int64_t cols, const T* bias, T* x, Kernel kernel) {
  parallel_ranges(rows, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) kernel(0, cols, x + r * cols, bias, x + r * cols);
  });
}

// Threads share out the columns, so that every sum is made in the order of the rows.
template <class T, class Kernel>
void column_sums_parallel(int64_t rows, int64_t cols, const T* x, float* sums, Kernel kernel) {
  parallel_ranges(cols, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = 0; r < rows; ++r) kernel(begin, end, x + r * cols, sums);
  });
}

}  // namespace

template <>
void add<float>(int64_t count, const float* a, const float* b, float* y) {
  add_parallel(count, a, b, y, HWY_DYNAMIC_DISPATCH(add_range_float));
}
template <>
void add<bf16>(int64_t count, const bf16* a, const bf16* b, bf16* y) {
  add_parallel(count, a, b, y, HWY_DYNAMIC_DISPATCH(add_range_bf16));
}
template <>
void add<double>(int64_t count, const double* a, const double* b, double* y) {
  reference::add(count, a, b, y);
}

template <>
void add_bias<float>(int64_t rows, int64_t cols, const float* bias, float* x) {
  add_bias_parallel(rows, cols, bias, x, HWY_DYNAMIC_DISPATCH(add_range_float));
}
template <>
void add_bias<bf16>(int64_t rows, int64_t cols, const bf16* bias, bf16* x) {
  add_bias_parallel(rows, cols, bias, x, HWY_DYNAMIC_DISPATCH(add_range_bf16));
}
template <>
void add_bias<double>(int64_t rows, int64_t cols, const double* bias, double* x) {
  reference::add_bias(rows, cols, bias, x);
}

template <>
void add_column_sums<float>(int64_t rows, int64_t cols, const float* x, float* sums) {
  column_sums_parallel(rows, cols, x, sums, HWY_DYNAMIC_DISPATCH(add_row_float));
}
template <>
void add_column_sums<bf16>(int64_t rows, int64_t cols, const bf16* x, float* sums) {
  column_sums_parallel(rows, cols, x, sums, HWY_DYNAMIC_DISPATCH(add_row_bf16));
}
template <>
void add_column_sums<double>(int64_t rows, int64_t cols, const double* x, double* sums) {
  reference::add_column_sums(rows, cols, x, sums);
}

template <>
double sum_of_squares<float>(int64_t count, const float* x) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(squares_of_range);
  std::vector<double> partial(static_cast<size_t>(thread_count()), 0.0);
  parallel_ranges(count, [&](int64_t begin, int64_t end, int thread) {
    partial[static_cast<size_t>(thread)] = kernel(begin, end, x);
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}
template <>
double sum_of_squares<double>(int64_t count, const double* x) {
  return reference::sum_of_squares(count, x);
}

template <>
void convert<float>(int64_t count, const float* from, float* to) {
  reference::convert<float>(count, from, to);
}
template <>
void convert<bf16>(int64_t count, const float* from, bf16* to) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(narrow_range);
  parallel_ranges(count, [&](int64_t begin, int64_t end, int) { kernel(begin, end, from, to); });
}
template <>
void convert<double>(int64_t count, const double* from, double* to) {
  reference::convert<double>(count, from, to);
}

}  // namespace tprimat
#endif  // HWY_ONCE
