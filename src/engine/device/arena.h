#pragma once

#include <cstddef>
#include <type_traits>

#include "base/check.h"
#include "device/device.h"
#include "device/element.h"
#include "memory/arena_plan.h"

namespace tprimat::engine {

// What a slot's values are in a training whose elements are T.
template <class T, class V>
using Stored = std::conditional_t<
    std::is_same_v<V, Element>, T,
    std::conditional_t<std::is_same_v<V, Sum>, Accum<T>, std::conditional_t<std::is_same_v<V, ShortElement>, bf16, V>>>;

// One zeroed block of a device's memory for a whole plan.
class Arena {
 public:
  // Throws Error when the memory cannot be had. The device outlives the arena.
  explicit Arena(const ArenaPlan& plan, Device& device = cpu_device())
      : device_(device), bytes_(plan.allocated_bytes()), base_(device.allocate(bytes_)) {}
  ~Arena() { device_.release(base_, bytes_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <class T, class V>
  Stored<T, V>* as(Slot<V> slot) const {
    CHECK(slot.place == Place::arena);
    return reinterpret_cast<Stored<T, V>*>(base_ + slot.offset);
  }
  template <class V>
  V* at(Slot<V> slot) const {
    return as<void>(slot);
  }
  size_t bytes() const { return bytes_; }

 private:
  Device& device_;
  size_t bytes_;
  std::byte* base_;
};

}  // namespace tprimat::engine
