#include "nn/parameters.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace tprimat {
namespace {

constexpr int64_t k_alignment = 64;  // elements: every weight starts on its own cache lines

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

int64_t ParameterTable::add(Parameter parameter) {
  parameter.offset = size_;
  count_ += parameter.count();
  size_ += (parameter.count() + k_alignment - 1) / k_alignment * k_alignment;
  all_.push_back(std::move(parameter));
  return all_.back().offset;
}

int64_t ParameterTable::add_matrix(const std::string& name, int64_t rows, int64_t cols, double stddev) {
  return add({name, 0, rows, cols, 0.0, stddev, true});
}

int64_t ParameterTable::add_vector(const std::string& name, int64_t count, double value) {
  return add({name, 0, 1, count, value, 0.0, false});
}

InitialValues::InitialValues(const Parameter& parameter, int64_t seed)
    : mean_(parameter.mean),
      stddev_(parameter.stddev),
      stream_(mix(static_cast<uint64_t>(seed) ^ hash_name(parameter.name))) {}

double InitialValues::at(int64_t index) const {
  if (stddev_ == 0.0) return mean_;
  const uint64_t draw = stream_ + 2 * static_cast<uint64_t>(index);
  const double radius = std::sqrt(-2.0 * std::log(unit(mix(draw))));  // Box-Muller
  return mean_ + stddev_ * radius * std::cos(2.0 * std::numbers::pi * unit(mix(draw + 1)));
}

}  // namespace tprimat
