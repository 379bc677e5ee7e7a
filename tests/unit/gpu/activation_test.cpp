#include "ops/gpu/gpu_ops.h"
#include "ops/reference/gelu.h"
#include "ops/reference/rope.h"
#include "ops/reference/swiglu.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

struct ActivationSize {
  int64_t rows, width;
};
const std::vector<ActivationSize> k_activation_sizes = {{0, 8},  {3, 0},    {1, 1},      {5, 7},
                                                        {3, 16}, {600, 24}, {130, 2056}, {3, 999}};

std::string name_of(const ActivationSize& size) { return std::to_string(size.rows) + "x" + std::to_string(size.width); }

template <class T>
class GpuActivation : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuActivation, GpuTypes);

TYPED_TEST(GpuActivation, SwigluMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_activation_sizes) {
    SCOPED_TRACE(name_of(size));
    const SwigluShape shape{size.rows, size.width};
    const int64_t count = size.rows * size.width;
    const auto gate_up = draws.of<T>(2 * count, 2.0), dy = draws.of<T>(count);
    std::vector<double> y(dy.size()), dgate_up(gate_up.size());
    reference::swiglu_forward<double>(shape, gate_up.data(), y.data());
    reference::swiglu_backward<double>(shape, gate_up.data(), dy.data(), dgate_up.data());
    const auto from = on_device<T>(gate_up), gradient = on_device<T>(dy);
    auto to = DeviceVector<T>::poisoned(count), back = DeviceVector<T>::poisoned(2 * count);
    gpu_ops<T>().swiglu_forward(shape, from.data(), to.data());
    gpu_ops<T>().swiglu_backward(shape, from.data(), gradient.data(), back.data());
    expect_each_close(to, y);
    expect_each_close(back, dgate_up);
    gpu_ops<T>().swiglu_backward(shape, from.data(), gradient.data(), from.data());  // in place
    expect_same_bits(from, back);
  }
}

TYPED_TEST(GpuActivation, SwigluOfFarValuesStaysFinite) {
  using T = TypeParam;
  const std::vector<double> gate_up{-200.0, 200.0, -88.0, 88.0, 1.0, 1.0, 2.0, 2.0}, dy{1.0, 1.0, 1.0, 1.0};
  std::vector<double> y(4), dgate_up(8);
  const SwigluShape shape{1, 4};
  reference::swiglu_forward<double>(shape, gate_up.data(), y.data());
  reference::swiglu_backward<double>(shape, gate_up.data(), dy.data(), dgate_up.data());
  const auto from = on_device<T>(gate_up), gradient = on_device<T>(dy);
  auto to = DeviceVector<T>::poisoned(4), back = DeviceVector<T>::poisoned(8);
  gpu_ops<T>().swiglu_forward(shape, from.data(), to.data());
  gpu_ops<T>().swiglu_backward(shape, from.data(), gradient.data(), back.data());
  expect_each_close(to, y);
  expect_each_close(back, dgate_up);
}

TYPED_TEST(GpuActivation, BiasGeluMatchesTheReference) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_activation_sizes) {
    SCOPED_TRACE(name_of(size));
    const GeluShape shape{size.rows, size.width};
    const int64_t count = size.rows * size.width;
    const auto x = draws.of<T>(count, 2.0), bias = draws.of<T>(size.width);
    std::vector<double> y(x.size()), plain(x.size());
    reference::bias_gelu_forward<double>(shape, x.data(), bias.data(), y.data());
    reference::bias_gelu_forward<double>(shape, x.data(), nullptr, plain.data());
    const auto from = on_device<T>(x), shift = on_device<T>(bias);
    auto to = DeviceVector<T>::poisoned(count), without = DeviceVector<T>::poisoned(count);
    gpu_ops<T>().bias_gelu_forward(shape, from.data(), shift.data(), to.data());
    gpu_ops<T>().bias_gelu_forward(shape, from.data(), nullptr, without.data());
    expect_each_close(to, y);
    expect_each_close(without, plain);
    gpu_ops<T>().bias_gelu_forward(shape, from.data(), shift.data(), from.data());  // in place
    expect_same_bits(from, to);
  }
}

