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
  return parse_number<int>(std::string_view(part).substr(word.size()));
}

void read_words(const std::string& name, LogName& log) {
  std::string words = lower_case(name);
  std::ranges::replace_if(
      words, [](char c) { return !is_digit(c) && !is_letter(c); }, '_');
  for (const std::string_view word : split(words, '_')) {
    if (!log.framework) log.framework = parse_enum<Framework>(word);
    if (!log.platform) log.platform = parse_enum<Platform>(word);
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

LogName parse_log_name(const fs::path& below) {
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
  read_words(log.named_by.string(), log);
  read_folders(below, log);
  return log;
}

}  // namespace tprimat::suite
