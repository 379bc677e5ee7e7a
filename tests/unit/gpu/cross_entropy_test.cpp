#include "ops/reference/cross_entropy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::gpu {
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
    gpu::cross_entropy<T>(c.shape, {logits.data(), targets.data(), k_scale, losses.data(), dlogits.data()});
    expect_each_close(losses, c.losses, 2.0);
    expect_each_close(dlogits, c.dlogits, 2.0);
  }
}

// Each row of the gradient begins where its logits do, and is shorter where T is.
TYPED_TEST(GpuCrossEntropy, GradientMayLieOverTheLogits) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    constexpr int64_t k_ratio = sizeof(float) / sizeof(T);
    CrossEntropyShape shape = c.shape;
    shape.gradient_stride = size.vocab * k_ratio;
    const auto memory = on_device<float>(c.logits);
    auto* over = reinterpret_cast<T*>(memory.data());
    const DeviceVector<int32_t> targets(c.targets);
    auto losses = DeviceVector<float>::poisoned(size.rows), apart_losses = DeviceVector<float>::poisoned(size.rows);
    gpu::cross_entropy<T>(shape, {memory.data(), targets.data(), k_scale, losses.data(), over});

    const auto logits = on_device<float>(c.logits);
    auto apart = DeviceVector<T>::poisoned(size.rows * size.vocab);
    gpu::cross_entropy<T>(c.shape, {logits.data(), targets.data(), k_scale, apart_losses.data(), apart.data()});
    expect_same_bits(losses, apart_losses);
    const auto overlaid = memory.download();
    const auto expected = apart.download();
    for (int64_t r = 0; r < size.rows; ++r)
      ASSERT_EQ(std::memcmp(overlaid.data() + r * size.vocab, expected.data() + r * size.vocab,
                            static_cast<size_t>(size.vocab) * sizeof(T)),
                0)
          << "row " << r;
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

TYPED_TEST(GpuCrossEntropy, PaddingIsNeitherReadNorWritten) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_cross_entropy_sizes) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    const DeviceVector<int32_t> targets(c.targets);
    const PaddedRows at_once(c), in_parts(c);
    const CrossEntropyShape shape = at_once.shape<T>(c.shape);
    auto losses = DeviceVector<float>::poisoned(size.rows);
    gpu::cross_entropy<T>(shape,
                          {at_once.logits->data(), targets.data(), k_scale, losses.data(), at_once.gradients<T>()});
    expect_each_close(losses, c.losses, 2.0);
    at_once.expect_gradients<T>(c);

    auto top = DeviceVector<float>::poisoned(size.rows), total = DeviceVector<float>::poisoned(size.rows);
    auto hit = DeviceVector<float>::poisoned(size.rows), part_losses = DeviceVector<float>::poisoned(size.rows);
    gpu::cross_entropy_statistics(shape, in_parts.logits->data(), targets.data(),
                                  {top.data(), total.data(), hit.data()});
    gpu::cross_entropy_gradient<T>(shape, {in_parts.logits->data(),
                                           targets.data(),
                                           {top.data(), total.data(), hit.data()},
                                           k_scale,
                                           part_losses.data(),
                                           in_parts.gradients<T>()});
    expect_each_close(part_losses, c.losses, 2.0);
    in_parts.expect_gradients<T>(c);
  }
}

