#include "extract/dialects/nemo_lines.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

using WholeOf = std::optional<int64_t> LoggedFacts::*;

// "Rank 0 has tensor model parallel group: [0, 1]": as many ranks as the list has.
struct GroupLine {
  std::string_view mark;
  WholeOf size;
};
constexpr GroupLine k_groups[] = {
    {"Rank 0 has data parallel group : [", &LoggedFacts::data_parallel},
    {"Rank 0 has data parallel group: [", &LoggedFacts::data_parallel},
    {"Rank 0 has context parallel group: [", &LoggedFacts::context_parallel},
    {"Rank 0 has tensor model parallel group: [", &LoggedFacts::tensor_parallel},
    {"Rank 0 has pipeline model parallel group: [", &LoggedFacts::pipeline_parallel},
};

void read_group(std::string_view text, LogBuilder& log) {
  for (const GroupLine& group : k_groups) {
    const auto ranks = text_between(text, group.mark, "]");
    if (!ranks || trim(*ranks).empty() || contains(*ranks, "[")) continue;
    log.facts().*group.size = 1 + std::count(ranks->begin(), ranks->end(), ',');
  }
}

void set_whole(LogBuilder& log, WholeOf fact, std::optional<std::string_view> text) {
  if (!text) return;
  const auto value = parse_whole(*text);
  if (value && *value > 0 && !(log.facts().*fact)) log.facts().*fact = value;
}

// "OptimizerConfig(optimizer='adam', lr=0.0003, ..., bf16=True, ...)"
void read_optimizer(std::string_view text, LogBuilder& log) {
  LoggedFacts& facts = log.facts();
  if (const auto name = text_between(text, "optimizer='", "'")) facts.optimizer = std::string(*name);
  const auto set = [&](std::optional<double> LoggedFacts::*fact, std::string_view key) {
    if (const Figure value = number_after(text, key); value.finite()) facts.*fact = *value;
  };
  set(&LoggedFacts::learning_rate, "(lr=");
  set(&LoggedFacts::learning_rate, ", lr=");
  set(&LoggedFacts::min_learning_rate, ", min_lr=");
  set(&LoggedFacts::weight_decay, ", weight_decay=");
  set(&LoggedFacts::clip_grad_norm, ", clip_grad=");
  if (contains(text, ", bf16=True")) facts.precision = Precision::bf16;
  if (contains(text, ", fp16=True")) facts.precision = Precision::fp16;
}

}  // namespace

std::vector<std::string_view> nemo_line_anchors() {
  std::vector<std::string_view> anchors = {"distributed processes registered", "Setting up optimizer with config",
                                           "Copying Trainer's 'max_steps'", "effective maximum steps",
                                           "warmup_steps: "};
  for (const GroupLine& group : k_groups) anchors.push_back(group.mark);
  return anchors;
}

bool read_nemo_line(const LogLine& line, LogBuilder& log) {
  const std::string_view text = line.text;
  if (contains(text, "Rank 0 has ")) {
    read_group(text, log);
  } else if (contains(text, "All distributed processes registered")) {
    set_whole(log, &LoggedFacts::gpu_count, text_after(text, "Starting with "));
  } else if (contains(text, "Setting up optimizer with config")) {
    read_optimizer(text, log);
  } else if (contains(text, "Copying Trainer's 'max_steps'")) {
    set_whole(log, &LoggedFacts::max_steps, text_after(text, "'max_steps' ("));
  } else if (contains(text, "effective maximum steps")) {
    set_whole(log, &LoggedFacts::max_steps, text_after(text, "effective maximum steps = "));
  } else if (contains(text, "warmup_steps: ")) {
    set_whole(log, &LoggedFacts::warmup_steps, text_after(text, "warmup_steps: "));
  } else {
    return false;
  }
  return true;
}

double half_of_digit(double value, int significant_digits) {
  if (value == 0 || !std::isfinite(value)) return 0.0;
  return 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - (significant_digits - 1));
}

void set_rounded_time(ExtractedStep& step, double seconds, int significant_digits) {
  const double half = half_of_digit(seconds, significant_digits);
  step.time_seconds = seconds;
  step.time_low = seconds - half;
  step.time_high = seconds + half;
  step.time_source = TimeSource::printed;
}

}  // namespace tprimat::logs
