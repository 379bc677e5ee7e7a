#include "device/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <new>

#include "base/error.h"

namespace tprimat {
namespace {

constexpr size_t k_alignment = 128;  // two cache lines: no false sharing, aligned vectors
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

Arena::Arena(const ArenaPlan& plan) : bytes_(round_up(plan.total_bytes() + 1, k_huge_page)) {
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(
        Problem{fmt::format("cannot get {:.2f} GB of memory for the training", static_cast<double>(bytes_) / 1e9), "",
                "use a smaller micro batch, sequence length or model"},
        ExitStatus::work_failed);
  // Wishes: without them the training is only slower, or its first step is.
  ::madvise(memory, bytes_, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  ::madvise(memory, bytes_, MADV_POPULATE_WRITE);
#endif
  base_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() { ::munmap(base_, bytes_); }

}  // namespace tprimat
