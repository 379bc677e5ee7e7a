#include "spec/config_hash.h"

#include <fmt/format.h>

#include "base/checksum.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

std::string hash_json(const Json& spec, const LaunchFacts& launch) {
  std::string text =
      fmt::format("{}\n{}\n{}", print_json_line(spec), enum_name(launch.platform), enum_name(launch.framework));
  if (launch.settings != PlatformSettings{}) text += "\n" + print_json_line(to_json(launch.settings));
  if (launch.launcher != Launcher::local) text += fmt::format("\n{} {}", enum_name(launch.launcher), launch.nodes);
  if (launch.arguments) text += "\n" + print_json_line(to_json(*launch.arguments));
  if (launch.installation) text += "\n" + print_json_line(to_json(*launch.installation));
  return fmt::format("fnv1a64:{:016x}", fnv1a(text));
}

}  // namespace

std::string hash_config(const TrainSpec& spec, const LaunchFacts& launch) {
  return hash_json(train_spec_to_json(spec), launch);
}

std::string hash_config_of_file(Json spec, const LaunchFacts& launch) {
  if (spec.contains("checkpoint") && spec["checkpoint"].is_object())
    spec["checkpoint"]["directory"] = launch.checkpoint_directory;
  return hash_json(spec, launch);
}

Json launch_facts_to_json(const LaunchFacts& facts) { return to_json(facts); }

LaunchFacts launch_facts_from_json(const Json& json, const std::string& where) {
  return from_json<LaunchFacts>(json, where);
}

}  // namespace tprimat
