#include "run/rank_environment.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "text/format.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_beginning_bytes = size_t{256} << 10;  // start scripts print before the training

std::string read_beginning(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(k_beginning_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// "HSA_ENABLE_SDMA: 1" of "[NODE-0(host)] [INFO] HSA_ENABLE_SDMA: 1"; empty for other lines.
std::string_view message_of(std::string_view line) {
  const size_t node = line.find("[NODE-");
  const size_t end = node == std::string_view::npos ? node : line.find(")]", node);
  if (end == std::string_view::npos) return {};
  line.remove_prefix(end + 2);
  for (const std::string_view mark : {"[INFO]", "\x1b[0m"})
    if (const size_t at = line.find(mark); at != std::string_view::npos) line.remove_prefix(at + mark.size());
  return trim_blanks(line);
}

// Whether a variable of this process reaches the ranks without the launch's help.
bool passes_own_variables(const PlannedRun& run) {
  const Launcher launcher = run.launch_facts.launcher;
  if (launcher == Launcher::docker) return run.plan.place == Whereabouts::children;  // Apptainer
  return launcher != Launcher::kubernetes && !(launcher == Launcher::mpi && run.plan.place == Whereabouts::elsewhere);
}

// `launch.docker.environment` holds names, and words NAME=value.
std::optional<std::string> passed_to_container(const PlannedRun& run, const std::string& name) {
  if (run.launch_facts.launcher != Launcher::docker) return std::nullopt;
  for (const std::string& word : run.request.launch.docker.environment) {
    if (word == name) return read_environment(name);
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> read_logged_variables(std::string_view log) {
  std::map<std::string, std::string> variables;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view message = message_of(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
    const size_t separator = message.find_first_of(":=");
    if (separator == std::string_view::npos || !is_variable_name(message.substr(0, separator))) continue;
    const std::string_view value = trim_blanks(message.substr(separator + 1));
    if (!value.empty() && value != "<unset>") variables[std::string(message.substr(0, separator))] = value;
  }
  return variables;
}

EnvironmentReader environment_of_ranks(const PlannedRun& run) {
  auto set = run.platform == Platform::amd ? read_logged_variables(read_beginning(run.plan.log_path))
                                           : std::map<std::string, std::string>();
  set.insert(run.plan.environment.begin(), run.plan.environment.end());  // the log decides
  return [set = std::move(set), &run](const std::string& name) -> std::optional<std::string> {
    if (const auto found = set.find(name); found != set.end()) return found->second;
    return passes_own_variables(run) ? read_environment(name) : passed_to_container(run, name);
  };
}

}  // namespace tprimat::suite
