#pragma once

#include <string>

namespace tprimat {

// Why a child process is no longer there.
struct ExitReason {
  enum class Kind {
    exited,       // by itself, with `code`
    signalled,    // by signal number `code` that we did not send
    timed_out,    // we stopped it: its time limit was over
    interrupted,  // we stopped it: the user asked
  };
  Kind kind = Kind::exited;
  int code = 0;
  double time_limit_seconds = 0.0;  // of timed_out

  bool success() const { return kind == Kind::exited && code == 0; }
  bool operator==(const ExitReason&) const = default;
};

// From the status that waitpid gives.
ExitReason exit_reason_of(int wait_status);

// "exit status 3", "killed by signal 9 (SIGKILL)", "stopped after its time limit of 10 s", "stopped by the user"
std::string to_string(const ExitReason& reason);

}  // namespace tprimat
