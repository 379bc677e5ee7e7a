#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat {

// How a child process ended.
struct ExitReason {
  enum class Kind {
    exited,       // by itself, with `code`
    signalled,    // by signal number `code` that we did not send
    timed_out,    // we stopped it: its time limit passed
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

using LineSink = std::function<void(std::string_view line)>;

// Splits a stream of bytes into lines; the pieces may be of any size. A line ends at "\n", "\r\n" or a lone "\r"
// (progress bars redraw with it); the ending is not part of it. A line longer than the limit is handed on in pieces of
// that length, so that a stream without any newline takes no more memory. All other bytes pass unchanged.
class LineSplitter {
 public:
  explicit LineSplitter(size_t longest = size_t{1} << 20) : longest_(longest) {}
  void add(std::string_view bytes, const LineSink& sink);
  void finish(const LineSink& sink);  // hands on the rest without a final newline

 private:
  void take(std::string_view bytes, const LineSink& sink);
  void end_line(const LineSink& sink);

  size_t longest_;
  std::string pending_;
  bool after_return_ = false;  // the last byte seen was "\r": a "\n" that follows belongs to it
};

// A program to start.
struct Command {
  std::vector<std::string> argv;                   // argv[0] is looked up in PATH when it has no slash
  std::map<std::string, std::string> environment;  // added to ours
  std::string working_directory;                   // empty: ours
  std::string input_path;                          // its stdin; empty: nothing to read
  std::string log_path;                            // stdout and stderr are kept here as they come; empty: nowhere
  std::optional<double> time_limit_seconds;
  double grace_seconds = 10.0;          // between SIGTERM and SIGKILL when it is stopped
  double orphaned_grace_seconds = 2.0;  // the same after our own end
  int kept_open = -1;  // descriptor of ours that stays open until its process tree has ended, even after us
};

// A running child with everything that it started. Its destructor kills what is still alive.
class ChildProcess {
 public:
  virtual ~ChildProcess() = default;
  virtual pid_t pid() const = 0;

  // Waits at most `seconds` for output, hands complete lines to `sink`, enforces the time limit. Gives the reason once
  // the child and all its descendants are gone and its output is read; may then be called again. Throws Error when the
  // log cannot be written.
  virtual std::optional<ExitReason> poll(double seconds, const LineSink& sink) = 0;

  // The damage to the log while it was written, as a sentence: see log_file.h. Empty: none.
  virtual std::string log_damage() const { return ""; }

  // Asks the whole tree to end: SIGTERM now, SIGKILL after the grace time. Returns at once; poll() sees the end. A
  // second call kills at once.
  virtual void stop() = 0;
};

// The interface to the operating system; tests use a recording fake.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;

  // Throws Error: ExitStatus::missing_component if the program does not exist, work_failed if it cannot be started.
  virtual std::unique_ptr<ChildProcess> start(const Command& command) = 0;
};

// Starts programs on this machine. Between us and each program stands a warden (process/warden.h), so that the
// program's whole tree ends when it is stopped, and also when we are killed.
class LocalRunner : public ProcessRunner {
 public:
  std::unique_ptr<ChildProcess> start(const Command& command) override;
};

struct Captured {
  ExitReason exit;
  std::string output;  // stdout and stderr together, at most 1 MiB
};

// Runs a short command to its end, for instance to ask a program for its version. Nothing when the program is not
// installed. Its stdin is the file `input_path`; empty: nothing. It is ended soon after `is_stopped` returns true.
std::optional<Captured> run_captured(ProcessRunner& runner, std::vector<std::string> argv,
                                     double time_limit_seconds = 10.0, const std::string& input_path = "",
                                     const std::function<bool()>& is_stopped = {});

}  // namespace tprimat
