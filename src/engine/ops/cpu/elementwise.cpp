#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "ops/elementwise.h"

#include <hwy/highway.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "device/parallel.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/reference/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

template <class T>
void add_range(int64_t begin, int64_t end, const T* a, const T* b, T* y) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Add(load(d, a + i), load(d, b + i)), y + i); });
}

template <class T>
void scale_range(int64_t begin, int64_t end, float factor, T* x) {
  for_lanes(begin, end,
            [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Mul(load(d, x + i), hn::Set(d, factor)), x + i); });
}

template <class T>
void add_row(int64_t begin, int64_t end, const T* x, float* sums) {
  for_lanes(begin, end,
            [&](auto d, int64_t c) HWY_ATTR { store(d, hn::Add(load(d, x + c), load(d, sums + c)), sums + c); });
}

// Both directions: one of From and To is float.
template <class From, class To>
void convert_range(int64_t begin, int64_t end, const From* from, To* to) {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
}

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

// 0·x is NaN where x is NaN or infinite.
bool finite_range(int64_t begin, int64_t end, const float* x) {
  return sum_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, x + i), hn::Zero(d)); }) ==
         0.0f;
}

#define TPRIMAT_KERNELS(T)                                                                                             \
  void add_range_##T(int64_t begin, int64_t end, const T* a, const T* b, T* y) { add_range<T>(begin, end, a, b, y); }  \
  void scale_range_##T(int64_t begin, int64_t end, float factor, T* x) { scale_range<T>(begin, end, factor, x); }      \
  void add_row_##T(int64_t begin, int64_t end, const T* x, float* sums) { add_row<T>(begin, end, x, sums); }           \
  void narrow_range_##T(int64_t begin, int64_t end, const float* from, T* to) { convert_range(begin, end, from, to); } \
  void widen_range_##T(int64_t begin, int64_t end, const T* from, float* to) { convert_range(begin, end, from, to); }
TPRIMAT_KERNELS(float)
TPRIMAT_KERNELS(bf16)
TPRIMAT_KERNELS(f16)
#undef TPRIMAT_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {
namespace {

HWY_EXPORT(squares_of_range);
HWY_EXPORT(finite_range);

template <class T, class Kernel>
void add_bias_parallel(int64_t rows, int64_t cols, const T* bias, T* x, Kernel kernel) {
  parallel_ranges(rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(0, cols, x + r * cols, bias, x + r * cols);
  });
}

// Threads share out the columns, so that every sum is made in the order of the rows.
template <class T, class Kernel>
void column_sums_parallel(int64_t rows, int64_t cols, const T* x, float* sums, Kernel kernel) {
  parallel_ranges(cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rows; ++r) kernel(begin, end, x + r * cols, sums);
  });
}

}  // namespace

#define TPRIMAT_ELEMENTWISE(T)                                                                                      \
  HWY_EXPORT(add_range_##T);                                                                                        \
  HWY_EXPORT(scale_range_##T);                                                                                      \
  HWY_EXPORT(add_row_##T);                                                                                          \
  HWY_EXPORT(narrow_range_##T);                                                                                     \
  HWY_EXPORT(widen_range_##T);                                                                                      \
  template <>                                                                                                       \
  void add<T>(int64_t count, const T* a, const T* b, T* y) {                                                        \
    const auto kernel = HWY_DYNAMIC_DISPATCH(add_range_##T);                                                        \
    parallel_ranges(count, [&](int64_t begin, int64_t end) { kernel(begin, end, a, b, y); });                       \
  }                                                                                                                 \
  template <>                                                                                                       \
  void scale_in_place<T>(int64_t count, double factor, T* x) {                                                      \
    const auto kernel = HWY_DYNAMIC_DISPATCH(scale_range_##T);                                                      \
    parallel_ranges(count, [&](int64_t begin, int64_t end) { kernel(begin, end, static_cast<float>(factor), x); }); \
  }                                                                                                                 \
  template <>                                                                                                       \
  void add_bias<T>(int64_t rows, int64_t cols, const T* bias, T* x) {                                               \
    add_bias_parallel(rows, cols, bias, x, HWY_DYNAMIC_DISPATCH(add_range_##T));                                    \
  }                                                                                                                 \
  template <>                                                                                                       \
  void add_column_sums<T>(int64_t rows, int64_t cols, const T* x, float* sums) {                                    \
    column_sums_parallel(rows, cols, x, sums, HWY_DYNAMIC_DISPATCH(add_row_##T));                                   \
  }                                                                                                                 \
  template <>                                                                                                       \
  void convert<T>(int64_t count, const float* from, T* to) {                                                        \
    const auto kernel = HWY_DYNAMIC_DISPATCH(narrow_range_##T);                                                     \
    parallel_ranges(count, [&](int64_t begin, int64_t end) { kernel(begin, end, from, to); });                      \
  }                                                                                                                 \
  template <>                                                                                                       \
  void widen_all<T>(int64_t count, const T* from, float* to) {                                                      \
    const auto kernel = HWY_DYNAMIC_DISPATCH(widen_range_##T);                                                      \
    parallel_ranges(count, [&](int64_t begin, int64_t end) { kernel(begin, end, from, to); });                      \
  }
TPRIMAT_ELEMENTWISE(float)
TPRIMAT_ELEMENTWISE(bf16)
TPRIMAT_ELEMENTWISE(f16)
#undef TPRIMAT_ELEMENTWISE

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
bool all_finite<float>(int64_t count, const float* x) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(finite_range);
  std::atomic<bool> finite = true;
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    if (!kernel(begin, end, x)) finite = false;
  });
  return finite;
}

template <>
void add<double>(int64_t count, const double* a, const double* b, double* y) {
  reference::add(count, a, b, y);
}
template <>
void scale_in_place<double>(int64_t count, double factor, double* x) {
  reference::scale_in_place(count, factor, x);
}
template <>
void add_bias<double>(int64_t rows, int64_t cols, const double* bias, double* x) {
  reference::add_bias(rows, cols, bias, x);
}
template <>
void add_column_sums<double>(int64_t rows, int64_t cols, const double* x, double* sums) {
  reference::add_column_sums(rows, cols, x, sums);
}
template <>
double sum_of_squares<double>(int64_t count, const double* x) {
  return reference::sum_of_squares(count, x);
}
template <>
bool all_finite<double>(int64_t count, const double* x) {
  return reference::all_finite(count, x);
}
template <>
void convert<double>(int64_t count, const double* from, double* to) {
  reference::convert<double>(count, from, to);
}
template <>
void widen_all<double>(int64_t count, const double* from, double* to) {
  reference::widen_all<double>(count, from, to);
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
