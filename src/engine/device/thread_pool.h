#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace tprimat::engine {

// Runs one loop after the other on several threads. A loop ends when all of its pieces are done, without a barrier that
// every thread must pass: a descheduled thread delays the others only while it holds a piece. Each thread takes the
// pieces of its own share first, which its caches know, and then steals pieces that no other thread has begun. An idle
// thread spins briefly and then sleeps, so that it takes no processor from threads that work.
class ThreadPool {
 public:
  using Task = void (*)(void* context, int64_t index);

  static ThreadPool& shared();
  // The calling thread and threads - 1 others, which live as long as the process.
  void resize(int threads);
  int size() const { return size_.load(std::memory_order_relaxed); }

  // task(context, index) for each index of [0, count), in any order, on any thread. A call from within a task, or while
  // another thread's loop runs, executes all of its pieces on the calling thread, in order. When a task throws, the
  // other pieces still run, and the first exception goes on from here.
  void run(int64_t count, Task task, void* context);

 private:
  struct Share;
  ThreadPool();
  void start(int number);
  void work_as(int number);
  bool take_piece(int share);
  void take_pieces(int number);
  void wait_until_done();
  void keep_failure();

  std::mutex in_use_;
  std::atomic<int> size_{1};
  int started_ = 1;
  std::unique_ptr<Share[]> shares_;  // one per thread: pieces that no thread has begun
  Task task_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  int share_count_ = 1;
  std::mutex failure_in_use_;
  std::exception_ptr failure_;     // the first of the current loop
  std::atomic<int> undone_{0};     // pieces of the current loop
  std::atomic<int> published_{0};  // number of loops so far; idle threads wait for it to change
};

}  // namespace tprimat::engine
