#include "emulator/host_memory.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/sanitizers.h"

#if TPRIMAT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace tprimat::engine::gpu::host {
namespace {

constexpr size_t k_page = 4096, k_huge_page = size_t{2} << 20;
constexpr size_t k_alignment = 256;                // of every allocation, as cudaMalloc's
constexpr size_t k_max_filled = size_t{16} << 20;  // bytes; filling takes time and memory

struct Taken {
  std::byte* mapped = nullptr;
  size_t mapped_bytes = 0, open_bytes = 0;  // the rest is never open
  std::byte* start = nullptr;
  size_t bytes = 0;
};

std::map<std::byte*, Taken>& all_taken() {
  static std::map<std::byte*, Taken> instance;
  return instance;
}
bool is_open = false;

size_t round_to(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

void protect(const Taken& taken, int protection) { CHECK(::mprotect(taken.mapped, taken.open_bytes, protection) == 0); }

#if TPRIMAT_ADDRESS_SANITIZER
void forbid(const std::byte* from, const std::byte* to) {
  __asan_poison_memory_region(from, static_cast<size_t>(to - from));
}
void allow(const Taken& taken) { __asan_unpoison_memory_region(taken.mapped, taken.mapped_bytes); }
#else
void forbid(const std::byte*, const std::byte*) {}
void allow(const Taken&) {}
#endif

struct sigaction earlier_action;

void print_error(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(1);
}

// The instruction runs again after this, and then ends the program as it would have.
void explain_fault(int number, siginfo_t* info, void*) {
  if (is_taken(info->si_addr)) {
    print_error(is_open ? "internal error: work on the device touches memory beyond its buffer\n"
                        : "internal error: the host touches memory of the device\n");
    void* frames[32];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 32), STDERR_FILENO);
  }
  ::sigaction(number, &earlier_action, nullptr);
}

void watch_faults() {
  struct sigaction action {};
  action.sa_sigaction = explain_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &earlier_action);
}

}  // namespace

bool is_taken(const void* address) {
  for (const auto& [start, taken] : all_taken())
    if (address >= taken.mapped && address < taken.mapped + taken.mapped_bytes) return true;
  return false;
}

// The end of what was asked for lies as close to closed memory as the alignment allows.
std::byte* take_memory(size_t bytes) {
  static const bool watched = (watch_faults(), true);
  CHECK(watched);
  const size_t alignment = bytes < k_huge_page ? k_alignment : k_huge_page;
  const size_t used = round_to(bytes, k_alignment), rounded = round_to(used, k_page);
  const size_t mapped_bytes = round_to(rounded + alignment, k_page) + 2 * k_page;
  void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  Taken taken;
  taken.mapped = static_cast<std::byte*>(mapped);
  taken.mapped_bytes = mapped_bytes;
  taken.open_bytes = mapped_bytes - k_page;
  if (alignment == k_huge_page) {
    const auto address = reinterpret_cast<uintptr_t>(mapped);
    taken.start = taken.mapped + (round_to(address, k_huge_page) - address);
    taken.open_bytes = static_cast<size_t>(taken.start - taken.mapped) + rounded;
  } else {
    taken.start = taken.mapped + taken.open_bytes - used;
  }
  taken.bytes = bytes;
  protect(taken, PROT_READ | PROT_WRITE);
  if (bytes <= k_max_filled) std::memset(taken.start, 0xFF, bytes);
  if (!is_open) protect(taken, PROT_NONE);
  forbid(taken.mapped, taken.start);
  forbid(taken.start + bytes, taken.mapped + taken.mapped_bytes);
  all_taken()[taken.start] = taken;
  return taken.start;
}

bool give_memory_back(void* memory) {
  const auto found = all_taken().find(static_cast<std::byte*>(memory));
  if (found == all_taken().end()) return false;
  allow(found->second);
  ::munmap(found->second.mapped, found->second.mapped_bytes);
  all_taken().erase(found);
  return true;
}

size_t taken_bytes() {
  size_t bytes = 0;
  for (const auto& [start, taken] : all_taken()) bytes += taken.bytes;
  return bytes;
}

void open_memory() {
  for (const auto& [start, taken] : all_taken()) protect(taken, PROT_READ | PROT_WRITE);
  is_open = true;
}

void close_memory() {
  for (const auto& [start, taken] : all_taken()) protect(taken, PROT_NONE);
  is_open = false;
}

}  // namespace tprimat::engine::gpu::host
