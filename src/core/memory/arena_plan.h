#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace tprimat {

// Buffers of a plan live either in the arena itself or in a bank: one of several equal copies inside the arena, one per
// micro batch under way.
enum class Place : uint8_t { arena, bank };

// Value types that the engine defines.
struct Element;       // as products read them: in the training's precision
struct Sum;           // gradients of weights, masters, statistics: fp32, and fp64 in the reference
struct ShortElement;  // in bf16 whatever the precision

// Space for `count` values of V; assigned while planning, valid once the arena exists.
template <class V>
struct Slot {
  size_t offset = 0;  // bytes from the arena's or the bank's start
  int64_t count = 0;
  Place place = Place::arena;
};

inline constexpr size_t k_any_machine = size_t{1} << 60;  // bytes, more than any has; sums of such do not overflow

struct ValueBytes {
  size_t element = 4, sum = 4;
};

// Purpose of a buffer.
enum class Component : uint8_t {
  weights,
  gathered_weights,  // of other ranks, for a while
  gradients,
  reduced_gradients,  // on their way to other ranks
  master_weights,
  moments,
  activations,
  logits,
  workspace,
  batch
};
inline constexpr size_t k_component_count = 10;

// Lists every buffer of a training before the first step. Nothing is allocated during training.
class ArenaPlan {
 public:
  explicit ArenaPlan(ValueBytes values = {}, Place place = Place::arena) : values_(values), place_(place) {}

  template <class V>
  Slot<V> reserve(Component component, int64_t count) {
    CHECK(count >= 0);
    return {reserve_bytes(component, static_cast<size_t>(count), bytes_of<V>()), count, place_};
  }
  ValueBytes values() const { return values_; }
  size_t total_bytes() const { return total_; }
  size_t allocated_bytes() const;  // whole huge pages
  size_t bytes_of(Component component) const { return by_component_[static_cast<size_t>(component)]; }
  // By the names of reports.
  std::map<std::string, size_t> bytes_by_component() const;

  // Buffers reserved after rewind(mark()) share memory with those reserved since the mark: for buffers that are never
  // in use at the same time.
  size_t mark() const { return next_; }
  void rewind(size_t mark) { next_ = mark; }
  // Ends the sharing: later buffers lie behind everything reserved so far.
  void seek_end() { next_ = total_; }

 private:
  template <class V>
  size_t bytes_of() const {
    if constexpr (std::is_same_v<V, Element>)
      return values_.element;
    else if constexpr (std::is_same_v<V, Sum>)
      return values_.sum;
    else if constexpr (std::is_same_v<V, ShortElement>)
      return sizeof(uint16_t);
    else
      return sizeof(V);
  }
  size_t reserve_bytes(Component component, size_t count, size_t size);  // bad_alloc beyond any machine

  ValueBytes values_;
  Place place_;
  size_t next_ = 0;
  size_t total_ = 0;
  std::array<size_t, k_component_count> by_component_{};
};

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
