#include "process/process.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/format.h"

namespace tprimat {
namespace {

std::string signal_name(int number) {
  const char* short_name = ::sigabbrev_np(number);  // "KILL"; null for a number without a name
  return short_name == nullptr ? fmt::format("signal {}", number)
                               : fmt::format("signal {} (SIG{})", number, short_name);
}

constexpr size_t k_max_output = size_t{1} << 20;

std::unique_ptr<ChildProcess> start_if_installed(ProcessRunner& runner, const Command& command) {
  try {
    return runner.start(command);
  } catch (const Error& error) {
    if (error.status() == ExitStatus::missing_component) return nullptr;
    throw;
  }
}

// Finds successive occurrences of a character in a text that is consumed from the front; reads each byte once.
class NextOf {
 public:
  explicit NextOf(char wanted) : wanted_(wanted) {}
  size_t find(std::string_view bytes) {
    if (from_end_ > bytes.size()) from_end_ = search(bytes);
    return from_end_ == 0 ? std::string_view::npos : bytes.size() - from_end_;
  }

 private:
  size_t search(std::string_view bytes) const {
    const size_t at = bytes.find(wanted_);
    return at == std::string_view::npos ? 0 : bytes.size() - at;
  }

  char wanted_;
  size_t from_end_ = std::string_view::npos;  // its position, counted from the end; 0: no further one
};

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

std::optional<Captured> run_captured(ProcessRunner& runner, std::vector<std::string> argv, double time_limit_seconds,
                                     const std::string& input_path, const std::function<bool()>& is_stopped) {
  Command command;
  command.argv = std::move(argv);
  command.input_path = input_path;
  command.time_limit_seconds = time_limit_seconds;
  command.grace_seconds = 1.0;
  const std::unique_ptr<ChildProcess> child = start_if_installed(runner, command);
  if (child == nullptr) return std::nullopt;
  Captured captured;
  const LineSink keep = [&](std::string_view line) {
    if (captured.output.size() + line.size() < k_max_output) captured.output.append(line).append("\n");
  };
  std::optional<ExitReason> exit;
  while (!exit) {
    if (is_stopped && is_stopped()) child->stop();
    exit = child->poll(is_stopped ? 0.1 : 1.0, keep);
  }
  captured.exit = *exit;
  return captured;
}

void LineSplitter::add(std::string_view bytes, const LineSink& sink) {
  if (after_return_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
  }
  NextOf newline('\n'), carriage_return('\r');
  for (size_t end = 0; (end = std::min(newline.find(bytes), carriage_return.find(bytes))) != std::string_view::npos;) {
    take(bytes.substr(0, end), sink);
    end_line(sink);
    const bool was_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    after_return_ = was_return && bytes.empty();
    if (was_return && !bytes.empty() && bytes.front() == '\n') bytes.remove_prefix(1);
  }
  take(bytes, sink);
}

void LineSplitter::finish(const LineSink& sink) {
  if (!pending_.empty()) end_line(sink);
}

void LineSplitter::take(std::string_view bytes, const LineSink& sink) {
  while (!bytes.empty()) {
    if (pending_.size() == longest_) end_line(sink);
    const size_t count = std::min(bytes.size(), longest_ - pending_.size());
    pending_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

void LineSplitter::end_line(const LineSink& sink) {
  if (sink) sink(pending_);
  pending_.clear();
}

}  // namespace tprimat
