#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "device_vector.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/reference/fp8_product.h"
#include "ops/reference/matmul.h"

namespace tprimat::engine::gpu {
namespace {

// One tensor's scale on both sides.
struct ScaleOfBoth {
  explicit ScaleOfBoth(float first = 1) : host{first, 1 / first, 0}, device(std::vector<float>{first, 1 / first, 0}) {}
  std::array<float, 3> host;
  DeviceVector<float> device;
  Fp8Scale on_host() { return {&host[0], &host[1], &host[2]}; }
  Fp8Scale on_device() { return {device.data(), device.data() + 1, device.data() + 2}; }
  void compare() {
    const std::vector<float> found = device.download();
    EXPECT_EQ(found[0], host[0]);
    EXPECT_EQ(found[1], host[1]);
    EXPECT_EQ(found[2], host[2]);
  }
};

struct TensorShape {
  int64_t rows, cols;
};
const TensorShape k_tensor_shapes[] = {{16, 16}, {16, 144}, {80, 32}, {64, 64}, {192, 80}};

template <class T>
class GpuFp8Quantize : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuFp8Quantize, GpuTypes);

template <class T>
void compare_quantized(const TensorShape& shape, const std::vector<T>& x, Fp8Format format, Fp8Scaling scaling) {
  SCOPED_TRACE(testing::Message() << shape.rows << "×" << shape.cols << " format " << static_cast<int>(format)
                                  << " scaling " << static_cast<int>(scaling));
  const auto count = static_cast<size_t>(shape.rows * shape.cols);
  std::vector<uint8_t> y(count), transposed(count);
  ScaleOfBoth scale(3.5f);
  Fp8Quantize<T> host{shape.rows, shape.cols, x.data(), format, scaling, scale.on_host(), y.data(), transposed.data()};
  reference::fp8_quantize(host);
  const DeviceVector<T> x_there(x);
  const auto y_there = DeviceVector<uint8_t>::poisoned(static_cast<int64_t>(count)),
             transposed_there = DeviceVector<uint8_t>::poisoned(static_cast<int64_t>(count));
  Fp8Quantize<T> device = host;
  device.x = x_there.data();
  device.scale = scale.on_device();
  device.y = y_there.data();
  device.y_transposed = transposed_there.data();
  gpu_ops<T>().fp8_quantize(device);
  scale.compare();
  EXPECT_EQ(y_there.download(), y);
  EXPECT_EQ(transposed_there.download(), transposed);
}

TYPED_TEST(GpuFp8Quantize, QuantizesAsTheReferenceDoes) {
  using T = TypeParam;
  test_device();
  for (const TensorShape& shape : k_tensor_shapes)
    for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2})
      for (const Fp8Scaling scaling : {Fp8Scaling::current, Fp8Scaling::delayed})
        compare_quantized(shape, narrowed<T>(random_values(shape.rows * shape.cols, 7, 20.0)), format, scaling);
}

// Every byte, what lies half way between two, and what lies just beside that.
TYPED_TEST(GpuFp8Quantize, RoundsToTheNearestEvenByte) {
  using T = TypeParam;
  test_device();
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    std::vector<double> values;
    for (int byte = 0; byte < 0x7B; ++byte) {
      const double low = reference::fp8_value<double>(static_cast<uint8_t>(byte), format),
                   high = reference::fp8_value<double>(static_cast<uint8_t>(byte + 1), format),
                   middle = (low + high) / 2;
      for (const double value : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)})
        values.insert(values.end(), {value / 3.5, -value / 3.5});  // the scale of compare_quantized
    }
    values.insert(values.end(), {1e9, -1e9, HUGE_VAL, -HUGE_VAL, 1e-30, -1e-30, NAN});
    values.resize(1024);
    compare_quantized({16, 64}, narrowed<T>(values), format, Fp8Scaling::delayed);
  }
}

TYPED_TEST(GpuFp8Quantize, NothingAndInfinityHaveTheScaleOne) {
  using T = TypeParam;
  test_device();
  std::vector<double> values(256, 0.0);
  compare_quantized({16, 16}, narrowed<T>(values), Fp8Format::e4m3, Fp8Scaling::current);
  values[17] = 1e-40;  // its quotient is infinite; nothing in the 16-bit formats
  compare_quantized({16, 16}, narrowed<T>(values), Fp8Format::e4m3, Fp8Scaling::current);
  values[3] = std::numeric_limits<double>::infinity();
  values[4] = NAN;
  compare_quantized({16, 16}, narrowed<T>(values), Fp8Format::e5m2, Fp8Scaling::current);
}

TEST(GpuFp8Bits, OneOfTheTwoResultsMayBeLeftOut) {
  test_device();
  const DeviceVector<float> x(std::vector<float>(16 * 32, 1.5f));
  ScaleOfBoth scale;
  const auto y = DeviceVector<uint8_t>::poisoned(16 * 32);
  gpu_ops<float>().fp8_quantize(
      Fp8Quantize<float>{16, 32, x.data(), Fp8Format::e4m3, Fp8Scaling::delayed, scale.on_device(), y.data()});
  EXPECT_EQ(y.download(), std::vector<uint8_t>(16 * 32, 0x3C));  // 1.5
  const auto transposed = DeviceVector<uint8_t>::poisoned(16 * 32);
  gpu_ops<float>().fp8_quantize(Fp8Quantize<float>{16, 32, x.data(), Fp8Format::e4m3, Fp8Scaling::delayed,
                                                   scale.on_device(), nullptr, transposed.data()});
  EXPECT_EQ(transposed.download(), std::vector<uint8_t>(16 * 32, 0x3C));
}

