#pragma once

#include <cstdint>
#include <optional>

#include "device/arena.h"

namespace tprimat::engine {

// Memory that grows to the largest need so far.
template <class T>
class GrowingBuffer {
 public:
  GrowingBuffer() { cpu_device(); }  // made first, so it outlives the buffer, whose memory goes back to it
  T* at_least(int64_t count) {
    if (slot_.count < count) {
      arena_.reset();
      slot_ = {};
      ArenaPlan plan;
      const Slot<T> larger = plan.reserve<T>(Component::workspace, count);
      arena_.emplace(plan);
      slot_ = larger;
    }
    return arena_->at(slot_);
  }

 private:
  Slot<T> slot_;
  std::optional<Arena> arena_;
};

}  // namespace tprimat::engine
