#include <cstring>
#include <limits>

#include "ops/gpu/gpu_ops.h"
#include "ops/reference/elementwise.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

std::vector<uint8_t> random_bytes(Draws& draws, size_t count) {
  const auto values = draws.integers(static_cast<int64_t>(count), 0, 255);
  return {values.begin(), values.end()};
}

TEST(GpuMemory, ClearsTheBytesStatedAndNoOthers) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const size_t bytes : {0u, 1u, 15u, 16u, 4096u, 100'003u}) {
    const auto before = random_bytes(draws, bytes + 8);
    const DeviceVector<uint8_t> memory(before);
    gpu_ops<float>().clear(memory.data() + 3, bytes);
    auto expected = before;
    std::fill_n(expected.begin() + 3, bytes, uint8_t{0});
    EXPECT_EQ(memory.download(), expected);
  }
}

TEST(GpuMemory, ClearsManyRangesAndNothingBetween) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  std::vector<int64_t> counts = {0, 1, 3, 8192, 8193, 100'001, 4, 20'000};
  counts.resize(300, 5);  // more than one call's parameters take
  int64_t all = 0;
  for (const int64_t count : counts) all += count + 2;
  const auto before = narrowed<float>(draws.of<float>(all));
  const DeviceVector<float> memory(before);
  auto expected = before;
  std::vector<ClearRange<float>> ranges;
  int64_t at = 1;
  for (const int64_t count : counts) {
    ranges.push_back({memory.data() + at, count});
    std::fill_n(expected.begin() + at, count, 0.0f);
    at += count + 2;
  }
  gpu_ops<float>().clear_ranges(ranges);
  EXPECT_EQ(memory.download(), expected);
  gpu_ops<float>().clear_ranges({});
  EXPECT_EQ(memory.download(), expected);
}

struct CopyCase {
  int64_t rows;
  size_t row_bytes, from_stride, to_stride, from_offset, to_offset;
};

// Rows of 16, 4, 2 and 1 bytes at a time, without gaps and with, one row, none.
TEST(GpuMemory, CopiesRowsAndLeavesGaps) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  const std::vector<CopyCase> cases = {
      {5, 64, 80, 96, 0, 0},   {5, 64, 64, 64, 0, 16},         {7, 12, 20, 16, 4, 8},        {3, 10, 14, 12, 2, 2},
      {4, 7, 9, 11, 1, 3},     {1, 1000, 0, 0, 8, 16},         {0, 16, 16, 16, 0, 0},        {3, 0, 16, 16, 0, 0},
      {900, 16, 32, 16, 0, 0}, {2, 70000, 70016, 70000, 0, 0}, {300, 4096, 4112, 4096, 0, 0}};
  for (const CopyCase& c : cases) {
    SCOPED_TRACE(c.row_bytes);
    const auto rows = static_cast<size_t>(c.rows);
    const auto source = random_bytes(draws, c.from_offset + rows * c.from_stride + c.row_bytes + 16);
    const auto before = random_bytes(draws, c.to_offset + rows * c.to_stride + c.row_bytes + 16);
    auto expected = before;
    for (size_t r = 0; r < rows; ++r)
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(c.from_offset + r * c.from_stride), c.row_bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(c.to_offset + r * c.to_stride));
    const DeviceVector<uint8_t> from(source), to(before);
    gpu_ops<float>().copy(
        {from.data() + c.from_offset, to.data() + c.to_offset, c.rows, c.row_bytes, c.from_stride, c.to_stride});
    EXPECT_EQ(to.download(), expected);
  }
}

TEST(GpuMemory, FindsOwnRows) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const int64_t count : {0, 1, 1000, 70'000}) {
    const auto rows = draws.integers(count, 0, 99);
    const DeviceVector<int32_t> from(rows);
    auto own = DeviceVector<int32_t>::poisoned(count);
    gpu_ops<float>().own_rows(count, from.data(), 30, 20, own.data());
    const auto found = own.download();
    for (size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(found[i], rows[i] >= 30 && rows[i] < 50 ? rows[i] - 30 : -1) << rows[i];
  }
}

TEST(GpuMemory, AddsATotalInDouble) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const int64_t count : {0, 1, 300, 5000, 70'001}) {
    SCOPED_TRACE(count);
    auto values = draws.of<float>(count);
    if (count > 1) values[0] = 3e7;  // a float would lose the others
    double expected = 0.25;
    for (const double value : values) expected += value;
    const auto from = on_device<float>(values);
    const DeviceVector<double> total(std::vector<double>{0.25}), again(std::vector<double>{0.25});
    gpu_ops<float>().add_total(count, from.data(), total.data());
    gpu_ops<float>().add_total(count, from.data(), again.data());
    EXPECT_NEAR(total.download()[0], expected, 1e-7 * std::abs(expected) / 3e3);
    expect_same_bits(total, again);
  }
}

TEST(GpuMemory, AddsSquaresOfManyRanges) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  std::vector<int64_t> counts = {0, 1, 3, 8192, 8193, 100'001, 4, 20'000};
  counts.resize(300, 5);  // more than one call's parameters take
  std::vector<DeviceVector<float>> memory;
  std::vector<SquaresRange<float>> ranges;
  double expected = 0;
  for (const int64_t count : counts) {
    const auto values = draws.of<float>(count + 1);
    const int64_t first = static_cast<int64_t>(ranges.size()) % 2;  // between packs too
    memory.push_back(on_device<float>(values));
    ranges.push_back({memory.back().data() + first, count});
    const SquaresRange<double> exact{values.data() + first, count};
    expected += reference::sum_of_squares<double>({&exact, 1});
  }
  const double found = gpu_ops<float>().sum_of_squares(ranges);
  EXPECT_NEAR(found, expected, 1e-12 * expected);
  EXPECT_EQ(found, gpu_ops<float>().sum_of_squares(ranges));
  EXPECT_EQ(gpu_ops<float>().sum_of_squares({}), 0.0);
}

TEST(GpuMemory, SquaresOfNanAndOfInfinityAreFound) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(20'000, 1.0f);
    values[19'999] = value;
    const DeviceVector<float> memory(values);
    const SquaresRange<float> range{memory.data(), memory.size()};
    EXPECT_FALSE(std::isfinite(gpu_ops<float>().sum_of_squares(std::span(&range, 1))));
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu
