#pragma once

#include <cstdint>
#include <vector>

namespace tprimat::logs {

inline constexpr int64_t k_max_nanoseconds = int64_t{1} << 61;  // sums and differences of two of these fit

// An interval [begin, end) in whole nanoseconds, so that all sums below are exact.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

// A set of points in time: ordered, non-empty spans that neither touch nor overlap.
using IntervalSet = std::vector<Span>;

IntervalSet unite(std::vector<Span> spans);                              // of spans in any order
IntervalSet unite(const IntervalSet& a, const IntervalSet& b);           // a or b
IntervalSet subtract(const IntervalSet& from, const IntervalSet& what);  // from, but not what
IntervalSet clip(const IntervalSet& set, const Span& window);            // the part inside the window
int64_t measure(const IntervalSet& set);                                 // total length

}  // namespace tprimat::logs
