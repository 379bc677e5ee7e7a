#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace tprimat::logs {

// An optional number in 8 bytes: a log has millions of them and std::optional<double> takes 16. "Absent" is a bit
// pattern of its own, so that a NaN in the log is a known value.
class Figure {
 public:
  constexpr Figure() = default;
  constexpr Figure(double value) : bits_(std::bit_cast<uint64_t>(value)) {}  // NOLINT: a number is a figure
  constexpr bool known() const { return bits_ != k_absent; }
  constexpr explicit operator bool() const { return known(); }
  constexpr double operator*() const { return std::bit_cast<double>(bits_); }  // NaN when absent
  double value_or(double other) const { return known() ? **this : other; }
  bool finite() const { return known() && std::isfinite(**this); }
  std::optional<double> to_optional() const { return known() ? std::optional<double>(**this) : std::nullopt; }
  constexpr bool operator==(const Figure&) const = default;

 private:
  static constexpr uint64_t k_absent = 0x7ff80000'0ab5e417;  // a quiet NaN that no arithmetic makes
  uint64_t bits_ = k_absent;
};

}  // namespace tprimat::logs
