#include <fmt/format.h>

#include "config/draft.h"
#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

void check_strategy(Draft& draft, const std::string& strategy, const std::string& path) {
  std::vector<std::string> known = {"single"};
  for (const auto& [name, layouts] : draft.raw.parallelism.entries) known.push_back(name);
  for (const std::string& name : known)
    if (name == strategy) return;
  draft.fail(path, fmt::format("parallelism has no strategy '{}'", printable(strategy.substr(0, 40))),
             suggest_word(strategy, known));
}

// A word of a command line, which is also a line of a shell script.
void check_arguments(Draft& draft, const std::vector<std::string>& words, const std::string& path) {
  for (const std::string& word : words)
    if (word.empty() || printable(word) != word)
      draft.fail(path, fmt::format("'{}' in {} is no argument", printable(word.substr(0, 40)), path),
                 "arguments are not empty and hold no control characters");
}

void check_on_platforms(Draft& draft, Precision precision, const std::string& path) {
  for (const auto& [platform, setup] : draft.experiment.platforms)
    if (draft.is_sound(path)) check_precision(draft, platform, setup.device_model, precision, path);
}

void resolve_framework(Draft& draft, const std::string& name, const raw::FrameworkSection& from) {
  const std::string path = join_path("frameworks", name);
  FrameworkSetup& to = draft.experiment.framework_setups[*parse_enum<Framework>(name)];
  to.description = from.description.value_or("");
  to.enabled = from.enabled.value_or(true);
  to.strategy = from.strategy;
  to.precision = from.precision;
  to.recompute = from.recompute;
  to.moments = from.optimizer.moments;
  to.master_weights = from.optimizer.master_weights;
  to.offload = from.offload;
  to.arguments = from.arguments.value_or(std::vector<std::string>{});
  if (to.strategy && draft.is_sound(path + ".strategy")) check_strategy(draft, *to.strategy, path + ".strategy");
  if (to.precision) check_on_platforms(draft, *to.precision, path + ".precision");
  check_arguments(draft, to.arguments, path + ".arguments");
}

}  // namespace

void resolve_frameworks(Draft& draft) {
  for (const auto& [name, section] : draft.raw.frameworks.entries)
    if (parse_enum<Framework>(name)) resolve_framework(draft, name, section);
}

}  // namespace tprimat::suite
