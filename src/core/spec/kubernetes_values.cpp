#include "spec/kubernetes_values.h"

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "text/words.h"

namespace tprimat {
namespace {

constexpr std::string_view k_small_letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_capital_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr size_t k_max_label = 63, k_max_name = 253;

bool consists_of(std::string_view text, const std::string& characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool begins_properly(std::string_view text) { return is_alphanumeric(text.front()) && is_alphanumeric(text.back()); }

// A part of a label's name or value: letters, digits and -_. between them.
bool is_qualified_word(std::string_view text) {
  return text.size() <= k_max_label &&
         consists_of(text, std::string(k_small_letters) + std::string(k_capital_letters) + "-_.") &&
         begins_properly(text);
}

bool is_qualified_key(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_qualified_word(text);
  return is_kubernetes_name(text.substr(0, slash)) && is_qualified_word(text.substr(slash + 1));
}

// No path of a pod holds a colon.
bool is_mount_path(std::string_view path) {
  return path.size() > 1 && path.front() == '/' && path.find(':') == std::string_view::npos && printable(path) == path;
}

}  // namespace

std::optional<KubernetesVolume> parse_kubernetes_volume(std::string_view text) {
  KubernetesVolume volume;
  if (text.ends_with(":ro")) volume.read_only = true, text.remove_suffix(3);
  const size_t first = text.find(':'), last = text.rfind(':');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view kind = text.substr(0, first);
  volume.source = text.substr(first + 1, last - first - 1);
  volume.path = text.substr(last + 1);
  while (volume.path.size() > 1 && volume.path.back() == '/') volume.path.pop_back();
  if (!is_mount_path(volume.path)) return std::nullopt;
  if (kind == "claim" && is_kubernetes_name(volume.source)) return volume;
  volume.kind = KubernetesVolume::Kind::host;
  if (kind == "host" && is_mount_path(volume.source)) return volume;
  return std::nullopt;
}

std::optional<KubernetesToleration> parse_kubernetes_toleration(std::string_view text) {
  constexpr std::array<std::string_view, 3> k_effects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  KubernetesToleration toleration;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    toleration.effect = text.substr(colon + 1);
    if (std::ranges::find(k_effects, toleration.effect) == k_effects.end()) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (const size_t equal = text.find('='); equal != std::string_view::npos) {
    toleration.value = text.substr(equal + 1);
    if (!toleration.value->empty() && !is_qualified_word(*toleration.value)) return std::nullopt;
    text = text.substr(0, equal);
  }
  if (!is_qualified_key(text)) return std::nullopt;
  toleration.key = text;
  return toleration;
}

std::optional<SecretReference> parse_secret_reference(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, slash), key = text.substr(slash + 1);
  const std::string allowed = std::string(k_small_letters) + std::string(k_capital_letters) + "-_.";
  if (!is_kubernetes_name(name) || key.size() > k_max_name || !consists_of(key, allowed)) return std::nullopt;
  return SecretReference{std::string(name), std::string(key)};
}

std::optional<std::pair<std::string, std::string>> parse_kubernetes_pair(std::string_view text) {
  const size_t equal = text.find('=');
  if (equal == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, equal), value = text.substr(equal + 1);
  if (!is_qualified_key(name) || (!value.empty() && !is_qualified_word(value))) return std::nullopt;
  return std::pair{std::string(name), std::string(value)};
}

bool is_kubernetes_quantity(std::string_view text) {
  constexpr std::array<std::string_view, 14> k_units = {"",  "m",  "k",  "M",  "G",  "T",  "P",
                                                        "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  return number.size() <= 18 && std::ranges::count(number, '.') <= 1 &&
         consists_of(number.substr(0, 1), "0123456789") && number.back() != '.' &&
         std::ranges::find(k_units, text.substr(end)) != k_units.end();
}

bool is_kubernetes_label(std::string_view text) {
  return text.size() <= k_max_label && consists_of(text, std::string(k_small_letters) + "-") && begins_properly(text);
}

bool is_kubernetes_name(std::string_view text) {
  return text.size() <= k_max_name && consists_of(text, std::string(k_small_letters) + "-.") && begins_properly(text);
}

}  // namespace tprimat
