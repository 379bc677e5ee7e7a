#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "device/device.h"

namespace tprimat {

// Buffers of a plan live either in the arena itself or in a bank: one of several equal copies inside the arena, one per
// micro batch under way.
enum class Place : uint8_t { arena, bank };

// A place for `count` values of T; handed out while planning, valid once the arena exists.
template <class T>
struct Slot {
  size_t offset = 0;  // bytes from the arena's or the bank's start
  int64_t count = 0;
  Place place = Place::arena;
};

// Lists every buffer a training will ever need, before the first step. Nothing is allocated while training.
class ArenaPlan {
 public:
  explicit ArenaPlan(Place place = Place::arena) : place_(place) {}

  // `component` groups buffers for the memory report: "weights", "gradients", "activations" ...
  template <class T>
  Slot<T> reserve(const std::string& component, int64_t count) {
    CHECK(count >= 0);
    return {reserve_bytes(component, static_cast<size_t>(count), sizeof(T)), count, place_};
  }
  size_t total_bytes() const { return total_; }
  const std::map<std::string, size_t>& bytes_by_component() const { return by_component_; }

  // What is reserved after rewind(mark()) shares its memory with what was reserved since: for buffers that are never in
  // use at the same time.
  size_t mark() const { return next_; }
  void rewind(size_t mark) { next_ = mark; }
  // Ends the sharing: what follows lies behind everything reserved so far.
  void seek_end() { next_ = total_; }

 private:
  size_t reserve_bytes(const std::string& component, size_t count, size_t size);  // bad_alloc beyond any machine
  Place place_;
  size_t next_ = 0;
  size_t total_ = 0;
  std::map<std::string, size_t> by_component_;
};

// One zeroed block of a device's memory for a whole plan.
class Arena {
 public:
  // Throws Error when the memory cannot be had. The device outlives the arena.
  explicit Arena(const ArenaPlan& plan, Device& device = cpu_device());
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <class T>
  T* at(Slot<T> slot) const {
    CHECK(slot.place == Place::arena);
    return reinterpret_cast<T*>(base_ + slot.offset);
  }
  size_t bytes() const { return bytes_; }

 private:
  Device& device_;
  size_t bytes_;
  std::byte* base_;
};

}  // namespace tprimat
