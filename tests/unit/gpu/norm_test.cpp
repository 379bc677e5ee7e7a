#include "ops/gpu/gpu_ops.h"
#include "ops/reference/layernorm.h"
#include "ops/reference/rmsnorm.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

struct NormSize {
  int64_t rows, cols;
};
// Whole packs and not, less than a warp, more rows than blocks, more columns than the threads hold.
const std::vector<NormSize> k_norm_sizes = {{0, 64},  {1, 1},    {3, 7},    {5, 64},   {300, 40},  {2, 1001},
                                            {9, 520}, {4, 2048}, {2, 8205}, {2, 8208}, {1, 16400}, {1, 16389}};

std::string name_of(const NormSize& size) { return std::to_string(size.rows) + "x" + std::to_string(size.cols); }

template <class T>
class GpuNorm : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuNorm, GpuTypes);

TYPED_TEST(GpuNorm, RmsNormForwardMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const NormSize& size : k_norm_sizes) {
    SCOPED_TRACE(name_of(size));
    const RmsNormShape shape{size.rows, size.cols, 1e-5};
    const auto x = draws.of<T>(size.rows * size.cols, 3.0), w = draws.of<T>(size.cols);
    std::vector<double> y(x.size()), rstd(static_cast<size_t>(size.rows));
    reference::rmsnorm_forward<double>(shape, x.data(), w.data(), y.data(), rstd.data());
    const auto from = on_device<T>(x), weight = on_device<T>(w);
    auto to = DeviceVector<T>::poisoned(size.rows * size.cols);
    auto scale = DeviceVector<float>::poisoned(size.rows);
    gpu_ops<T>().rmsnorm_forward(shape, from.data(), weight.data(), to.data(), scale.data());
    expect_each_close(to, y);
    expect_each_close(scale, rstd);
    gpu_ops<T>().rmsnorm_forward(shape, from.data(), weight.data(), from.data(), scale.data());  // in place
    expect_same_bits(from, to);
  }
}

TYPED_TEST(GpuNorm, AddRmsNormMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const NormSize& size : k_norm_sizes) {
    SCOPED_TRACE(name_of(size));
    const RmsNormShape shape{size.rows, size.cols, 1e-6};
    const int64_t count = size.rows * size.cols;
    const auto a = draws.of<T>(count), b = draws.of<T>(count, 2.0), w = draws.of<T>(size.cols);
    std::vector<double> sum(a.size()), y(a.size()), rstd(static_cast<size_t>(size.rows));
    for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    sum = rounded<T>(sum);
    reference::rmsnorm_forward<double>(shape, sum.data(), w.data(), y.data(), rstd.data());
    const auto first = on_device<T>(a), second = on_device<T>(b), weight = on_device<T>(w);
    auto total = DeviceVector<T>::poisoned(count), to = DeviceVector<T>::poisoned(count);
    auto scale = DeviceVector<float>::poisoned(size.rows);
    gpu_ops<T>().add_rmsnorm_forward(shape, {first.data(), second.data(), total.data()}, weight.data(), to.data(),
                                     scale.data());
    EXPECT_EQ(widened(total.download()), sum);
    expect_each_close(to, y);
    expect_each_close(scale, rstd);
    gpu_ops<T>().add_rmsnorm_forward(shape, {first.data(), second.data(), second.data()}, weight.data(), to.data(),
                                     scale.data());
    expect_same_bits(second, total);
    expect_each_close(to, y);
  }
}

TYPED_TEST(GpuNorm, RmsNormBackwardMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const NormSize& size : k_norm_sizes) {
    SCOPED_TRACE(name_of(size));
    const RmsNormShape shape{size.rows, size.cols, 1e-5};
    const int64_t count = size.rows * size.cols;
    const auto x = draws.of<T>(count), w = draws.of<T>(size.cols), dy = draws.of<T>(count);
    const auto dx_before = draws.of<T>(count), dw_before = draws.of<float>(size.cols);
    auto rstd = draws.of<float>(size.rows);
    for (double& scale : rstd) scale = std::abs(scale) + 0.5;
    rstd = rounded<float>(rstd);
    auto dx = dx_before, dw = dw_before;
    reference::rmsnorm_backward<double>(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});
    const auto from = on_device<T>(x), weight = on_device<T>(w), gradient = on_device<T>(dy);
    const auto scale = on_device<float>(rstd);
    const auto run = [&](const DeviceVector<T>& to, const DeviceVector<float>& dweight) {
      gpu_ops<T>().rmsnorm_backward(
          shape, {from.data(), weight.data(), scale.data(), gradient.data(), to.data(), dweight.data()});
    };
    const auto to = on_device<T>(dx_before), again = on_device<T>(dx_before);
    const auto dweight = on_device<float>(dw_before), dweight_again = on_device<float>(dw_before);
    run(to, dweight);
    run(again, dweight_again);
    expect_each_close(to, dx, 2.0);
    expect_each_close(dweight, dw, 4.0);
    expect_same_bits(to, again);
    expect_same_bits(dweight, dweight_again);
  }
}

