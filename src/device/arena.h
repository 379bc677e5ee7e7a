#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"

namespace tprimat {

// A place for `count` values of T inside an Arena; handed out while planning, valid once the arena exists.
template <class T>
struct Slot {
  size_t offset = 0;  // bytes from the arena's start
  int64_t count = 0;
};

// Lists every buffer a training will ever need, before the first step. Nothing is allocated while training.
class ArenaPlan {
 public:
  // `component` groups buffers for the memory report: "weights", "gradients", "activations" ...
  template <class T>
  Slot<T> reserve(const std::string& component, int64_t count) {
    CHECK(count >= 0);
    return {reserve_bytes(component, static_cast<size_t>(count) * sizeof(T)), count};
  }
  size_t total_bytes() const { return total_; }
  const std::map<std::string, size_t>& bytes_by_component() const { return by_component_; }

 private:
  size_t reserve_bytes(const std::string& component, size_t bytes);
  size_t total_ = 0;
  std::map<std::string, size_t> by_component_;
};

// One zeroed block of memory for a whole plan, on huge pages where the system offers them (page faults and TLB misses
// are dear on virtual machines).
class Arena {
 public:
  explicit Arena(const ArenaPlan& plan);  // throws Error when the memory cannot be had
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <class T>
  T* at(Slot<T> slot) const {
    return reinterpret_cast<T*>(base_ + slot.offset);
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tprimat
