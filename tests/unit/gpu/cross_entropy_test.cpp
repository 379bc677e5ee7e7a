#include "ops/reference/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>

#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

constexpr double k_scale = 1.0 / 64.0;

template <class T>
class GpuCrossEntropy : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuCrossEntropy, GpuTypes);

struct CrossEntropySize {
  int64_t rows, vocab;
};
// Whole packs and not, less than a warp, more than the threads of a block take at once, more rows than blocks.
const std::vector<CrossEntropySize> k_cross_entropy_sizes = {{0, 8},    {1, 1},    {3, 5},      {2, 64},
                                                             {300, 24}, {3, 1000}, {2, 20'008}, {2, 9'001}};

struct CrossEntropyCase {
  CrossEntropyCase(Draws& draws, const CrossEntropySize& size)
      : shape{size.rows, size.vocab},
        logits(draws.of<float>(size.rows * size.vocab, 5.0)),
        targets(draws.integers(size.rows, 0, static_cast<int32_t>(size.vocab - 1))),
        losses(static_cast<size_t>(size.rows)),
        dlogits(logits.size()) {
    auto copy = logits;
    reference::cross_entropy<double>(shape, {copy.data(), targets.data(), k_scale, losses.data(), dlogits.data()});
  }
  CrossEntropyShape shape;
  std::vector<double> logits;
  std::vector<int32_t> targets;
  std::vector<double> losses, dlogits;
};

// What is known of each row before its gradient is.
struct DeviceStatistics {
  explicit DeviceStatistics(int64_t rows)
      : largest(DeviceVector<float>::poisoned(rows)),
        sum(DeviceVector<float>::poisoned(rows)),
        target_logit(DeviceVector<float>::poisoned(rows)) {}
  DeviceStatistics(const CrossEntropyShape& shape, const float* logits, const int32_t* targets)
      : DeviceStatistics(shape.rows) {
    gpu_ops<float>().cross_entropy_statistics(shape, logits, targets, view());
  }
  CrossEntropyStatistics<float> view() const { return {largest.data(), sum.data(), target_logit.data()}; }
  CrossEntropyStatistics<const float> values() const { return {largest.data(), sum.data(), target_logit.data()}; }
  DeviceVector<float> largest, sum, target_logit;
};

TYPED_TEST(GpuCrossEntropy, MatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    const auto logits = on_device<float>(c.logits);
    const DeviceVector<int32_t> targets(c.targets);
    auto losses = DeviceVector<float>::poisoned(size.rows);
    auto dlogits = DeviceVector<T>::poisoned(size.rows * size.vocab);
    gpu_ops<T>().cross_entropy(c.shape, {logits.data(), targets.data(), k_scale, losses.data(), dlogits.data()});
    expect_each_close(losses, c.losses, 2.0);
    expect_each_close(dlogits, c.dlogits, 2.0);
  }
}

// `rows` of `size` bytes each, `stride` bytes apart in `a`, without a gap in `b`.
void expect_same_rows(const std::vector<float>& a, size_t stride, const std::byte* b, size_t size) {
  for (size_t r = 0; stride > 0 && r < a.size() * sizeof(float) / stride; ++r)
    ASSERT_EQ(std::memcmp(reinterpret_cast<const std::byte*>(a.data()) + r * stride, b + r * size, size), 0)
        << "row " << r;
}

template <class T>
void expect_same_over_the_logits(const CrossEntropyCase& c) {
  CrossEntropyShape shape = c.shape;
  shape.gradient_stride = shape.vocab * static_cast<int64_t>(sizeof(float) / sizeof(T));
  const DeviceVector<int32_t> targets(c.targets);
  const auto over = on_device<float>(c.logits), logits = on_device<float>(c.logits);
  const auto apart = DeviceVector<T>::poisoned(shape.rows * shape.vocab);
  const auto losses = DeviceVector<float>::poisoned(shape.rows),
             apart_losses = DeviceVector<float>::poisoned(shape.rows);
  gpu_ops<T>().cross_entropy(shape,
                             {over.data(), targets.data(), k_scale, losses.data(), reinterpret_cast<T*>(over.data())});
  gpu_ops<T>().cross_entropy(c.shape, {logits.data(), targets.data(), k_scale, apart_losses.data(), apart.data()});
  expect_same_bits(losses, apart_losses);
  const auto expected = apart.download();
  const auto width = static_cast<size_t>(shape.vocab);
  expect_same_rows(over.download(), width * sizeof(float), reinterpret_cast<const std::byte*>(expected.data()),
                   width * sizeof(T));
}

// Each row of the gradient begins where its logits do, and is shorter where T is.
TYPED_TEST(GpuCrossEntropy, GradientMayLieOverTheLogits) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    expect_same_over_the_logits<TypeParam>(CrossEntropyCase(draws, size));
  }
}

