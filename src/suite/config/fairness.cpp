#include <fmt/format.h>

#include "config/draft.h"
#include "config/values.h"

namespace tprimat::suite {
namespace {

// One difference between two platforms.
struct Difference {
  std::string what;  // "precision"
  std::string first, second;
  std::string path;  // of the second platform's value
};

std::string print_sizes(const ParallelSpec& layout) {
  const std::string zero = layout.zero_stage == 0 ? "" : fmt::format(" ZeRO {}", layout.zero_stage);
  const char* const sequence = layout.sequence_parallel && layout.tensor > 1 ? " SP" : "";
  std::string experts;
  if (layout.expert) experts += fmt::format(" EP {}", *layout.expert);
  if (layout.expert_tensor) experts += fmt::format(" ETP {}", *layout.expert_tensor);
  return fmt::format("TP {} PP {} VP {} DP {} CP {}{}{}{}", layout.tensor, layout.pipeline, layout.virtual_pipeline,
                     layout.data, layout.context, experts, zero, sequence);
}

std::string print_flag(const std::optional<bool>& flag) { return flag.value_or(false) ? "true" : "false"; }

class PairAudit {
 public:
  PairAudit(const Draft& draft, Platform first, Platform second)
      : draft_(draft),
        first_(first),
        second_(second),
        a_(draft.experiment.platforms.at(first)),
        b_(draft.experiment.platforms.at(second)) {}

  // Differences that mean different work in every methodology.
  std::vector<Difference> list_numeric() {
    const std::string path = fmt::format("platform_optimizations.{}.", enum_name(second_));
    add("precision", std::string(enum_name(a_.precision)), std::string(enum_name(b_.precision)), path + "precision");
    add("activation_checkpointing", a_.activation_checkpointing ? "true" : "false",
        b_.activation_checkpointing ? "true" : "false", path + "activation_checkpointing");
    if (a_.activation_checkpointing && b_.activation_checkpointing)
      add("recompute", std::string(enum_name(a_.recompute)), std::string(enum_name(b_.recompute)), path + "recompute");
    return std::move(differences_);
  }

  // Differences that methodology identical_config forbids as well.
  std::vector<Difference> list_all() {
    differences_ = list_numeric();
    const std::string path = fmt::format("platform_optimizations.{}.", enum_name(second_));
    const PlatformSettings &a = a_.settings, &b = b_.settings;
    add("fp8_hybrid", print_flag(a.fp8_hybrid), print_flag(b.fp8_hybrid), path + "fp8_hybrid");
    add("fp8_param", print_flag(a.fp8_param), print_flag(b.fp8_param), path + "fp8_param");
    if (a.flash_attention && b.flash_attention)
      add("flash_attention", print_flag(a.flash_attention), print_flag(b.flash_attention), path + "flash_attention");
    add("number of devices", std::to_string(a_.num_devices), std::to_string(b_.num_devices),
        fmt::format("hardware.platforms.{}.num_gpus", enum_name(second_)));
    add_layouts();
    return std::move(differences_);
  }

 private:
  void add(std::string what, std::string first, std::string second, std::string path) {
    if (first != second)
      differences_.push_back({std::move(what), std::move(first), std::move(second), std::move(path)});
  }

  void add_layouts() {
    const std::string& strategy = draft_.experiment.methodology;
    const auto found = draft_.experiment.strategies.find(strategy);
    if (found == draft_.experiment.strategies.end()) return;
    for (const auto& [model, by_platform] : found->second) {
      if (by_platform.count(first_) == 0 || by_platform.count(second_) == 0) continue;
      add(fmt::format("layout of {}", model), print_sizes(by_platform.at(first_)), print_sizes(by_platform.at(second_)),
          fmt::format("parallelism.{}.{}.{}", strategy, model, enum_name(second_)));
    }
  }

  const Draft& draft_;
  Platform first_, second_;
  const PlatformSetup &a_, &b_;
  std::vector<Difference> differences_;
};

void report(const Draft& draft, Platform first, Platform second) {
  const bool identical = draft.experiment.methodology == "identical_config";
  PairAudit audit(draft, first, second);
  for (const Difference& difference : identical ? audit.list_all() : audit.list_numeric()) {
    if (!draft.diagnosis.is_sound(difference.path)) continue;
    const std::string where = origin_of(draft.tree, difference.path);
    if (identical)
      draft.diagnosis.add_error({fmt::format("identical_config: {} differs: {} on {}, {} on {}", difference.what,
                                             difference.first, enum_name(first), difference.second, enum_name(second)),
                                 where, "make them the same, or choose another methodology"});
    else
      draft.diagnosis.add_remark({fmt::format("{} and {} do different work", enum_name(first), enum_name(second)),
                                  fmt::format("{} {} against {}", difference.what, difference.first, difference.second),
                                  where, "methodology identical_config rejects this"});
  }
}

}  // namespace

void check_fairness(const Draft& draft) {
  const auto& platforms = draft.experiment.platforms;
  for (auto first = platforms.begin(); first != platforms.end(); ++first)
    for (auto second = std::next(first); second != platforms.end(); ++second)
      report(draft, first->first, second->first);
}

}  // namespace tprimat::suite
