#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "extract/common/cause_log.h"
#include "extract/common/crash_report.h"
#include "extract/common/failure_cause.h"
#include "extract/common/failure_signs.h"
#include "extract/common/log_words.h"
#include "extract/dialects.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_open_ranks = 4096;  // with something open
constexpr size_t k_no_event = std::numeric_limits<size_t>::max();
constexpr int64_t k_longest_report_gap = 300;  // lines, of other ranks, within a traceback or a report
constexpr int k_lines_to_what = 3;             // between "terminate called" and "what():"

struct RankState {
  TracebackReader traceback;
  ChildFailureReport report;
  size_t exception = k_no_event;  // event of the first of a chain, if this rank reported it first
  std::string cause;              // its text
  std::string thrown;             // by a C++ program that will print what()
  int lines_to_what = 0;
  bool is_ignored = false;  // the next traceback did not end the program
  int64_t line = 0;         // the last one of the rank
  bool is_open() const { return traceback.is_open() || report.is_open() || lines_to_what > 0 || is_ignored; }
};

std::string describe_exit(const ProcessFailure& failure) {
  const int64_t code = failure.exit_code.value_or(0);
  std::string text(failure.is_root_cause ? k_root_cause : "");
  if (code < 0) {
    const std::string_view name = signal_name(-code);
    text += fmt::format("killed by signal {}", -code);
    if (!name.empty()) text += fmt::format(" ({})", name);
  } else {
    text += fmt::format("exit code {}", code);
  }
  if (!failure.rank && failure.local_rank) text += fmt::format(" of local rank {}", *failure.local_rank);
  return failure.error.empty() ? text : text + ": " + failure.error;
}

class FailuresReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    RankState& state = find_state(line.rank);
    if (line.number - state.line > k_longest_report_gap) close(state, log);
    state.line = line.number;
    if (!read_open(line, state, log)) read_fresh(line, state, log);
    const bool goes_on = state.is_open();
    if (!goes_on) ranks_.erase(line.rank);
    return goes_on;
  }

  void finish(LogBuilder& log) override {
    for (auto& [rank, state] : ranks_) close(state, log);
    ranks_.clear();
  }

 private:
  RankState& find_state(int32_t rank) {
    if (ranks_.size() >= k_max_open_ranks && !ranks_.contains(rank)) ranks_.clear();
    return ranks_[rank];
  }

  void close(RankState& state, LogBuilder& log) {
    LogLine last;
    last.number = state.line;
    if (auto failure = state.report.finish()) add_failure(*failure, last, log);
    state = {};
  }

  // Continues the record of an earlier line of the rank. True if the line belongs to that alone.
  bool read_open(const LogLine& line, RankState& state, LogBuilder& log) {
    if (state.report.is_open() && ChildFailureReport::may_hold(line.text)) {
      if (const auto failure = state.report.read(line.text)) add_failure(*failure, line, log);
      return true;
    }
    if (state.lines_to_what > 0 && read_what(line, state, log)) return true;
    if (!state.traceback.is_open() || opens_report(line.text)) {
      state.is_ignored &= trim(line.text).starts_with("Traceback (most");
      return false;
    }
    const TracebackReader::Exception exception = state.traceback.read(line.text);
    if (!exception.text.empty() && state.is_ignored) {
      state.traceback = {};
      state.is_ignored = false;
    } else if (!exception.text.empty()) {
      add_exception(exception, line, state, log);
    }
    return line.text.starts_with("  ") || !exception.text.empty();
  }

  bool read_what(const LogLine& line, RankState& state, LogBuilder& log) {
    const auto what = text_after(line.text, "what():");
    if (!what && --state.lines_to_what > 0) return false;
    state.lines_to_what = 0;
    const std::string text = what ? state.thrown + ": " + std::string(trim(*what)) : state.thrown;
    const EventKind kind = classify_error(text);
    causes_.add(kind == EventKind::failed && contains(text, "CUDAError") ? EventKind::device_error : kind, line, text,
                log);
    return what.has_value();
  }

  static bool opens_report(std::string_view text) {
    return contains(text, "ChildFailedError:") && !text.starts_with("  ");
  }

  void read_fresh(const LogLine& line, RankState& state, LogBuilder& log) {
    const std::string_view text = line.text;
    if (opens_report(text)) {
      state.traceback = {};
      state.report.open();
    } else if (trim(text).starts_with("Root Cause (first")) {
      state.report.open();
      state.report.read(text);
    } else if (contains(text, "Exception ignored in")) {  // by the garbage collector, or at the end of the program
      state.is_ignored = true;
    } else if (trim(text).starts_with("Traceback (most recent call last)")) {
      state.traceback.open();
    } else if (const auto thrown = text_between(text, "terminate called after throwing an instance of '", "'")) {
      state.thrown = quote_text(*thrown, 100);
      state.lines_to_what = k_lines_to_what;
    } else {
      read_single(line, log);
    }
  }

  void read_single(const LogLine& line, LogBuilder& log) {
    if (const auto failure = read_exit_notice(line.text)) return add_failure(*failure, line, log);
    if (contains(line.text, "worker group")) return read_worker_group(line, log);
    if (const auto exception = find_exception(line.text, false); !exception.empty()) {
      causes_.add(classify_error(exception), line, exception, log);
      return;
    }
    const auto sign = find_failure_sign(line.text);
    if (!sign) return;
    LogEvent event = make_event(sign->kind, line, sign->text);
    event.seconds = sign->seconds;
    if (sign->rank >= 0) event.rank = sign->rank;
    causes_.add(std::move(event), log);
  }

  // "[default] Worker group FAILED. 3/3 attempts left; will restart worker group"
  void read_worker_group(const LogLine& line, LogBuilder& log) {
    const size_t at = line.text.find("[default] ");
    const std::string_view text = at == std::string_view::npos ? line.text : line.text.substr(at + 10);
    if (contains(text, "will restart") || contains(text, "estarting worker group"))
      causes_.add(EventKind::restart, line, text, log);
  }

  // The last exception of a chain ended the program; the event of the first names both.
  void add_exception(const TracebackReader::Exception& exception, const LogLine& line, RankState& state,
                     LogBuilder& log) {
    const size_t count = log.events().size();
    if (exception.follows_another && state.exception < count) {
      log.events()[state.exception].text =
          quote_text(quote_text(exception.text, 140) + " (after " + state.cause, 299) + ")";
    } else if (!exception.follows_another || state.cause.empty()) {
      const auto index = causes_.add(classify_error(exception.text), line, exception.text, log);
      const bool is_new = index && *index == count;  // else an earlier chain has reported it
      state.exception = is_new ? count : k_no_event;
      state.cause = quote_text(exception.text, 200);
    }
  }

  void add_failure(const ProcessFailure& failure, const LogLine& line, LogBuilder& log) {
    LogEvent event =
        make_event(*failure.exit_code < 0 ? EventKind::killed : EventKind::failed, line, describe_exit(failure));
    event.rank = failure.rank.value_or(-1);
    if (!failure.error.empty() && classify_error(failure.error) != EventKind::failed) {
      LogEvent error = event;
      error.kind = classify_error(failure.error);
      error.text = failure.error;
      causes_.add(std::move(error), log);
    }
    if (failure.pid && failure.pid == noticed_pid_ && noticed_ < log.events().size()) {
      LogEvent& earlier = log.events()[noticed_];
      earlier.rank = event.rank;
      earlier.ranks = event.rank >= 0 ? std::vector{event.rank} : std::vector<int32_t>();
      earlier.text = event.text;
      noticed_pid_.reset();
      return;
    }
    const auto index = causes_.add(std::move(event), log);
    if (failure.rank || !index) return;
    noticed_pid_ = failure.pid;
    noticed_ = *index;
  }

  std::unordered_map<int32_t, RankState> ranks_;
  CauseLog causes_;
  std::optional<int64_t> noticed_pid_;  // of the process whose exit was announced last, and the event of that
  size_t noticed_ = 0;
};

}  // namespace

Dialect failures_reader() {
  return {.id = "failures",
          .title = "failures",
          .versions = "PyTorch 1.8 to 2.10, torchrun, DeepSpeed, Slurm, MPI, Linux",
          .anchors = {"ut of memory",
                      "oom-kill",
                      "oom_kill",
                      "collective operation timeout",
                      "monitor timed out",
                      "join collective",
                      "NCCL error",
                      "(exitcode: ",
                      "xited with exit",
                      "with return code",
                      "exited on signal",
                      "Caught signal",
                      "core dumped",
                      "Killed",
                      "Killing subprocess",
                      "CANCELLED AT",
                      "job killed",
                      "Traceback (most",
                      "Error:",
                      "Exception:",
                      "Exception ignored in",
                      "Root Cause (first",
                      "terminate called",
                      "MPI_ABORT",
                      "Process name: [[",
                      "CUDA error",
                      "HIP error",
                      "[CUDA ERROR]",
                      "NVRM: Xid",
                      "fault by GPU",
                      "found NaN",
                      "NaN or Inf",
                      "oss is nan",
                      "oss is NaN",
                      "expected result",
                      "worker group",
                      "RESOURCE_EXHAUSTED",
                      "Terminating training"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<FailuresReader>(); }};
}

}  // namespace tprimat::logs
