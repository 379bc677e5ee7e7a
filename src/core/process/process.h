#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/exit_reason.h"
#include "process/line_splitter.h"

namespace tprimat {

// What to start.
struct Command {
  std::vector<std::string> argv;                   // argv[0] is looked up in PATH when it has no slash
  std::map<std::string, std::string> environment;  // added to ours
  std::string working_directory;                   // empty: ours
  std::string input_path;                          // its stdin; empty: nothing to read
  std::string log_path;                            // stdout and stderr are kept here as they come; empty: nowhere
  std::optional<double> time_limit_seconds;
  double grace_seconds = 10.0;          // between SIGTERM and SIGKILL when it is stopped
  double orphaned_grace_seconds = 2.0;  // the same when we are gone
  int kept_open = -1;  // descriptor of ours that stays open until nothing of its tree is left, also when we are gone
};

// A running child with everything that it started. Destroying it kills what is still alive.
class ChildProcess {
 public:
  virtual ~ChildProcess() = default;
  virtual pid_t pid() const = 0;

  // Waits at most `seconds` for output, hands complete lines to `sink`, enforces the time limit. Gives the reason once
  // the child and all its descendants are gone and its output is read; may then be called again. Throws Error when the
  // log cannot be written.
  virtual std::optional<ExitReason> poll(double seconds, const LineSink& sink) = 0;

  // What befell the log while it was written, in words: see log_file.h. Empty: nothing.
  virtual std::string log_damage() const { return ""; }

  // Asks the whole tree to end: SIGTERM now, SIGKILL after the grace time. Returns at once; poll() sees the end. A
  // second call kills at once.
  virtual void stop() = 0;
};

// The door to the operating system; tests use a recording fake.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;

  // Throws Error: ExitStatus::missing_component when the program is not there, work_failed when it cannot be started.
  virtual std::unique_ptr<ChildProcess> start(const Command& command) = 0;
};

}  // namespace tprimat