TYPED_TEST(GpuNorm, LayerNormForwardMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const NormSize& size : k_norm_sizes) {
    SCOPED_TRACE(name_of(size));
    const LayerNormShape shape{size.rows, size.cols, 1e-5};
    const int64_t count = size.rows * size.cols;
    const auto a = draws.of<T>(count), b = draws.of<T>(count), w = draws.of<T>(size.cols),
               bias = draws.of<T>(size.cols);
    std::vector<double> y(a.size()), mean(static_cast<size_t>(size.rows)), rstd(mean.size()), sum(a.size());
    reference::layernorm_forward<double>(shape, a.data(), {w.data(), bias.data()},
                                         {y.data(), mean.data(), rstd.data()});
    const auto first = on_device<T>(a), second = on_device<T>(b), weight = on_device<T>(w), shift = on_device<T>(bias);
    auto to = DeviceVector<T>::poisoned(count), total = DeviceVector<T>::poisoned(count);
    auto means = DeviceVector<float>::poisoned(size.rows), scale = DeviceVector<float>::poisoned(size.rows);
    const LayerNormOutput<T> out{to.data(), means.data(), scale.data()};
    gpu_ops<T>().layernorm_forward(shape, first.data(), {weight.data(), shift.data()}, out);
    expect_each_close(to, y, 2.0);
    expect_each_close(means, mean);
    expect_each_close(scale, rstd);
    for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    sum = rounded<T>(sum);
    reference::layernorm_forward<double>(shape, sum.data(), {w.data(), bias.data()},
                                         {y.data(), mean.data(), rstd.data()});
    gpu_ops<T>().add_layernorm_forward(shape, {first.data(), second.data(), total.data()},
                                       {weight.data(), shift.data()}, out);
    EXPECT_EQ(widened(total.download()), sum);
    expect_each_close(to, y, 2.0);
    expect_each_close(means, mean);
    expect_each_close(scale, rstd);
    gpu_ops<T>().layernorm_forward(shape, total.data(), {weight.data(), shift.data()},
                                   {total.data(), means.data(), scale.data()});  // in place
    expect_same_bits(total, to);
  }
}

TYPED_TEST(GpuNorm, LayerNormBackwardMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const NormSize& size : k_norm_sizes) {
    SCOPED_TRACE(name_of(size));
    const LayerNormShape shape{size.rows, size.cols, 1e-5};
    const int64_t count = size.rows * size.cols;
    const auto x = draws.of<T>(count), w = draws.of<T>(size.cols), dy = draws.of<T>(count);
    const auto dx_before = draws.of<T>(count), dw_before = draws.of<float>(size.cols);
    const auto mean = draws.of<float>(size.rows), rstd = draws.of<float>(size.rows);
    auto dx = dx_before, dw = dw_before, db = dw_before;
    reference::layernorm_backward<double>(
        shape, {x.data(), w.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dw.data(), db.data()});
    const auto from = on_device<T>(x), weight = on_device<T>(w), gradient = on_device<T>(dy);
    const auto means = on_device<float>(mean), scale = on_device<float>(rstd);
    std::vector<DeviceVector<T>> dxs;
    std::vector<DeviceVector<float>> dweights, dbiases;
    for (int run = 0; run < 2; ++run) {
      dxs.push_back(on_device<T>(dx_before));
      dweights.push_back(on_device<float>(dw_before));
      dbiases.push_back(on_device<float>(dw_before));
      gpu_ops<T>().layernorm_backward(shape, {from.data(), weight.data(), means.data(), scale.data(), gradient.data(),
                                              dxs.back().data(), dweights.back().data(), dbiases.back().data()});
    }
    expect_each_close(dxs[0], dx, 3.0);
    expect_each_close(dweights[0], dw, 4.0);
    expect_each_close(dbiases[0], db, 4.0);
    expect_same_bits(dxs[0], dxs[1]);
    expect_same_bits(dweights[0], dweights[1]);
    expect_same_bits(dbiases[0], dbiases[1]);
  }
}

// Heads of whole packs, of odd sizes, of more channels than a warp has lanes; gaps between the rows.
const std::vector<HeadNormShape> k_head_shapes = {
    {0, 2, 64, 128, 128, 1e-6},  {5, 3, 64, 200, 192, 1e-6},     {3, 2, 128, 256, 264, 1e-6},   {2, 3, 5, 17, 15, 1e-6},
    {90, 7, 32, 224, 224, 1e-6}, {2, 1, 1000, 1000, 1000, 1e-6}, {1, 2, 1203, 2406, 2408, 1e-6}};

