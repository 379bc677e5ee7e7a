#pragma once

namespace tprimat {

// While one of these lives, SIGINT, SIGTERM and SIGHUP do not end the program but are counted; waiting system calls
// return early. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  int count() const;  // requests to stop since construction: 0, 1, 2 (stop at once)
};

// Call first in a thread of our own: signals then go to the main thread, whose waiting they must end.
void block_signals_in_this_thread();

}  // namespace tprimat
