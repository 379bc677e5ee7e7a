#include "device/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tprimat::engine {
namespace {

constexpr int k_max_threads = 1024;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether `done` came true within the time that waking a sleeping thread takes: sleeping earlier would cost more than
// it saves, spinning longer takes the processor from those who have work.
template <class Done>
bool spin_until(Done&& done) {
  constexpr auto k_longest = std::chrono::microseconds(50);
  constexpr int k_between_looks_at_the_clock = 32;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < k_between_looks_at_the_clock; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() - start < k_longest);
  return done();
}

// The pool's threads block all signals, so that the main thread handles them.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

thread_local bool t_is_working = false;  // on a piece, here or further up the stack

}  // namespace

// `left` counts down; the pieces of share t are [count t/T, count (t+1)/T), the last ones first.
struct alignas(128) ThreadPool::Share {
  std::atomic<int> left{0};
};

ThreadPool& ThreadPool::shared() {
  static auto* const pool = new ThreadPool;  // never destroyed: its threads sleep until the process ends
  return *pool;
}

ThreadPool::ThreadPool()
    : size_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, k_max_threads)),
      shares_(new Share[k_max_threads]) {}

void ThreadPool::resize(int threads) {
  const std::lock_guard lock(in_use_);
  size_ = std::clamp(threads, 1, k_max_threads);
}

void ThreadPool::start(int number) {
  const AllSignalsBlocked blocked;
  try {
    std::thread([this, number] { work_as(number); }).detach();
  } catch (const std::system_error& error) {
    throw Error(Problem{fmt::format("thread {} of {} does not start: {}", number + 1, size(), error.code().message()),
                        "",
                        "raise the process limit (ulimit -u, or pids.max of the control group), or use fewer "
                        "processors (taskset -c 0-7)"});
  }
}

void ThreadPool::work_as(int number) {
  t_is_working = true;
  for (;;) {
    const int seen = published_.load(std::memory_order_acquire);
    if (number < size()) take_pieces(number);
    const auto is_new = [&] { return published_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(is_new)) published_.wait(seen, std::memory_order_acquire);
  }
}

// A claim is valid whichever loop the piece belongs to: task, context and count cannot change before the piece is done.
bool ThreadPool::take_piece(int share) {
  std::atomic<int>& left = shares_[static_cast<size_t>(share)].left;
  int seen = left.load(std::memory_order_relaxed);
  do {
    if (seen == 0) return false;
  } while (!left.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire, std::memory_order_relaxed));
  try {
    task_(context_, count_ * share / share_count_ + seen - 1);
  } catch (...) {
    keep_failure();
  }
  if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
  return true;
}

void ThreadPool::keep_failure() {
  const std::lock_guard lock(failure_in_use_);
  if (!failure_) failure_ = std::current_exception();
}

void ThreadPool::take_pieces(int number) {
  const int shares = size();
  for (int i = 0; i < shares; ++i)
    while (take_piece((number + i) % shares)) continue;
}

void ThreadPool::wait_until_done() {
  if (spin_until([&] { return undone_.load(std::memory_order_acquire) == 0; })) return;
  for (int undone = undone_.load(std::memory_order_acquire); undone != 0;
       undone = undone_.load(std::memory_order_acquire))
    undone_.wait(undone, std::memory_order_acquire);
}

void ThreadPool::run(int64_t count, Task task, void* context) {
  std::unique_lock lock(in_use_, std::defer_lock);
  if (count <= 1 || size() == 1 || t_is_working || !lock.try_lock()) {
    for (int64_t index = 0; index < count; ++index) task(context, index);
    return;
  }
  CHECK(count < std::numeric_limits<int>::max());
  for (; started_ < size(); ++started_) start(started_);
  t_is_working = true;
  task_ = task, context_ = context, count_ = count, share_count_ = size();
  undone_.store(static_cast<int>(count), std::memory_order_relaxed);
  for (int t = 0; t < share_count_; ++t)
    shares_[static_cast<size_t>(t)].left.store(
        static_cast<int>(count * (t + 1) / share_count_ - count * t / share_count_), std::memory_order_release);
  published_.fetch_add(1, std::memory_order_release);
  published_.notify_all();
  take_pieces(0);
  wait_until_done();
  t_is_working = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace tprimat::engine
