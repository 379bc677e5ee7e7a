#include "extract/dialects/hf_settings.h"

#include <string>

#include "extract/dialects/log_facts.h"

namespace tprimat::logs {
namespace {

struct WholeLine {
  std::string_view mark;
  std::optional<int64_t> LoggedFacts::*fact;
};
// Of the block "***** Running training *****".
constexpr WholeLine k_sums[] = {
    {"Instantaneous batch size per device = ", &LoggedFacts::micro_batch_size},
    {"Total train batch size (w. parallel, distributed & accumulation) = ", &LoggedFacts::global_batch_size},
    {"Gradient Accumulation steps = ", &LoggedFacts::accumulation_steps},
    {"Total optimization steps = ", &LoggedFacts::max_steps},
};
constexpr std::string_view k_trainable = "Number of trainable parameters = ";
constexpr std::string_view k_running = "***** Running training *****";
constexpr std::string_view k_arguments = "TrainingArguments(";
constexpr int k_max_lines = 400;  // of an argument dump
constexpr int k_max_depth = 100;

bool read_sum(std::string_view text, LogBuilder& log) {
  for (const WholeLine& sum : k_sums) {
    const auto rest = text_after(text, sum.mark);
    if (!rest) continue;
    if (const auto value = count_after(*rest, "")) log.facts().*sum.fact = value;
    return true;
  }
  if (const auto rest = text_after(text, k_trainable)) log.set("trainable parameters", std::string(trim(*rest)));
  return false;
}

}  // namespace

std::vector<std::string_view> hf_setting_anchors() {
  std::vector<std::string_view> anchors = {k_running, k_arguments, k_trainable};
  for (const WholeLine& sum : k_sums) anchors.push_back(sum.mark);
  return anchors;
}

bool HfSettingsReader::read_line(const LogLine& line, LogBuilder& log) {
  if (inside_) return read_arguments(line.text, log);
  starts_ += contains(line.text, k_running);
  if (read_sum(line.text, log)) return false;
  const auto arguments = text_after(line.text, k_arguments);
  if (!arguments) return false;
  inside_ = true;
  depth_ = 0;
  lines_ = 0;
  return read_arguments(*arguments, log);
}

// "output_dir='out', fsdp_config={'min_num_params': 0, 'xla': False}, ...)", on one line or one line each.
bool HfSettingsReader::read_arguments(std::string_view text, LogBuilder& log) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && inside_; ++at) {
    const char c = text[at];
    if ((c == '(' || c == '[' || c == '{') && depth_ < k_max_depth) ++depth_;
    if (depth_ == 0 && (c == ',' || c == ')')) {
      add_argument(trim(text.substr(begin, at - begin)), log);
      begin = at + 1;
      inside_ = c != ')';
    } else if ((c == ')' || c == ']' || c == '}') && depth_ > 0) {
      --depth_;
    }
  }
  if (++lines_ > k_max_lines) inside_ = false;
  return inside_;
}

void HfSettingsReader::add_argument(std::string_view item, LogBuilder& log) {
  const size_t equal = item.find('=');
  if (equal == std::string_view::npos || equal == 0) return;
  const std::string_view name = trim(item.substr(0, equal)), value = trim(item.substr(equal + 1));
  log.set(std::string(name), std::string(value));
  // Other facts are taken from the settings after the last line.
  if (name == "max_steps") keep_first(log.facts().max_steps, count_after(value, ""));
  if (name == "logging_first_step") logs_first_step_ = value == "True";
  if (name == "logging_steps") keep_first(logging_steps_, count_after(value, ""));
}

}  // namespace tprimat::logs