// Rows of logits that begin aligned whatever the vocabulary, with NaN between them; the gradients lie over them.
struct PaddedRows {
  explicit PaddedRows(const CrossEntropyCase& c) : stride((c.shape.vocab + 63) / 64 * 64) {
    std::vector<float> rows(static_cast<size_t>(c.shape.rows * stride), std::numeric_limits<float>::quiet_NaN());
    for (int64_t r = 0; r < c.shape.rows; ++r)
      for (int64_t v = 0; v < c.shape.vocab; ++v)
        rows[static_cast<size_t>(r * stride + v)] =
            static_cast<float>(c.logits[static_cast<size_t>(r * c.shape.vocab + v)]);
    logits.emplace(rows);
  }
  template <class T>
  CrossEntropyShape shape(const CrossEntropyShape& dense) const {
    return {dense.rows, dense.vocab, stride, stride * static_cast<int64_t>(sizeof(float) / sizeof(T))};
  }
  template <class T>
  T* gradients() const {
    return reinterpret_cast<T*>(logits->data());
  }
  template <class T>
  void expect_gradients(const CrossEntropyCase& c) const {
    const std::vector<float> rows = logits->download();
    std::vector<T> found(c.dlogits.size());
    for (int64_t r = 0; r < c.shape.rows; ++r) {
      std::copy_n(reinterpret_cast<const T*>(rows.data() + r * stride), c.shape.vocab,
                  found.begin() + r * c.shape.vocab);
      for (int64_t v = c.shape.vocab; v < stride; ++v) {
        const float untouched = std::numeric_limits<float>::quiet_NaN();
        ASSERT_EQ(std::memcmp(&rows[static_cast<size_t>(r * stride + v)], &untouched, sizeof untouched), 0)
            << "row " << r << " column " << v;
      }
    }
    expect_each_close(DeviceVector<T>(found), c.dlogits, 2.0);
  }
  int64_t stride;
  std::optional<DeviceVector<float>> logits;
};

template <class T>
void expect_gradient_at_once(const CrossEntropyCase& c, const DeviceVector<int32_t>& targets) {
  const PaddedRows rows(c);
  const auto losses = DeviceVector<float>::poisoned(c.shape.rows);
  gpu_ops<T>().cross_entropy(rows.shape<T>(c.shape),
                             {rows.logits->data(), targets.data(), k_scale, losses.data(), rows.gradients<T>()});
  expect_each_close(losses, c.losses, 2.0);
  rows.expect_gradients<T>(c);
}

template <class T>
void expect_gradient_in_parts(const CrossEntropyCase& c, const DeviceVector<int32_t>& targets) {
  const PaddedRows rows(c);
  const CrossEntropyShape shape = rows.shape<T>(c.shape);
  const auto losses = DeviceVector<float>::poisoned(c.shape.rows);
  const DeviceStatistics statistics(shape, rows.logits->data(), targets.data());
  gpu_ops<T>().cross_entropy_gradient(
      shape, {rows.logits->data(), targets.data(), statistics.values(), k_scale, losses.data(), rows.gradients<T>()});
  expect_each_close(losses, c.losses, 2.0);
  rows.expect_gradients<T>(c);
}

TYPED_TEST(GpuCrossEntropy, PaddingIsNeitherReadNorWritten) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    const DeviceVector<int32_t> targets(c.targets);
    expect_gradient_at_once<T>(c, targets);
    expect_gradient_in_parts<T>(c, targets);
  }
}

std::vector<double> columns_of(const std::vector<double>& values, int64_t vocab, int64_t first, int64_t width) {
  std::vector<double> columns;
  for (auto row = values.begin(); row != values.end(); row += vocab)
    columns.insert(columns.end(), row + first, row + first + width);
  return columns;
}

// −1 where the target is another rank's.
std::vector<int32_t> targets_within(const std::vector<int32_t>& targets, int64_t first, int64_t width) {
  std::vector<int32_t> own;
  for (const int64_t target : targets)
    own.push_back(target >= first && target < first + width ? static_cast<int32_t>(target - first) : -1);
  return own;
}

// Columns of the vocabulary, as one rank holds them, and their statistics.
struct ColumnShard {
  ColumnShard(const CrossEntropyCase& c, int64_t first_column, int64_t columns)
      : first(first_column),
        width(columns),
        shape{c.shape.rows, columns},
        logits(on_device<float>(columns_of(c.logits, c.shape.vocab, first, width))),
        targets(targets_within(c.targets, first, width)),
        statistics(shape, logits.data(), targets.data()) {}

  template <class T>
  void expect_gradient(const CrossEntropyCase& c, const DeviceStatistics& whole) const {
    const auto losses = DeviceVector<float>::poisoned(shape.rows);
    const auto dlogits = DeviceVector<T>::poisoned(shape.rows * width);
    gpu_ops<T>().cross_entropy_gradient(
        shape, {logits.data(), targets.data(), whole.values(), k_scale, losses.data(), dlogits.data()});
    expect_each_close(losses, c.losses, 2.0);
    expect_each_close(dlogits, columns_of(c.dlogits, c.shape.vocab, first, width), 2.0);
  }

  int64_t first, width;
  CrossEntropyShape shape;
  DeviceVector<float> logits;
  DeviceVector<int32_t> targets;
  DeviceStatistics statistics;
};