TYPED_TEST(GpuActivation, BiasGeluBackwardMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const auto& size : k_activation_sizes) {
    SCOPED_TRACE(name_of(size));
    const GeluShape shape{size.rows, size.width};
    const int64_t count = size.rows * size.width;
    const auto x = draws.of<T>(count, 2.0), bias = draws.of<T>(size.width), dy = draws.of<T>(count);
    const auto before = draws.of<float>(size.width);
    auto dbias = before;
    std::vector<double> dx(x.size());
    reference::bias_gelu_backward<double>(shape, {x.data(), bias.data(), dy.data(), dx.data(), dbias.data()});
    const auto from = on_device<T>(x), shift = on_device<T>(bias), over_dy = on_device<T>(dy);
    const auto sums = on_device<float>(before), again = on_device<float>(before);
    auto to = DeviceVector<T>::poisoned(count);
    gpu_ops<T>().bias_gelu_backward(shape, {from.data(), shift.data(), over_dy.data(), to.data(), sums.data()});
    gpu_ops<T>().bias_gelu_backward(shape, {from.data(), shift.data(), over_dy.data(), over_dy.data(), again.data()});
    expect_each_close(to, dx);
    expect_each_close(sums, dbias, 4.0);
    expect_same_bits(over_dy, to);
    expect_same_bits(again, sums);
  }
}

TYPED_TEST(GpuActivation, GeluBackwardWithoutBiasMayWriteOverX) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const GeluShape shape{7, 48};
  const auto x = draws.of<T>(7 * 48, 2.0), dy = draws.of<T>(7 * 48);
  std::vector<double> dx(x.size());
  reference::bias_gelu_backward<double>(shape, {x.data(), nullptr, dy.data(), dx.data(), nullptr});
  const auto from = on_device<T>(x), gradient = on_device<T>(dy);
  gpu_ops<T>().bias_gelu_backward(shape, {from.data(), nullptr, gradient.data(), from.data(), nullptr});
  expect_each_close(from, dx);
}

TYPED_TEST(GpuActivation, GeluOfFarValuesIsTheValueOrNothing) {
  using T = TypeParam;
  const std::vector<double> x{-60000.0, -100.0, 100.0, 60000.0}, dy{1.0, 1.0, 1.0, 1.0};
  const auto from = on_device<T>(x), gradient = on_device<T>(dy);
  auto to = DeviceVector<T>::poisoned(4), back = DeviceVector<T>::poisoned(4);
  gpu_ops<T>().bias_gelu_forward({1, 4}, from.data(), nullptr, to.data());
  gpu_ops<T>().bias_gelu_backward({1, 4}, {from.data(), nullptr, gradient.data(), back.data(), nullptr});
  expect_each_close(to, {0.0, 0.0, 100.0, 60000.0});
  expect_each_close(back, {0.0, 0.0, 1.0, 1.0});
}

// Whole packs and not; queries and keys of a row with values behind them that stay as they are.
TYPED_TEST(GpuActivation, RopeMatchesTheReferenceAndTurnsBack) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const std::vector<RopeShape> shapes = {{2, 5, 3, 64, 256}, {1, 3, 2, 6, 17},     {3, 4, 1, 16, 16},
                                         {0, 5, 3, 64, 192}, {300, 1, 5, 32, 168}, {1, 2, 9, 256, 2304}};
  for (const RopeShape& shape : shapes) {
    SCOPED_TRACE(shape.head_dim);
    const int64_t angles = shape.sequence * shape.head_dim / 2;
    const auto before = draws.of<T>(shape.batch * shape.sequence * shape.row_stride);
    const auto turns = draws.normal(angles);
    std::vector<double> cosine, sine;
    for (const double turn : turns) {
      cosine.push_back(std::cos(turn));
      sine.push_back(std::sin(turn));
    }
    cosine = rounded<float>(cosine);
    sine = rounded<float>(sine);
    const auto cosines = on_device<float>(cosine), sines = on_device<float>(sine);
    for (const int direction : {1, -1}) {
      auto expected = before;
      reference::rope_in_place<double>(shape, {cosine.data(), sine.data()}, direction, expected.data());
      const auto heads = on_device<T>(before);
      gpu_ops<T>().rope_in_place(shape, {cosines.data(), sines.data()}, direction, heads.data());
      expect_each_close(heads, expected);
    }
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu
