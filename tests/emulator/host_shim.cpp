#include "emulator/host_shim.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "emulator/fiber.h"

namespace tprimat::engine::gpu::host {
namespace {

constexpr int k_lanes = TPRIMAT_GPU_HOST_WARP;
constexpr size_t k_max_exchanged = 16;

enum class Waits { no, for_warp, for_block, done };

struct GpuThread {
  Fiber fiber;
  ThreadPlace place;
  Waits waits = Waits::no;
  // What its warp may take: of this exchange, and of the one before, which others may still be taking.
  std::array<std::array<std::byte, k_max_exchanged>, 2> given;
  unsigned exchanges = 0;
};

// The threads of one block, which take turns.
class Block {
 public:
  void run(const Grid& grid, dim3 index, const std::function<void()>& body);

  GpuThread& current() { return *current_; }
  GpuThread& neighbour(int lane) {
    const size_t number = static_cast<size_t>(current_ - threads_.data());
    return threads_.at(number / k_lanes * k_lanes + static_cast<size_t>(lane));
  }
  int lane() const { return static_cast<int>(current_ - threads_.data()) % k_lanes; }
  std::byte* shared() { return shared_.data(); }
  void wait(Waits kind) {
    current_->waits = kind;
    current_->fiber.leave_for(scheduler_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static void enter();
  void resume(GpuThread& thread);
  void take_turns();
  bool release(size_t first, size_t count, Waits kind);
  bool release_waiting();

  size_t count_ = 0;
  std::vector<GpuThread> threads_;
  GpuThread* current_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Fiber scheduler_;
  std::exception_ptr failure_;
  std::vector<std::byte> shared_;
};

Block& block() {
  static thread_local Block instance;
  return instance;
}

void Block::enter() {
  Block& here = block();
  try {
    (*here.body_)();
  } catch (...) {
    if (!here.failure_) here.failure_ = std::current_exception();
  }
  here.current_->waits = Waits::done;
  here.current_->fiber.leave_for(here.scheduler_, true);
}

void Block::resume(GpuThread& thread) {
  current_ = &thread;
  current_place = &thread.place;
  scheduler_.leave_for(thread.fiber);
}

// Lets those of [first, first + count) go on that all wait for each other; false where one of them waits otherwise.
bool Block::release(size_t first, size_t count, Waits kind) {
  const auto begin = threads_.begin() + static_cast<std::ptrdiff_t>(first),
             end = begin + static_cast<std::ptrdiff_t>(count);
  const auto is_in = [&](const GpuThread& thread) { return thread.waits == kind; };
  if (std::none_of(begin, end, is_in)) return false;
  if (!std::all_of(begin, end, [&](const GpuThread& t) { return t.waits == kind || t.waits == Waits::done; }))
    return false;
  for (auto thread = begin; thread != end; ++thread)
    if (is_in(*thread)) thread->waits = Waits::no;
  return true;
}

bool Block::release_waiting() {
  bool any = false;
  for (size_t first = 0; first < count_; first += k_lanes)
    any = release(first, std::min<size_t>(k_lanes, count_ - first), Waits::for_warp) || any;
  return any || release(0, count_, Waits::for_block);
}

void Block::take_turns() {
  do {
    for (size_t i = 0; i < count_; ++i) {
      if (threads_[i].waits == Waits::no) resume(threads_[i]);
    }
  } while (release_waiting());
}

void Block::run(const Grid& grid, dim3 index, const std::function<void()>& body) {
  count_ = size_t{grid.block.x} * grid.block.y * grid.block.z;
  if (threads_.size() < count_) threads_.resize(count_);
  body_ = &body;
  failure_ = nullptr;
  shared_.assign(grid.shared_bytes + 128, std::byte{0xA5});  // nothing may rely on what lies there
  size_t number = 0;
  for (unsigned z = 0; z < grid.block.z; ++z)
    for (unsigned y = 0; y < grid.block.y; ++y)
      for (unsigned x = 0; x < grid.block.x; ++x) {
        GpuThread& thread = threads_[number++];
        thread.place = {{x, y, z}, index, grid.block, grid.grid};
        thread.waits = Waits::no;
        thread.exchanges = 0;
        thread.fiber.start(&Block::enter);
      }
  take_turns();
  if (failure_) std::rethrow_exception(failure_);
  for (size_t i = 0; i < count_; ++i)
    if (threads_[i].waits != Waits::done)
      throw Error(Problem{"threads of a kernel wait for each other forever: some of them missed a barrier",
                          "GPU kernel", "every thread of a block, or of a warp, reaches each of its barriers"},
                  ExitStatus::work_failed);
}

int64_t grids = 0;

// As devices have it: an H100's opt-in of 227 KiB, AMD's 64 KiB.
constexpr size_t k_max_shared_bytes = (k_lanes == 64 ? size_t{64} : size_t{227}) << 10;

}  // namespace

int64_t grids_run() { return grids; }

void run_grid(const Grid& grid, const std::function<void()>& body) {
  CHECK(grid.block.x * grid.block.y * grid.block.z <= 1024);
  CHECK(grid.grid.x >= 1 && grid.grid.x <= 0x7FFFFFFFu && grid.grid.y >= 1 && grid.grid.y <= 65535 &&
        grid.grid.z >= 1 && grid.grid.z <= 65535);
  CHECK(grid.shared_bytes <= k_max_shared_bytes);
  ++grids;
  for (unsigned z = 0; z < grid.grid.z; ++z)
    for (unsigned y = 0; y < grid.grid.y; ++y)
      for (unsigned x = 0; x < grid.grid.x; ++x) block().run(grid, dim3(x, y, z), body);
}

constinit thread_local const ThreadPlace* current_place = nullptr;

std::byte* dynamic_shared() {
  const auto address = reinterpret_cast<uintptr_t>(block().shared());
  return reinterpret_cast<std::byte*>((address + 127) / 128 * 128);
}

void sync_block() { block().wait(Waits::for_block); }
void sync_warp() { block().wait(Waits::for_warp); }
int lane() { return block().lane(); }

void exchange(const void* given, size_t bytes, int from, void* taken) {
  CHECK(bytes <= k_max_exchanged && from >= 0 && from < k_lanes);
  GpuThread& here = block().current();
  const unsigned turn = here.exchanges++ % 2;
  std::memcpy(here.given[turn].data(), given, bytes);
  sync_warp();
  std::memcpy(taken, block().neighbour(from).given[turn].data(), bytes);
}

}  // namespace tprimat::engine::gpu::host
