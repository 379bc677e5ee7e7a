#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/gpu/device.h"
#include "unit/op_values.h"

// What the tests of GPU operations share; the same sources run on the host shim and on a GPU.
namespace tprimat::engine::gpu {

// Lives to the end of the process, when the libraries that its end needs may be gone.
inline Accelerator& test_device() {
  static Accelerator* const device = make_device(0).release();
  return *device;
}

// Values in the device's memory.
template <class T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values) : DeviceVector(values.size()) { upload(values); }
  // `count` values that nobody may rely on: NaN, −1 where T is an integer.
  static DeviceVector poisoned(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    if (count > 0) std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(T));
    return DeviceVector(values);
  }
  DeviceVector(DeviceVector&& other) noexcept
      : count_(std::exchange(other.count_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceVector& operator=(DeviceVector&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceVector() {
    if (data_ != nullptr) test_device().release(reinterpret_cast<std::byte*>(data_), count_ * sizeof(T));
  }

  T* data() const { return data_; }
  int64_t size() const { return static_cast<int64_t>(count_); }
  void upload(const std::vector<T>& values) {
    ASSERT_EQ(values.size(), count_);
    if (count_ > 0) test_device().upload(data_, values.data(), count_ * sizeof(T));
  }
  // Waits for all work given so far.
  std::vector<T> download() const {
    std::vector<T> values(count_);
    if (count_ > 0) test_device().download(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  explicit DeviceVector(size_t count) : count_(count) {
    if (count > 0) data_ = reinterpret_cast<T*>(test_device().allocate(count * sizeof(T)));
  }
  size_t count_ = 0;
  T* data_ = nullptr;
};

// ‖values on the device − expected‖ ≤ tolerance · ‖expected‖; no NaN passes.
template <class T>
void expect_close(const DeviceVector<T>& actual, const std::vector<double>& expected, double tolerance) {
  tprimat::engine::expect_close(widened(actual.download()), expected, tolerance);
}

// The number formats of trainings: TYPED_TEST_SUITE(GpuNorm, GpuTypes), class GpuNorm : public GpuOp<T>.
template <class T>
class GpuOp : public ::testing::Test {};
using GpuTypes = ::testing::Types<float, bf16, f16>;

}  // namespace tprimat::engine::gpu