// The scale follows the greatest of the last three amaxes, and stays where there was nothing or infinity.
TEST(GpuFp8Bits, ScalesFollowTheHistory) {
  test_device();
  constexpr int64_t tensors = 300, length = 3;
  std::vector<float> largest(tensors, 448.0f), history(tensors * length, 0.0f), scale(tensors, 1.0f),
      back(tensors, 1.0f);
  largest[1] = 57344.0f;
  const DeviceVector<float> largest_there(largest), history_there(history), scale_there(scale), back_there(back);
  DeviceVector<float> amax_there(std::vector<float>(tensors, 0.0f));
  const std::vector<std::vector<float>> steps = {{2, 0, 1e-42f}, {8, 4, 0}, {1, INFINITY, 0}, {1, 1, 0}, {1, 1, 0}};
  for (size_t step = 0; step < steps.size(); ++step) {
    SCOPED_TRACE(step);
    std::vector<float> amax(tensors, 5.0f);
    std::copy(steps[step].begin(), steps[step].end(), amax.begin());
    amax_there.upload(amax);
    const auto at = static_cast<int64_t>(step);
    gpu_ops<float>().fp8_next_scales({tensors, length, at, largest_there.data(), history_there.data(),
                                      scale_there.data(), back_there.data(), amax_there.data()});
    reference::fp8_next_scales(
        {tensors, length, at, largest.data(), history.data(), scale.data(), back.data(), amax.data()});
    EXPECT_EQ(scale_there.download(), scale);
    EXPECT_EQ(back_there.download(), back);
    EXPECT_EQ(history_there.download(), history);
    EXPECT_EQ(amax_there.download(), amax);
  }
  EXPECT_EQ(scale[0], 448.0f);  // 1, after 8 has left the history
}

// A random matrix quantised on the device, and what its bytes stand for.
struct QuantizedMatrix {
  QuantizedMatrix(int64_t row_count, int64_t col_count, Fp8Format which, uint64_t seed)
      : rows(row_count), cols(col_count), format(which), y(DeviceVector<uint8_t>::poisoned(rows * cols)) {
    const DeviceVector<bf16> x(narrowed<bf16>(random_values(rows * cols, seed, 0.03)));
    gpu_ops<bf16>().fp8_quantize(
        Fp8Quantize<bf16>{rows, cols, x.data(), format, Fp8Scaling::current, scale.on_device(), y.data()});
    const double back = static_cast<double>(scale.device.download()[1]);
    for (const uint8_t byte : y.download()) values.push_back(reference::fp8_value<double>(byte, format) * back);
  }
  Fp8Matrix on_device() { return {y.data(), rows, cols, format, scale.device.data() + 1}; }
  MatrixView<const double> view() const { return matrix(values.data(), rows, cols); }
  int64_t rows, cols;
  Fp8Format format;
  ScaleOfBoth scale;
  DeviceVector<uint8_t> y;
  std::vector<double> values;
};

template <class C>
void compare_fp8_product(QuantizedMatrix& a, QuantizedMatrix& b, bool accumulate) {
  auto expected = rounded<C>(random_values(a.rows * b.rows, 9, 0.01));
  const DeviceVector<C> c(narrowed<C>(expected));
  reference::matmul<double, double>(a.view(), transposed(b.view()), matrix(expected.data(), a.rows, b.rows),
                                    accumulate);
  gpu_ops<C>().fp8_matmul(
      Fp8Product<C>{a.on_device(), b.on_device(), matrix(c.data(), a.rows, b.rows), accumulate, false});
  expect_close(c, expected, tolerance_of<C>());
}

TEST(GpuFp8Product, IsTheProductOfWhatTheBytesStandFor) {
  test_device();
  const Fp8Format formats[][2] = {{Fp8Format::e4m3, Fp8Format::e4m3}, {Fp8Format::e5m2, Fp8Format::e4m3}};
  for (const auto& [first, second] : formats)
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{16, 16, 16}, {48, 32, 80}, {64, 144, 32}}) {
      SCOPED_TRACE(testing::Message() << m << "×" << n << "×" << k);
      QuantizedMatrix a(m, k, first, 1), b(n, k, second, 2);
      compare_fp8_product<float>(a, b, false);
      compare_fp8_product<float>(a, b, true);
      compare_fp8_product<bf16>(a, b, false);
      compare_fp8_product<f16>(a, b, false);
    }
}

TEST(GpuFp8Product, SaysWhereTheLibraryHasNoKernel) {
  test_device();
  QuantizedMatrix a(16, 16, Fp8Format::e5m2, 1), b(16, 16, Fp8Format::e5m2, 2);
  const auto c = DeviceVector<float>::poisoned(256);
  EXPECT_THROW(gpu_ops<float>().fp8_matmul(
                   Fp8Product<float>{a.on_device(), b.on_device(), matrix(c.data(), 16, 16), false, false}),
               Error);
}

}  // namespace
}  // namespace tprimat::engine::gpu
