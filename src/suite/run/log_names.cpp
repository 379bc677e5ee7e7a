#include "run/log_names.h"

#include <algorithm>

#include "text/words.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Primus' start scripts have named their logs so, for pre-training and for other work.
constexpr const char* k_names_of_primus[] = {"log_mp_pretrain", "log_torchrun_pretrain", "log_slurm_pretrain",
                                             "primus"};

// "attempt_2" -> 2.
std::optional<int> number_behind(const std::string& part, std::string_view word) {
  if (!part.starts_with(word)) return std::nullopt;
  return tprimat::parse_number<int>(std::string_view(part).substr(word.size()));
}

std::vector<std::string_view> split_words(std::string& name) {
  name = lower_case(name);
  std::ranges::replace_if(
      name, [](char c) { return !is_alphanumeric(c); }, '_');
  std::vector<std::string_view> words;
  for (const std::string_view word : split(name, '_'))
    if (!word.empty()) words.push_back(word);
  return words;
}

// How many words stand before the first of these models; nothing where none of them is named.
std::optional<size_t> words_before(const std::vector<std::string_view>& words, const std::vector<std::string>& models) {
  std::optional<size_t> before;
  for (std::string key : models) {
    const std::vector<std::string_view> parts = split_words(key);
    const auto found = std::ranges::search(words, parts);
    if (parts.empty() || found.empty()) continue;
    const auto at = static_cast<size_t>(found.begin() - words.begin());
    before = std::min(before.value_or(at), at);
  }
  return before;
}

void read_words(const std::string& name, const std::vector<std::string>& models, LogName& log) {
  constexpr std::string_view k_usual[] = {"log",      "logs",  "mp",       "slurm", "torchrun",
                                          "pretrain", "train", "training", "run"};
  std::string text = name;
  const std::vector<std::string_view> words = split_words(text);
  const auto before = words_before(words, models);
  for (size_t i = 0; i < before.value_or(words.size()); ++i) {
    const auto framework = parse_enum<Framework>(words[i]);
    const auto platform = parse_enum<Platform>(words[i]);
    if (!log.framework) log.framework = framework;
    if (!log.platform) log.platform = platform;
    const bool is_usual =
        framework || platform || is_all_digits(words[i]) || std::ranges::find(k_usual, words[i]) != std::end(k_usual);
    if (!before && !is_usual) return;
  }
}

// torchrun --log-dir: <run>/attempt_<n>/<rank>/stdout.log. Primus: <experiment>/logs/<module>/rank-<k>/info.log.
void read_folders(const fs::path& below, LogName& log) {
  fs::path above, experiment;
  bool in_attempt = false;
  for (const fs::path& each : below.parent_path()) {
    const std::string part = each.string();
    if (part == "logs") experiment = above;
    if (const auto attempt = number_behind(part, "attempt_")) {
      log.attempt = *attempt, in_attempt = true;
      log.training = above;
    } else if (const auto rank = in_attempt ? number_behind(part, "") : number_behind(part, "rank-")) {
      log.rank = *rank;
      if (!in_attempt) log.training = experiment.empty() ? above : experiment;
      if (!in_attempt && !experiment.empty()) log.framework = Framework::prim;
    }
    above /= each;
  }
}

}  // namespace

LogName parse_log_name(const fs::path& below, const std::vector<std::string>& models) {
  LogName log;
  log.path = log.training = below;
  const std::string file = below.filename().string();
  const bool has_records = file.starts_with("steps.jsonl");
  log.named_by = has_records ? below.parent_path().filename() : below.filename();
  log.is_series = has_records || file.starts_with("events.out.") || file.starts_with("metrics.csv") ||
                  file.starts_with("trainer_state") || file.starts_with("trainer_log.jsonl");
  log.is_detailed = file.starts_with("debug.");
  if (file == "train.log" && below.has_parent_path()) log.training = below.parent_path();
  for (const char* name : k_names_of_primus)
    if (lower_case(file).starts_with(name)) log.framework = Framework::prim;
  read_words(log.named_by.string(), models, log);
  read_folders(below, log);
  return log;
}

}  // namespace tprimat::suite
