#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tprimat {

// Of the flat vector of all weights of a rank, which gradients and optimizer states mirror.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

// Where each weight lies in that vector. Weights that are gathered, reduced and released together are a unit: a block,
// an embedding, the head.
class WeightPlan {
 public:
  // Units begin and end at multiples of 64·shares elements, so that each can be cut into equal parts on cache lines of
  // their own.
  explicit WeightPlan(int64_t shares = 1);

  void begin_unit();
  // A weight of the unit begun last; bad_alloc beyond any machine.
  ElementRange add(int64_t count);

  const std::vector<ElementRange>& units() const { return units_; }
  int64_t largest_unit() const;
  int64_t size() const { return units_.empty() ? 0 : units_.back().end; }  // elements, alignment gaps included
  int64_t count() const { return count_; }                                 // weights

 private:
  int64_t grain_;
  std::vector<ElementRange> units_;
  int64_t size_ = 0;
  int64_t count_ = 0;
};

}  // namespace tprimat
