#include "compare/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "compare/contender.h"
#include "compare/differences.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

bool have_one_system(const RunResult& a, const RunResult& b) {
  return a.platform && a.platform == b.platform && a.framework && a.framework == b.framework &&
         a.gpu_info.device_name == b.gpu_info.device_name;
}

std::optional<std::string> image_of(const RunResult& run) {
  const auto found = run.environment.find("container_image");
  return found == run.environment.end() ? std::nullopt : std::optional(found->second);
}

// The versions of one framework on one device.
struct Kinds {
  std::set<std::optional<std::string>> labels;
  std::set<std::string> versions;
  bool are_several() const { return labels.size() > 1 || versions.size() > 1; }
};
using System = std::tuple<std::optional<Platform>, std::optional<Framework>, std::string>;

System system_of(const Contender& contender) {
  const RunResult& run = contender.first();
  return {run.platform, run.framework, run.gpu_info.device_name};
}

std::map<System, Kinds> list_kinds(const std::vector<Contender>& contenders) {
  std::map<System, Kinds> kinds;
  for (const Contender& contender : contenders) {
    const RunResult& run = contender.first();
    if (!run.platform || !run.framework) continue;
    Kinds& of_system = kinds[system_of(contender)];
    of_system.labels.insert(run.framework_installation);
    if (const auto version = framework_version_of(run)) of_system.versions.insert(*version);
  }
  return kinds;
}

std::string describe_step_times(const ModelGroup& group, const Pair& pair) {
  const Metric& metric = *find_metric("mean_step_time");
  const Contender &before = group.contenders[pair.reference], &after = group.contenders[pair.subject];
  const auto x = read_figure(before, metric), y = read_figure(after, metric);
  if (!x || !y || !pair.ratios.contains(std::string(metric.key))) return "";
  return fmt::format(": a step takes {} with {} and {} with {}", format_duration(x->value), before.label,
                     format_duration(y->value), after.label);
}

}  // namespace

std::optional<std::string> framework_version_of(const RunResult& run) {
  constexpr std::string_view k_unknown = "not known";  // of a checkout that states none
  return run.framework_version == k_unknown ? std::nullopt : run.framework_version;
}

std::string version_name(const RunResult& run) {
  const std::string framework = run.framework ? std::string(enum_name(*run.framework)) : "unknown framework";
  const auto version = run.framework_installation ? run.framework_installation : framework_version_of(run);
  return version ? fmt::format("{}@{}", framework, *version) : framework;
}

Evidences find_versions(const RunResult& reference, const RunResult& subject) {
  Evidences evidence;
  if (!have_one_system(reference, subject)) return evidence;
  const auto &x = reference.framework_installation, &y = subject.framework_installation;
  if (x != y) evidence.push_back({"installation", x.value_or("not named"), y.value_or("not named")});
  add(evidence, "version", framework_version_of(reference), framework_version_of(subject));
  if (x != y) add(evidence, "image", image_of(reference), image_of(subject));
  return evidence;
}

void label_versions(std::vector<Contender>& contenders) {
  const std::map<System, Kinds> kinds = list_kinds(contenders);
  const auto on_first = [&](const Contender& each) {
    return each.first().platform == contenders.front().first().platform;
  };
  const bool is_one_platform = std::ranges::all_of(contenders, on_first);
  for (Contender& contender : contenders) {
    const auto found = kinds.find(system_of(contender));
    if (found == kinds.end() || !found->second.are_several()) continue;
    const RunResult& run = contender.first();
    contender.label = (is_one_platform ? "" : std::string(display_name(*run.platform)) + " ") + version_name(run);
  }
}

std::string state_versions(const ModelGroup& group, const Pair& pair) {
  if (!pair.versions) return "";
  return fmt::format("; two versions of {}, not two platforms{}",
                     display_name(*group.contenders[pair.subject].first().framework), describe_step_times(group, pair));
}

}  // namespace tprimat::results
