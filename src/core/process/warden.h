#pragma once

namespace tprimat {

// A warden is a small process between us and a program that we start. It is the parent of that program and adopts every
// descendant that loses its own parent (PR_SET_CHILD_SUBREAPER), so it can end them all: on request, when the program
// leaves processes behind, when its time limit passes, and when the pipe from us closes because we ended, even by
// SIGKILL. If the warden itself is killed, the kernel kills the program (PR_SET_PDEATHSIG). We watch the time limit as
// well and wake a stopped warden: the limit holds even if one of the three gets SIGSTOP.

// Everything is prepared before fork(): afterwards only async-signal-safe calls are allowed.
struct WardenJob {
  const char* program = nullptr;  // path to execute
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* working_directory = nullptr;  // null: ours
  int output = -1;                          // becomes stdout and stderr of the program
  int orders = -1;                          // read end: k_order_stop, k_order_kill; end of file means that we ended
  int reports = -1;                         // write end: WardenReport
  int kept_open = -1;                       // closes when nothing of the tree is left; -1: none
  double time_limit_seconds = 0.0;          // 0: none
  double grace_seconds = 10.0, orphaned_grace_seconds = 2.0;
  const char* input = "/dev/null";  // becomes stdin of the program
};

// A process in uninterruptible sleep may outlive SIGKILL; this is the longest wait for it.
inline constexpr double k_kill_patience_seconds = 10.0;

inline constexpr char k_order_stop = 'T';  // SIGTERM, then SIGKILL after the grace time
inline constexpr char k_order_kill = 'K';

struct WardenReport {
  enum class What : int {
    started,          // value: process id of the program
    failed_to_start,  // value: errno
    timed_out,        // its time limit passed, and it was asked to end
    ended,            // value: wait status of the program; nothing of its tree is left
  };
  What what;
  int value;
};

// Runs in the forked child and never returns.
[[noreturn]] void run_warden(const WardenJob& job);

}  // namespace tprimat
