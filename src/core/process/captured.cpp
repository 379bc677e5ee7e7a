#include "process/captured.h"

#include <utility>

#include "base/error.h"

namespace tprimat {
namespace {

constexpr size_t k_max_output = size_t{1} << 20;

std::unique_ptr<ChildProcess> start_if_installed(ProcessRunner& runner, const Command& command) {
  try {
    return runner.start(command);
  } catch (const Error& error) {
    if (error.status() == ExitStatus::missing_component) return nullptr;
    throw;
  }
}

}  // namespace

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

}  // namespace tprimat
