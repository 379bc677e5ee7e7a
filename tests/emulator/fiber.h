#pragma once

#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstddef>

namespace tprimat::engine::gpu::host {

// A stack with closed memory below it, where it ends when it grows too large.
class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  std::byte* bottom() const;
  static size_t bytes();

 private:
  std::byte* memory_;
};

// A line of work with a stack of its own, which goes on where it was left. A thread's own line is a Fiber that was
// never started.
class Fiber {
 public:
  // Calls enter() when it is gone to for the first time; enter() never returns.
  void start(void (*enter)());
  // Leaves this one for another, and returns when somebody comes back; never, where it is left for ever.
  void leave_for(Fiber& next, bool for_ever = false);

 private:
  static void begin();
  void arrive();

  std::unique_ptr<FiberStack> stack_;
  void (*enter_)() = nullptr;
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_;
#endif
  // What the address sanitizer is told of.
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace tprimat::engine::gpu::host