TYPED_TEST(GpuNorm, HeadNormForwardMatchesTheReferenceAndLeavesGaps) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const HeadNormShape& shape : k_head_shapes) {
    SCOPED_TRACE(std::to_string(shape.head_dim));
    const auto x = draws.of<T>(shape.rows * shape.x_row_stride), w = draws.of<T>(shape.head_dim);
    const auto y_before = draws.of<T>(shape.rows * shape.y_row_stride);
    auto y = y_before;
    std::vector<double> rstd(static_cast<size_t>(shape.rows * shape.heads));
    reference::head_norm_forward<double>(shape, x.data(), w.data(), y.data(), rstd.data());
    const auto from = on_device<T>(x), weight = on_device<T>(w), to = on_device<T>(y_before);
    auto scale = DeviceVector<float>::poisoned(shape.rows * shape.heads);
    gpu_ops<T>().head_norm_forward(shape, from.data(), weight.data(), to.data(), scale.data());
    expect_each_close(to, y);
    expect_each_close(scale, rstd);
  }
}

TYPED_TEST(GpuNorm, HeadNormBackwardMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const HeadNormShape& shape : k_head_shapes) {
    SCOPED_TRACE(std::to_string(shape.head_dim));
    const auto x = draws.of<T>(shape.rows * shape.x_row_stride), w = draws.of<T>(shape.head_dim);
    const auto dy = draws.of<T>(shape.rows * shape.y_row_stride),
               dx_before = draws.of<T>(shape.rows * shape.x_row_stride);
    const auto dw_before = draws.of<float>(shape.head_dim);
    const auto rstd = draws.of<float>(shape.rows * shape.heads);
    auto dx = dx_before, dw = dw_before;
    reference::head_norm_backward<double>(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});
    const auto from = on_device<T>(x), weight = on_device<T>(w), gradient = on_device<T>(dy);
    const auto scale = on_device<float>(rstd);
    const auto to = on_device<T>(dx_before), again = on_device<T>(dx_before);
    const auto dweight = on_device<float>(dw_before), dweight_again = on_device<float>(dw_before);
    for (const auto& [dx_of, dweight_of] :
         {std::pair(to.data(), dweight.data()), std::pair(again.data(), dweight_again.data())})
      gpu_ops<T>().head_norm_backward(shape,
                                      {from.data(), weight.data(), scale.data(), gradient.data(), dx_of, dweight_of});
    expect_each_close(to, dx, 2.0);
    expect_each_close(dweight, dw, 4.0);
    expect_same_bits(to, again);
    expect_same_bits(dweight, dweight_again);
  }
}

TYPED_TEST(GpuNorm, HeadNormBackwardMayWriteOverDy) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const HeadNormShape shape{4, 3, 40, 120, 120, 1e-6};
  const auto x = draws.of<T>(480), w = draws.of<T>(40), dy = draws.of<T>(480), rstd = draws.of<float>(12);
  std::vector<double> dx(480), dw(40);
  reference::head_norm_backward<double>(shape, {x.data(), w.data(), rstd.data(), dy.data(), dx.data(), dw.data()});
  const auto from = on_device<T>(x), weight = on_device<T>(w), gradient = on_device<T>(dy);
  const auto scale = on_device<float>(rstd), dweight = on_device<float>(std::vector<double>(40));
  gpu_ops<T>().head_norm_backward(
      shape, {from.data(), weight.data(), scale.data(), gradient.data(), gradient.data(), dweight.data()});
  expect_each_close(gradient, dx, 2.0);
  expect_each_close(dweight, dw, 4.0);
}

// Statistics are floats of a sum of many: a row whose mean is far from 0 keeps its variance.
TEST(GpuLayerNorm, AFarMeanLeavesTheVariance) {
  std::vector<double> x(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1000.0 + (i % 2 == 0 ? 1.0 : -1.0);
  const std::vector<double> ones(x.size(), 1.0), zeros(x.size(), 0.0);
  const auto from = on_device<float>(x), weight = on_device<float>(ones), bias = on_device<float>(zeros);
  auto y = DeviceVector<float>::poisoned(4096), mean = DeviceVector<float>::poisoned(1);
  auto rstd = DeviceVector<float>::poisoned(1);
  gpu_ops<float>().layernorm_forward({1, 4096, 0.0}, from.data(), {weight.data(), bias.data()},
                                     {y.data(), mean.data(), rstd.data()});
  EXPECT_NEAR(rstd.download()[0], 1.0f, 1e-5f);
  EXPECT_NEAR(mean.download()[0], 1000.0f, 1e-3f);
}

}  // namespace
}  // namespace tprimat::engine::gpu
