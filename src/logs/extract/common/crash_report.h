#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tprimat::logs {

// Follows a Python traceback of one rank to its exception, and over "During handling of the above exception ..." to the
// next one of the chain.
class TracebackReader {
 public:
  struct Exception {
    std::string_view text;         // "RuntimeError: ..."; "" for none
    bool follows_another = false;  // it was raised while handling the one before
  };

  void open();
  bool is_open() const { return lines_left_ > 0; }
  Exception read(std::string_view text);  // takes a line of the rank

 private:
  int lines_left_ = 0;
  bool ended_ = false;    // by an exception, which may turn out to be part of a chain
  bool chained_ = false;  // the next exception is not the first
};

// Torchrun's report of one failed process.
struct ProcessFailure {
  bool is_root_cause = false;
  std::optional<int32_t> rank;
  std::optional<int64_t> exit_code, pid, local_rank;
  std::string error;  // the exception, where its traceback is part of the report
};

// "failed (exitcode: 1) local_rank: 5 (pid: 73805) of binary: ..."
std::optional<ProcessFailure> read_exit_notice(std::string_view text);

// Follows torchrun's ChildFailedError report, which lists the processes that failed, the first one to fail last.
class ChildFailureReport {
 public:
  void open();
  bool is_open() const { return open_; }

  // Whether the line may be part of one, by its beginning.
  static bool may_hold(std::string_view text);

  // Takes a line; gives a process when its entry is complete.
  std::optional<ProcessFailure> read(std::string_view text);
  std::optional<ProcessFailure> finish();

 private:
  bool read_field(std::string_view text);
  std::optional<ProcessFailure> take_entry();

  bool open_ = false, root_ = false, in_traceback_ = false, seen_entry_ = false;
  int strange_lines_ = 0;  // in a row
  ProcessFailure entry_;
};

}  // namespace tprimat::logs