std::vector<float> sum_of(const DeviceVector<float>& a, const DeviceVector<float>& b) {
  std::vector<float> sums = a.download();
  const auto other = b.download();
  for (size_t r = 0; r < sums.size(); ++r) sums[r] += other[r];
  return sums;
}

// As the ranks do together; rescales the sums of both.
DeviceStatistics combined(const ColumnShard& a, const ColumnShard& b) {
  DeviceStatistics whole(a.shape.rows);
  std::vector<float> largest = a.statistics.largest.download();
  const auto other = b.statistics.largest.download();
  for (size_t r = 0; r < largest.size(); ++r) largest[r] = std::max(largest[r], other[r]);
  whole.largest.upload(largest);
  for (const ColumnShard* shard : {&a, &b})
    gpu_ops<float>().rescale_exponential_sums(shard->shape.rows, shard->statistics.largest.data(), whole.largest.data(),
                                              shard->statistics.sum.data());
  whole.sum.upload(sum_of(a.statistics.sum, b.statistics.sum));
  whole.target_logit.upload(sum_of(a.statistics.target_logit, b.statistics.target_logit));
  return whole;
}

// The columns in two shards, as two ranks hold them.
TYPED_TEST(GpuCrossEntropy, ShardsGiveTheWhole) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : {CrossEntropySize{5, 13}, {300, 48}, {2, 5'000}}) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    const int64_t third = size.vocab / 3;
    const ColumnShard left(c, 0, third), right(c, third, size.vocab - third);
    const DeviceStatistics whole = combined(left, right);
    left.expect_gradient<T>(c, whole);
    right.expect_gradient<T>(c, whole);
  }
}

void expect_statistics_of_no_columns() {
  const DeviceVector<int32_t> elsewhere(std::vector<int32_t>{-1, -1});
  const DeviceStatistics found({2, 0}, nullptr, elsewhere.data());
  EXPECT_EQ(found.largest.download(), std::vector<float>(2, -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(found.sum.download(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(found.target_logit.download(), std::vector<float>(2, 0.0f));
}

TEST(GpuCrossEntropyStatistics, MatchTheReferenceAndKnowNoColumns) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyShape shape{size.rows, size.vocab};
    const auto logits = draws.of<float>(size.rows * size.vocab, 5.0);
    const auto targets = draws.integers(size.rows, -1, static_cast<int32_t>(size.vocab - 1));
    std::vector<double> largest(targets.size()), sum(targets.size()), target_logit(targets.size());
    reference::cross_entropy_statistics<double>(shape, logits.data(), targets.data(),
                                                {largest.data(), sum.data(), target_logit.data()});
    const auto values = on_device<float>(logits);
    const DeviceVector<int32_t> columns(targets);
    const DeviceStatistics found(shape, values.data(), columns.data());
    EXPECT_EQ(widened(found.largest.download()), largest);
    EXPECT_EQ(widened(found.target_logit.download()), target_logit);
    expect_each_close(found.sum, sum);
  }
  expect_statistics_of_no_columns();
}

// Two rows of logits of −∞, which are masked, but for two of 0; the second row has a NaN too.
std::vector<float> rows_with_nan(int64_t vocab, int64_t at) {
  std::vector<float> values(static_cast<size_t>(2 * vocab), -std::numeric_limits<float>::infinity());
  for (const int64_t row : {int64_t{0}, vocab})
    values[static_cast<size_t>(row)] = values[static_cast<size_t>(row + 1)] = 0.0f;
  values[static_cast<size_t>(vocab + at)] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

// Wherever it stands, and in no other row.
TEST(GpuCrossEntropyStatistics, NanReachesTheLossOfItsRow) {
  constexpr int64_t k_vocab = 5'000;
  for (const int64_t at : {int64_t{0}, int64_t{777}, k_vocab - 1}) {
    const DeviceVector<float> logits(rows_with_nan(k_vocab, at));
    const DeviceVector<int32_t> targets(std::vector<int32_t>{1, 1});
    const DeviceStatistics found({2, k_vocab}, logits.data(), targets.data());
    EXPECT_TRUE(std::isnan(found.largest.download()[1]));
    const DeviceVector<float> finite(std::vector<float>{0.0f, 0.0f});  // a maximum that dropped the NaN
    for (const bool is_rescaled : {false, true}) {
      if (is_rescaled)
        gpu_ops<float>().rescale_exponential_sums(2, found.largest.data(), finite.data(), found.sum.data());
      EXPECT_EQ(found.sum.download()[0], 2.0f);
      EXPECT_TRUE(std::isnan(found.sum.download()[1]));
    }
    const auto losses = DeviceVector<float>::poisoned(2);
    const auto dlogits = DeviceVector<bf16>::poisoned(2 * k_vocab);
    gpu_ops<bf16>().cross_entropy({2, k_vocab}, {logits.data(), targets.data(), 1.0, losses.data(), dlogits.data()});
    EXPECT_NEAR(losses.download()[0], std::log(2.0), 1e-6);
    EXPECT_TRUE(std::isnan(losses.download()[1]));
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu
