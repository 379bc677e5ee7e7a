#include "run/config_hash.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/json_fields.h"

namespace tprimat {
namespace {

// http://www.isthe.com/chongo/tech/comp/fnv/
uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

std::string hash_config(const TrainSpec& spec, Framework framework, Platform platform, const PlatformSettings& settings,
                        const LauncherSettings& launch) {
  std::string text =
      fmt::format("{}\n{}\n{}", print_json_line(train_spec_to_json(spec)), enum_name(platform), enum_name(framework));
  if (settings != PlatformSettings{}) text += "\n" + print_json_line(to_json(settings));
  if (launch.launcher != Launcher::local) text += fmt::format("\n{} {}", enum_name(launch.launcher), launch.nodes);
  return fmt::format("fnv1a64:{:016x}", fnv1a(text));
}

}  // namespace tprimat
