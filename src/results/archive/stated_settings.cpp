#include "archive/stated_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "archive/own_log.h"
#include "archive/redactor.h"
#include "archive/stated_numbers.h"
#include "extract/common/setting_names.h"
#include "extract/dialect.h"
#include "result/result_file.h"

namespace tprimat::results {
namespace {

// A setting that frameworks print, and its place in a result.
struct PrintedSetting {
  const char *key, *section, *fact;
};
constexpr PrintedSetting k_printed[] = {{"sequence_length", "training_config", "sequence_length"},
                                        {"micro_batch_size", "training_config", "micro_batch_size"},
                                        {"global_batch_size", "training_config", "global_batch_size"},
                                        {"steps", "training_config", "max_steps"},
                                        {"seed", "training_config", "seed"},
                                        {"precision", "", "precision"},
                                        {"learning_rate", "training_config", "learning_rate"},
                                        {"min_learning_rate", "training_config", "min_learning_rate"},
                                        {"weight_decay", "training_config", "weight_decay"},
                                        {"clip_grad_norm", "training_config", "clip_grad_norm"},
                                        {"schedule", "training_config", "schedule"},
                                        {"warmup_steps", "training_config", "warmup_steps"},
                                        {"num_devices", "training_config", "num_gpus"},
                                        {"gradient_accumulation_steps", "parallelism_config", ""},
                                        {"tensor_model_parallel_size", "parallelism_config", ""},
                                        {"pipeline_model_parallel_size", "parallelism_config", ""},
                                        {"data_parallel_size", "parallelism_config", ""},
                                        {"context_parallel_size", "parallelism_config", ""}};

std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One log of a run against its result.
class LogOfRunCheck {
 public:
  LogOfRunCheck(const StatedResult& result, const std::string& log_name, Verification& found)
      : result_(result), stated_(result.read), log_name_(log_name), found_(found) {}

  void check_settings(const logs::ExtractedLog& log) {
    const Json stated = run_result_to_json(stated_);
    for (const logs::EffectiveSetting& printed : logs::effective_settings(log.facts))
      for (const PrintedSetting& each : k_printed)
        if (printed.key == each.key) check_setting(stated, each, printed.value);
    if (stated_.effective_config)
      for (const auto& [key, value] : *stated_.effective_config) check_effective(key, value, log.settings);
  }

 private:
  // An audit entry of the result must state the printed value; without one the setting itself must.
  void check_setting(const Json& stated, const PrintedSetting& setting, const std::string& printed) {
    const std::string section = setting.section, fact = *setting.fact == '\0' ? setting.key : setting.fact;
    const Json& facts = section.empty() ? stated : stated.at(section);
    const auto audited = std::find_if(stated_.config_audit.begin(), stated_.config_audit.end(),
                                      [&](const AuditEntry& entry) { return entry.key == setting.key; });
    if (audited != stated_.config_audit.end())
      compare_words("config_audit." + audited->key, audited->effective, printed);
    else if (facts.contains(fact) && !facts[fact].is_null())
      compare_words(section.empty() ? fact : section + "." + fact, show_word(facts[fact]), printed);
  }

  void compare_words(const std::string& what, const std::string& stated, const std::string& printed) {
    const auto a = number_in(stated), b = number_in(printed);
    ++found_.facts;
    const bool is_whole = a && b && std::floor(*a) == *a && std::floor(*b) == *b;
    if (is_whole ? *a == *b : a && b ? is_same_figure(*a, *b) : stated == printed) return;
    found_.broken.push_back({result_.file, what, stated, printed, log_name_});
  }

  void check_effective(const std::string& key, const std::string& value,
                       const std::map<std::string, std::string>& printed) {
    const auto found = printed.find(key);
    ++found_.facts;
    if (found != printed.end() && found->second == value) return;
    if (value.find(k_hidden_secret) != std::string::npos) return;
    found_.broken.push_back({result_.file, "effective_config." + key, value,
                             found == printed.end() ? "nothing" : found->second, log_name_});
  }

  const StatedResult& result_;
  const RunResult& stated_;
  const std::string& log_name_;
  Verification& found_;
};

}  // namespace

void check_log_of_run(const StatedResult& result, const LogText& log, const logs::ReadLog& read, Verification& found) {
  LogOfRunCheck(result, log.name, found).check_settings(read.log);
  check_own_log(result, log, found);
}

}  // namespace tprimat::results
