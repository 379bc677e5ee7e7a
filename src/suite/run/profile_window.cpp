#include "run/profile_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace tprimat::suite {
namespace {

constexpr int64_t k_steps_before = 10;  // enough for caches, clocks and autotuning
constexpr int64_t k_steps_recorded = 5, k_fewer_recorded = 3;
constexpr int64_t k_short_run = 20;

std::optional<int64_t> parse_step(std::string_view text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

std::string_view software_stack(Platform platform) {
  return platform == Platform::nvd ? "cuda" : platform == Platform::amd ? "rocm" : "cpu";
}

}  // namespace

StepRange parse_step_range(const std::string& text, const std::string& where) {
  const size_t colon = text.find(':');
  const auto first = parse_step(text.substr(0, colon));
  const auto last = colon == std::string::npos ? first : parse_step(text.substr(colon + 1));
  if (first && last && *first <= *last) return {*first, *last};
  throw Error(Problem{fmt::format("'{}' is not a range of steps", text.substr(0, 64)), where,
                      "give the first and the last step to record, such as 11:15"});
}

StepRange choose_window(const ProfileRequest& request, int64_t steps, std::optional<int64_t> fixed_warmup_steps) {
  if (request.steps) {
    if (request.steps->last <= steps) return *request.steps;
    throw Error(Problem{fmt::format("the window ends at step {}, but the run has {} steps", request.steps->last, steps),
                        "--window", fmt::format("use --steps {} or more", request.steps->last)});
  }
  const int64_t settled = std::max(k_steps_before, fixed_warmup_steps.value_or(0));
  const int64_t first = std::min(settled, steps / 2) + 1;
  const int64_t length = steps < k_short_run ? k_fewer_recorded : k_steps_recorded;
  return {std::min(first, steps), std::min(first + length - 1, steps)};
}

TrainSpec shorten_to(const StepRange& window, TrainSpec spec) {
  spec.steps = window.last + 1;  // also beyond the run: some profilers write their trace as the next step begins
  spec.optimizer.warmup_steps = std::min(spec.optimizer.warmup_steps, spec.steps - 1);
  spec.checkpoint.directory.clear();
  spec.evaluation.interval = 0;
  return spec;
}

std::string profile_name(Platform platform, const TrainSpec& spec, std::optional<Framework> framework) {
  std::string name = fmt::format("profile_{}_{}_{}", software_stack(platform), spec.model.name, spec.parallel.strategy);
  if (framework) name += fmt::format("_{}", enum_name(*framework));
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

}  // namespace tprimat::suite
