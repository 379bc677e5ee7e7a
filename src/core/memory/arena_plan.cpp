#include "memory/arena_plan.h"

#include <algorithm>
#include <new>

#include "base/check.h"

namespace tprimat {
namespace {

constexpr size_t k_alignment = 128;  // two cache lines: no false sharing, aligned vectors
constexpr size_t k_huge_page = size_t{2} << 20;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

const char* name_in_reports(Component component) {
  switch (component) {
    case Component::weights:
    case Component::gathered_weights: return "weights";
    case Component::gradients:
    case Component::reduced_gradients: return "gradients";
    case Component::master_weights: return "master weights";
    case Component::moments: return "optimizer";
    case Component::activations: return "activations";
    case Component::logits: return "logits";
    case Component::workspace: return "workspace";
    case Component::batch: return "batch";
  }
  CHECK(!"a component");
}

constexpr int64_t k_weight_step = 64;                // elements: every weight starts on its own cache lines
constexpr int64_t k_max_weights = int64_t{1} << 60;  // more than any machine holds; sums of such do not overflow

int64_t next_multiple(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

size_t ArenaPlan::reserve_bytes(Component component, size_t count, size_t size) {
  const size_t offset = next_;
  if (count > k_any_machine / size || offset > k_any_machine) throw std::bad_alloc();
  next_ += round_up(count * size, k_alignment);
  if (next_ > total_) {
    by_component_[static_cast<size_t>(component)] += next_ - total_;
    total_ = next_;
  }
  return offset;
}

size_t ArenaPlan::allocated_bytes() const { return round_up(total_ + 1, k_huge_page); }

std::map<std::string, size_t> ArenaPlan::bytes_by_component() const {
  std::map<std::string, size_t> named;
  for (size_t i = 0; i < k_component_count; ++i)
    if (by_component_[i] > 0) named[name_in_reports(static_cast<Component>(i))] += by_component_[i];
  return named;
}

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
