#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "launch/frameworks.h"

namespace tprimat::suite {
namespace {

bool is_commit(std::string_view text) {
  constexpr size_t k_shortest = 7;
  return text.size() >= k_shortest && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A package's build for one accelerator is the same version ("2.13.0+cu129"), as is its copy in another checkout
// ("0.3.0rc0 in Primus 0123456789ab"). Commits have digits in common.
bool is_same_version(std::string_view installed, std::string_view checked) {
  if (is_commit(installed) && is_commit(checked))
    return installed.starts_with(checked) || checked.starts_with(installed);
  return installed.substr(0, installed.find_first_of("+ ")) == checked;
}

std::string list_versions(const CheckedVersions& checked) {
  return fmt::format("{}", fmt::join(checked.versions, ", "));
}

}  // namespace

std::string describe_checked(const FrameworkModule& module) {
  const CheckedVersions& checked = module.checked;
  if (checked.program.empty()) return "";
  return fmt::format("{} {}{}", checked.program, list_versions(checked),
                     checked.beside.empty() ? "" : fmt::format(" (with {})", checked.beside));
}

std::optional<std::string> find_unchecked_version(const FrameworkModule& module, const std::string& installed) {
  const CheckedVersions& checked = module.checked;
  const bool known = !installed.empty() && installed != k_unknown_version;
  if (checked.program.empty() || !known) return std::nullopt;
  const auto same = [&](std::string_view each) { return is_same_version(installed, each); };
  if (std::ranges::any_of(checked.versions, same)) return std::nullopt;
  return fmt::format(
      "{} {} is installed, but the plan was checked against {}: it may refuse a setting or understand it differently",
      checked.program, installed, list_versions(checked));
}

}  // namespace tprimat::suite