// The columns in two shards, as two ranks hold them.
TYPED_TEST(GpuCrossEntropy, ShardsGiveTheWhole) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : {CrossEntropySize{5, 13}, {300, 48}, {2, 5'000}}) {
    SCOPED_TRACE(size.vocab);
    const CrossEntropyCase c(draws, size);
    const int64_t widths[] = {size.vocab / 3, size.vocab - size.vocab / 3};
    std::vector<DeviceVector<float>> logits, largest, sum, target_logit;
    std::vector<DeviceVector<int32_t>> targets;
    int64_t first = 0;
    for (const int64_t width : widths) {
      std::vector<double> own;
      std::vector<int32_t> own_targets;
      for (int64_t r = 0; r < size.rows; ++r) {
        const auto begin = c.logits.begin() + r * size.vocab + first;
        own.insert(own.end(), begin, begin + width);
        const int64_t target = c.targets[static_cast<size_t>(r)] - first;
        own_targets.push_back(target >= 0 && target < width ? static_cast<int32_t>(target) : -1);
      }
      logits.push_back(on_device<float>(own));
      targets.emplace_back(own_targets);
      for (auto* statistic : {&largest, &sum, &target_logit})
        statistic->push_back(DeviceVector<float>::poisoned(size.rows));
      gpu::cross_entropy_statistics({size.rows, width}, logits.back().data(), targets.back().data(),
                                    {largest.back().data(), sum.back().data(), target_logit.back().data()});
      first += width;
    }
    std::vector<float> greatest = largest[0].download(), totals(greatest.size()), hits(greatest.size());
    const auto other = largest[1].download();
    for (size_t r = 0; r < greatest.size(); ++r) greatest[r] = std::max(greatest[r], other[r]);
    const DeviceVector<float> whole_largest(greatest);
    for (size_t shard = 0; shard < 2; ++shard) {
      gpu::rescale_exponential_sums(size.rows, largest[shard].data(), whole_largest.data(), sum[shard].data());
      const auto own = sum[shard].download(), own_hits = target_logit[shard].download();
      for (size_t r = 0; r < totals.size(); ++r) {
        totals[r] += own[r];
        hits[r] += own_hits[r];
      }
    }
    const DeviceVector<float> whole_sum(totals), whole_hit(hits);
    first = 0;
    for (size_t shard = 0; shard < 2; ++shard) {
      const int64_t width = widths[shard];
      auto losses = DeviceVector<float>::poisoned(size.rows);
      auto dlogits = DeviceVector<T>::poisoned(size.rows * width);
      gpu::cross_entropy_gradient<T>({size.rows, width}, {logits[shard].data(),
                                                          targets[shard].data(),
                                                          {whole_largest.data(), whole_sum.data(), whole_hit.data()},
                                                          k_scale,
                                                          losses.data(),
                                                          dlogits.data()});
      std::vector<double> expected;
      for (int64_t r = 0; r < size.rows; ++r) {
        const auto begin = c.dlogits.begin() + r * size.vocab + first;
        expected.insert(expected.end(), begin, begin + width);
      }
      expect_each_close(losses, c.losses, 2.0);
      expect_each_close(dlogits, expected, 2.0);
      first += width;
    }
  }
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
    auto top = DeviceVector<float>::poisoned(size.rows), total = DeviceVector<float>::poisoned(size.rows);
    auto hit = DeviceVector<float>::poisoned(size.rows);
    gpu::cross_entropy_statistics(shape, values.data(), columns.data(), {top.data(), total.data(), hit.data()});
    EXPECT_EQ(widened(top.download()), largest);
    EXPECT_EQ(widened(hit.download()), target_logit);
    expect_each_close(total, sum);
  }
  auto top = DeviceVector<float>::poisoned(2), total = DeviceVector<float>::poisoned(2);
  auto hit = DeviceVector<float>::poisoned(2);
  const DeviceVector<int32_t> elsewhere(std::vector<int32_t>{-1, -1});
  gpu::cross_entropy_statistics({2, 0}, nullptr, elsewhere.data(), {top.data(), total.data(), hit.data()});
  EXPECT_EQ(top.download(), std::vector<float>(2, -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(total.download(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(hit.download(), std::vector<float>(2, 0.0f));
}

// Wherever it stands, and in no other row; logits of −∞, which are masked, are none.
TEST(GpuCrossEntropyStatistics, NanReachesTheLossOfItsRow) {
  constexpr int64_t k_vocab = 5'000;
  for (const int64_t at : {int64_t{0}, int64_t{777}, k_vocab - 1}) {
    std::vector<float> values(2 * k_vocab, -std::numeric_limits<float>::infinity());
    values[0] = values[k_vocab] = 0.0f;
    values[1] = values[k_vocab + 1] = 0.0f;
    values[static_cast<size_t>(k_vocab + at)] = std::numeric_limits<float>::quiet_NaN();
    const DeviceVector<float> logits(values);
    const DeviceVector<int32_t> targets(std::vector<int32_t>{1, 1});
    auto top = DeviceVector<float>::poisoned(2), total = DeviceVector<float>::poisoned(2);
    auto hit = DeviceVector<float>::poisoned(2), losses = DeviceVector<float>::poisoned(2);
    auto dlogits = DeviceVector<bf16>::poisoned(2 * k_vocab);
    gpu::cross_entropy_statistics({2, k_vocab}, logits.data(), targets.data(), {top.data(), total.data(), hit.data()});
    EXPECT_EQ(total.download()[0], 2.0f);
    EXPECT_TRUE(std::isnan(top.download()[1]));
    EXPECT_TRUE(std::isnan(total.download()[1]));
    const DeviceVector<float> finite(std::vector<float>{0.0f, 0.0f});  // a maximum that dropped the NaN
    gpu::rescale_exponential_sums(2, top.data(), finite.data(), total.data());
    EXPECT_EQ(total.download()[0], 2.0f);
    EXPECT_TRUE(std::isnan(total.download()[1]));
    gpu::cross_entropy<bf16>({2, k_vocab}, {logits.data(), targets.data(), 1.0, losses.data(), dlogits.data()});
    EXPECT_NEAR(losses.download()[0], std::log(2.0), 1e-6);
    EXPECT_TRUE(std::isnan(losses.download()[1]));
  }
}

}  // namespace
}  // namespace tprimat::gpu
