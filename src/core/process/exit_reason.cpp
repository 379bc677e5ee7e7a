#include "process/exit_reason.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include "text/format.h"

namespace tprimat {
namespace {

std::string signal_name(int number) {
  const char* short_name = ::sigabbrev_np(number);  // "KILL"; null for a number without a name
  return short_name == nullptr ? fmt::format("signal {}", number)
                               : fmt::format("signal {} (SIG{})", number, short_name);
}

}  // namespace

ExitReason exit_reason_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {ExitReason::Kind::signalled, WTERMSIG(wait_status)};
  return {ExitReason::Kind::exited, WEXITSTATUS(wait_status)};
}

std::string to_string(const ExitReason& reason) {
  switch (reason.kind) {
    case ExitReason::Kind::exited: return fmt::format("exit status {}", reason.code);
    case ExitReason::Kind::signalled: return "killed by " + signal_name(reason.code);
    case ExitReason::Kind::timed_out:
      return "stopped after its time limit of " + format_duration(reason.time_limit_seconds);
    case ExitReason::Kind::interrupted: return "stopped by the user";
  }
  return "unknown";
}

}  // namespace tprimat
