#include "ops/reference/elementwise.h"
#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
class GpuElementwise : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuElementwise, GpuTypes);

// Around packs, and more than all threads take at once.
const std::vector<int64_t> k_counts = {0, 1, 7, 8, 9, 255, 2048, 70'001, 600'003};

TYPED_TEST(GpuElementwise, AddMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const int64_t count : k_counts) {
    SCOPED_TRACE(count);
    const auto a = draws.of<T>(count), b = draws.of<T>(count, 3.0);
    std::vector<double> sum(a.size());
    for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    sum = rounded<T>(sum);
    const auto first = on_device<T>(a), second = on_device<T>(b);
    auto to = DeviceVector<T>::poisoned(count);
    gpu_ops<T>().add(count, first.data(), second.data(), to.data());
    EXPECT_EQ(widened(to.download()), sum);
    gpu_ops<T>().add(count, first.data(), second.data(), second.data());  // in place
    expect_same_bits(second, to);
  }
}

TYPED_TEST(GpuElementwise, AddTakesAddressesBetweenPacks) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const auto a = draws.of<T>(1000), b = draws.of<T>(1000);
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  const Shifted<T> first(a), second(b);
  gpu_ops<T>().add(1000, first.data(), second.data(), first.data());
  EXPECT_EQ(first.download(), rounded<T>(sum));
  EXPECT_EQ(widened(first.memory.download())[0], 0.0);
}

TYPED_TEST(GpuElementwise, AddBiasMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {700, 16}, {3, 2056}, {33, 37}}) {
    SCOPED_TRACE(cols);
    const auto before = draws.of<T>(rows * cols), bias = draws.of<T>(cols);
    auto x = before;
    reference::add_bias<double>(rows, cols, bias.data(), x.data());
    const auto values = on_device<T>(before), added = on_device<T>(bias);
    gpu_ops<T>().add_bias(rows, cols, added.data(), values.data());
    EXPECT_EQ(widened(values.download()), rounded<T>(x));
  }
}

TYPED_TEST(GpuElementwise, ColumnSumsMatchTheReferenceAndRepeat) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {5, 8}, {1000, 16}, {3, 2056}, {333, 37}, {2500, 300}}) {
    SCOPED_TRACE(cols);
    const auto x = draws.of<T>(rows * cols), before = draws.of<float>(cols);
    auto sums = before;
    reference::add_column_sums<double>(rows, cols, x.data(), sums.data());
    const auto values = on_device<T>(x);
    const auto totals = on_device<float>(before), again = on_device<float>(before);
    gpu_ops<T>().add_column_sums(rows, cols, values.data(), totals.data());
    gpu_ops<T>().add_column_sums(rows, cols, values.data(), again.data());
    expect_each_close(totals, sums);
    expect_same_bits(totals, again);
  }
}

TYPED_TEST(GpuElementwise, ConvertRoundsAsTheProcessorDoes) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const int64_t count : k_counts) {
    SCOPED_TRACE(count);
    const auto from = draws.of<float>(count, 100.0);
    const auto values = on_device<float>(from);
    auto to = DeviceVector<T>::poisoned(count);
    gpu_ops<T>().convert(count, values.data(), to.data());
    EXPECT_EQ(to.download(), narrowed<T>(from));
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu
