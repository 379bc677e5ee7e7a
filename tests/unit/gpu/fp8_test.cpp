#include "ops/gpu/fp8_bits.h"

#include <limits>

#include "device/gpu/context.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/reference/fp8.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
class GpuFp8Round : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuFp8Round, GpuTypes);

constexpr Fp8Format k_formats[] = {Fp8Format::e4m3, Fp8Format::e5m2};

// The same bits as the reference in T's own arithmetic.
template <class T>
void expect_rounded(const std::vector<double>& values, Fp8Format format) {
  const auto x = narrowed<T>(values);
  std::vector<T> expected(x.size());
  reference::fp8_round<T>(static_cast<int64_t>(x.size()), x.data(), format, expected.data());
  const DeviceVector<T> from(x);
  auto to = DeviceVector<T>::poisoned(from.size());
  gpu_ops<T>().fp8_round(from.size(), from.data(), format, to.data());
  const auto found = to.download();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(widen(expected[i])))
      ASSERT_TRUE(std::isnan(widen(found[i]))) << "value " << i;
    else
      ASSERT_EQ(widen(found[i]), widen(expected[i])) << "value " << i << ", " << widen(x[i]);
  }
  gpu_ops<T>().fp8_round(from.size(), from.data(), format, from.data());  // in place
  expect_same_bits(from, to);
}

TYPED_TEST(GpuFp8Round, MatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const Fp8Format format : k_formats)
    for (const int64_t count : {0, 1, 7, 8, 2049, 20'011})
      for (const double scale : {1e-4, 1.0, 1000.0}) expect_rounded<T>(draws.of<T>(count, scale), format);
}

// Subnormal numbers of the format, halves between two, all magnitudes down to nothing.
TYPED_TEST(GpuFp8Round, TiesAndSmallNumbersMatchTheReference) {
  using T = TypeParam;
  for (const Fp8Format format : k_formats) {
    std::vector<double> values{fp8_largest(format), 0.0, -0.0};
    for (int exponent = -18; exponent <= 8; ++exponent)
      for (int eighths = 16; eighths < 32; ++eighths) {
        values.push_back(std::ldexp(eighths, exponent - 4));
        values.push_back(-std::ldexp(eighths, exponent - 4));
      }
    expect_rounded<T>(values, format);
  }
}

TYPED_TEST(GpuFp8Round, NothingInfiniteAndNanMatchTheReference) {
  using T = TypeParam;
  const double infinite = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Fp8Format format : k_formats) {
    expect_rounded<T>({0.0, 0.0, -0.0}, format);
    expect_rounded<T>({1.0, infinite, -infinite, 3.3, -500.0, nan}, format);
    expect_rounded<T>({nan, 2.0, -7.0}, format);
    expect_rounded<T>({nan, nan}, format);
    expect_rounded<T>({1e-38, -2e-38, 1e-40}, format);  // the scale is the greatest finite number
  }
}

template <Fp8Format format>
__global__ void round_both_ways(const float* values, float* fast, float* by_arithmetic, int64_t count) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  fast[at] = fp8_nearest<format>(values[at]);
  by_arithmetic[at] = fp8_nearest_by_arithmetic<format>(values[at]);
}

// Where the GPU converts by itself, it does what the arithmetic does.
template <Fp8Format format>
void expect_same_both_ways() {
  Draws draws;
  SCOPED_TRACE(draws.name());
  std::vector<float> values;
  for (const double value : draws.normal(4000, 3.0)) {
    values.push_back(static_cast<float>(value));
    values.push_back(static_cast<float>(std::ldexp(value, -10)));
    values.push_back(static_cast<float>(std::ldexp(value, 14)));
  }
  for (int i = -40; i < 40; ++i) values.push_back(static_cast<float>(std::ldexp(i + 0.5, -11)));
  const auto count = static_cast<int64_t>(values.size());
  const DeviceVector<float> from(values);
  auto fast = DeviceVector<float>::poisoned(count), slow = DeviceVector<float>::poisoned(count);
  launch({dim3(static_cast<unsigned>((count + 63) / 64)), dim3(64), 0, context().stream}, round_both_ways<format>,
         from.data(), fast.data(), slow.data(), count);
  expect_same_bits(fast, slow);
  const auto found = slow.download();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(found[i], reference::fp8_nearest(values[i], format)) << values[i];
}

TEST(GpuFp8Nearest, ConversionAndArithmeticAgree) {
  expect_same_both_ways<Fp8Format::e4m3>();
  expect_same_both_ways<Fp8Format::e5m2>();
}

}  // namespace
}  // namespace tprimat::engine::gpu
