#include "nn/parameters.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace tprimat {
namespace {

constexpr int64_t k_alignment = 64;  // elements: every weight starts on its own cache lines

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a bijection whose outputs pass for independent draws.
uint64_t mix(uint64_t state) {
  state += 0x9E3779B97F4A7C15u;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}

// FNV-1a, 64 bits.
uint64_t hash_name(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// In (0, 1]: 53 random bits.
double unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 1.0) * 0x1.0p-53; }

}  // namespace

int64_t Shard::row_count() const {
  int64_t count = 0;
  for (const RowRange& range : rows) count += range.count;
  return count;
}

int64_t Shard::whole_index(int64_t index) const {
  int64_t row = index / cols;
  for (const RowRange& range : rows) {
    if (row < range.count) return (range.first + row) * whole_cols + first_col + index % cols;
    row -= range.count;
  }
  CHECK(!"the index is inside the shard");
}

void ParameterTable::begin_unit(const std::string& name) {
  size_ = round_up(size_, grain_);
  units_.push_back({name, size_, size_});
}

int64_t ParameterTable::add(Parameter parameter) {
  CHECK(!units_.empty());
  parameter.offset = size_;
  count_ += parameter.count();
  size_ = round_up(size_ + parameter.count(), k_alignment);
  units_.back().end = round_up(size_, grain_);
  all_.push_back(std::move(parameter));
  return all_.back().offset;
}

std::vector<ElementRange> ParameterTable::ranges_to_clear(const ElementRange& of) const {
  std::vector<ElementRange> ranges;
  int64_t begin = of.begin;
  for (const Parameter& parameter : all_) {
    if (!parameter.is_written_first || parameter.offset < of.begin || parameter.offset >= of.end) continue;
    if (begin < parameter.offset) ranges.push_back({begin, parameter.offset});
    begin = parameter.offset + parameter.count();
  }
  if (begin < of.end) ranges.push_back({begin, of.end});
  return ranges;
}

InitialValues::InitialValues(const Parameter& parameter, int64_t seed)
    : mean_(parameter.mean),
      stddev_(parameter.stddev),
      stream_(mix(static_cast<uint64_t>(seed) ^ hash_name(parameter.name))) {}

double InitialValues::at(int64_t whole_index) const {
  if (stddev_ == 0.0) return mean_;
  const uint64_t draw = stream_ + 2 * static_cast<uint64_t>(whole_index);
  const double radius = std::sqrt(-2.0 * std::log(unit(mix(draw))));  // Box-Muller
  return mean_ + stddev_ * radius * std::cos(2.0 * std::numbers::pi * unit(mix(draw + 1)));
}

}  // namespace tprimat
