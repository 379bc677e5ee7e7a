#include "memory/weight_plan.h"

#include <new>

#include "base/check.h"

namespace tprimat {
namespace {

constexpr int64_t k_weight_step = 64;                // elements: every weight starts on its own cache lines
constexpr int64_t k_max_weights = int64_t{1} << 60;  // more than any machine holds; sums of such do not overflow

int64_t next_multiple(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

WeightPlan::WeightPlan(int64_t shares) : grain_(k_weight_step * shares) {}

void WeightPlan::begin_unit() {
  size_ = next_multiple(size_, grain_);
  units_.push_back({size_, size_});
}

ElementRange WeightPlan::add(int64_t count) {
  CHECK(!units_.empty());
  if (count > k_max_weights || size_ > k_max_weights) throw std::bad_alloc();
  const int64_t begin = size_;
  count_ += count;
  size_ = next_multiple(begin + count, k_weight_step);
  units_.back().end = next_multiple(size_, grain_);
  return {begin, begin + count};
}

int64_t WeightPlan::largest_unit() const {
  int64_t largest = 0;
  for (const ElementRange& unit : units_) largest = std::max(largest, unit.size());
  return largest;
}

}  // namespace tprimat
