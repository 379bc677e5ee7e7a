#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "text/enum_names.h"

namespace tprimat::results {

using Evidences = std::vector<Evidence>;

inline std::string words(const std::string& value) { return value; }
inline std::string words(int64_t value) { return fmt::format("{}", value); }
inline std::string words(double value) { return fmt::format("{:g}", value); }
inline std::string words(bool value) { return value ? "yes" : "no"; }
template <NamedEnum E>
std::string words(E value) {
  return std::string(enum_name(value));
}

template <class T>
bool is_equal(const T& a, const T& b) {
  return a == b;
}
// Files round, and single precision writes 0.1 as 0.10000000149.
inline bool is_equal(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::max(std::fabs(a), std::fabs(b)); }

// Known on both sides and different.
template <class T>
void add(Evidences& evidence, const char* what, const std::optional<T>& reference, const std::optional<T>& subject) {
  if (reference && subject && !is_equal(*reference, *subject))
    evidence.push_back({what, words(*reference), words(*subject)});
}
template <class T>
void add(Evidences& evidence, const char* what, const T& reference, const T& subject) {
  add(evidence, what, std::optional<T>(reference), std::optional<T>(subject));
}

}  // namespace tprimat::results
