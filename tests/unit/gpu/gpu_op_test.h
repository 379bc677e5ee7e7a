#pragma once

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "unit/gpu/device_vector.h"

// What the tests of kernels share: new random inputs in every run, and comparisons of each single value.
namespace tprimat::engine::gpu {

// TPRIMAT_TEST_SEED repeats the inputs of a run; a failure names it.
class Draws {
 public:
  Draws() {
    const char* const stated = std::getenv("TPRIMAT_TEST_SEED");
    seed_ = stated != nullptr ? std::stoull(stated) : std::random_device{}();
  }
  std::string name() const { return "TPRIMAT_TEST_SEED=" + std::to_string(seed_); }
  std::vector<double> normal(int64_t count, double scale = 1.0) {
    return random_values(count, seed_ + 1'000'003 * ++drawn_, scale);
  }
  // Values that T holds exactly.
  template <class T>
  std::vector<double> of(int64_t count, double scale = 1.0) {
    return rounded<T>(normal(count, scale));
  }
  std::vector<int32_t> integers(int64_t count, int32_t first, int32_t last) {
    std::mt19937_64 generator(seed_ + 1'000'003 * ++drawn_);
    std::uniform_int_distribution<int32_t> uniform(first, last);
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& value : values) value = uniform(generator);
    return values;
  }

 private:
  uint64_t seed_;
  uint64_t drawn_ = 0;
};

template <class T>
DeviceVector<T> on_device(const std::vector<double>& values) {
  return DeviceVector<T>(narrowed<T>(values));
}

// Half the distance between two numbers of T around 1, and somewhat more for the arithmetic before the rounding.
template <class T>
constexpr double rounding_of() {
  if constexpr (std::is_same_v<T, bf16>) return 4.1e-3;
  if constexpr (std::is_same_v<T, f16>) return 5.5e-4;
  return 5e-6;
}

// Every value within `roundings` roundings to T of its own size, or within few of a float's of the values' usual size.
template <class T>
void expect_each_close(const DeviceVector<T>& actual, const std::vector<double>& expected, double roundings = 1.0) {
  const std::vector<double> found = widened(actual.download());
  ASSERT_EQ(found.size(), expected.size());
  double squares = 0;
  for (const double value : expected) squares += value * value;
  const double usual = std::sqrt(squares / std::max<double>(1.0, static_cast<double>(expected.size())));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], roundings * (rounding_of<T>() * std::abs(expected[i]) + 1e-5 * usual) + 1e-7)
        << "value " << i << " of " << expected.size();
}

// Both hold the same bits.
template <class T>
void expect_same_bits(const DeviceVector<T>& a, const DeviceVector<T>& b) {
  const auto first = a.download(), second = b.download();
  ASSERT_EQ(first.size(), second.size());
  if (!first.empty()) {
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(T)), 0);
  }
}

// A vector that begins one value behind an address of whole packs.
template <class T>
struct Shifted {
  explicit Shifted(const std::vector<double>& values) : memory(on_device<T>(padded(values))) {}
  T* data() const { return memory.data() + 1; }
  std::vector<double> download() const {
    auto values = widened(memory.download());
    values.erase(values.begin());
    return values;
  }
  static std::vector<double> padded(std::vector<double> values) {
    values.insert(values.begin(), 0.0);
    return values;
  }
  DeviceVector<T> memory;
};

}  // namespace tprimat::engine::gpu
