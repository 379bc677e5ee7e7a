#include "device/arena.h"

#include <new>

namespace tprimat {
namespace {

constexpr size_t k_alignment = 128;                // two cache lines: no false sharing, aligned vectors
constexpr size_t k_any_machine = size_t{1} << 60;  // bytes; sums of such sizes do not overflow
constexpr size_t k_huge_page = size_t{2} << 20;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

size_t ArenaPlan::reserve_bytes(const std::string& component, size_t count, size_t size) {
  const size_t offset = next_;
  if (count > k_any_machine / size || offset > k_any_machine) throw std::bad_alloc();
  next_ += round_up(count * size, k_alignment);
  if (next_ > total_) {
    by_component_[component] += next_ - total_;
    total_ = next_;
  }
  return offset;
}

Arena::Arena(const ArenaPlan& plan, Device& device)
    : device_(device), bytes_(round_up(plan.total_bytes() + 1, k_huge_page)), base_(device.allocate(bytes_)) {}

Arena::~Arena() { device_.release(base_, bytes_); }

}  // namespace tprimat
