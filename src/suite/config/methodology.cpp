#include "config/methodology.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/values.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr const char* k_path = "experiment.methodology";
constexpr const char* k_older_default = "minimal_communication";

bool needs_layouts(const YamlNode& tree) {
  const YamlNode* platforms = find_path(tree, "hardware.platforms");
  return platforms != nullptr && std::ranges::any_of(platforms->entries, [](const YamlEntry& platform) {
           const YamlNode* count = platform.value.find("num_gpus");
           return count != nullptr && parse_whole(*count) != 1;
         });
}

}  // namespace

std::optional<Problem> choose_methodology(YamlNode& tree, bool is_older) {
  const YamlNode* strategies = find_path(tree, "parallelism");
  YamlNode* experiment = tree.find("experiment");
  if (strategies == nullptr || strategies->entries.empty() || is_stated(tree, k_path) || !needs_layouts(tree))
    return {};
  if (experiment == nullptr || !experiment->is_map()) return {};
  std::vector<std::string> names;
  for (const YamlEntry& strategy : strategies->entries) names.push_back(strategy.key);
  const bool is_only = names.size() == 1;
  const std::string chosen = is_only ? names.front() : k_older_default;
  if (!is_only && (!is_older || std::ranges::find(names, chosen) == names.end())) return {};
  const std::string reason = is_only ? "the only strategy" : "the last default of the older scripts";
  (*experiment)["methodology"] = yaml_scalar(chosen, {Provenance::derived, reason});
  std::erase(names, chosen);
  return Problem{fmt::format("{} is not stated: using {}, {}{}", k_path, chosen, reason,
                             is_only ? "" : "; PARALLEL or --strategy chooses another: " + join(names, ", ")),
                 strategies->origin.text(), ""};
}

bool is_methodology_chosen(const YamlNode& tree) { return find_origin(tree, k_path).provenance == Provenance::derived; }

}  // namespace tprimat::suite
