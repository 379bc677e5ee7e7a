#include "extract/dialects/nemo_lines.h"

#include <algorithm>
#include <cmath>

#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// "Rank 0 has tensor model parallel group: [0, 1]": as many ranks as the list has.
struct GroupLine {
  std::string_view mark;
  std::optional<int64_t> LoggedFacts::*size;
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

}  // namespace

std::vector<std::string_view> nemo_line_anchors() {
  std::vector<std::string_view> anchors = {"Copying Trainer's 'max_steps'", "effective maximum steps",
                                           "warmup_steps: "};
  for (const GroupLine& group : k_groups) anchors.push_back(group.mark);
  return anchors;
}

void read_nemo_line(const LogLine& line, LogBuilder& log) {
  const std::string_view text = line.text;
  if (contains(text, "Rank 0 has ")) {
    read_group(text, log);
  } else if (contains(text, "Copying Trainer's 'max_steps'")) {
    keep_first(log.facts().max_steps, count_after(text, "'max_steps' ("));
  } else if (contains(text, "effective maximum steps")) {
    keep_first(log.facts().max_steps, count_after(text, "effective maximum steps = "));
  } else {
    keep_first(log.facts().warmup_steps, count_after(text, "warmup_steps: "));
  }
}

double half_of_digit(double value, int significant_digits) {
  if (value == 0 || !std::isfinite(value)) return 0.0;
  return 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - (significant_digits - 1));
}

void set_rounded_time(ExtractedStep& step, Figure seconds, int significant_digits) {
  set_printed_time(step, seconds, half_of_digit(*seconds, significant_digits));
}

}  // namespace tprimat::logs
