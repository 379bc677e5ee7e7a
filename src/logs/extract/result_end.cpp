#include "extract/result_end.h"

#include <fmt/format.h>

#include "extract/scan_text.h"
#include "result/summary.h"

namespace tprimat::logs {
namespace {

using EndSettings = std::map<std::string, std::string>;

std::string value_of_setting(const EndSettings& settings, const char* key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

// Why the run ended where it did, as a setting; empty: nothing says that it was planned.
std::string planned_end(const EndSettings& settings) {
  if (value_of_setting(settings, "run_stop status") == "success") return "run_stop with status success";
  const std::string exit = value_of_setting(settings, "exiting program");
  if (exit.empty()) return "";
  const char* key = contains(exit, "minutes") ? "exit_duration_in_mins" : "exit_interval";
  const std::string limit = value_of_setting(settings, key);
  return parse_number(limit).value_or(0) > 0 ? fmt::format("{} {}", key, limit) : "";
}

}  // namespace

void settle_planned_end(RunResult& result, StatedFacts& stated) {
  const std::string reason = planned_end(stated.settings);
  const int64_t steps = steps_reached(result);
  std::optional<int64_t>& asked = stated.facts.max_steps;
  if (reason.empty() || steps <= 0 || asked.value_or(0) <= steps) return;
  add_warning(result, fmt::format("the run ended as planned after step {} of {} ({})", steps, *asked, reason));
  asked = result.training_config.max_steps = steps;
}

}  // namespace tprimat::logs
