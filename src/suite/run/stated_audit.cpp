#include "run/stated_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "text/words.h"

namespace tprimat::suite {
namespace {

constexpr std::string_view k_none = "none";

// "True" and "true" are one value, as are "None" and "null", and "['a', 'b']" and "[\"a\",\"b\"]".
std::string plain(std::string_view value) {
  std::string text;
  for (const char c : value)
    if (std::string_view("\"'[]() ").find(c) == std::string_view::npos) text += c;
  const std::string lower = lower_case(text);
  if (lower == "null" || lower == "none") return std::string(k_none);
  return lower == "true" || lower == "false" ? lower : text;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// A function is printed as "torch.nn.functional.silu" or "<function silu at 0x7f>", a member of an enumeration as
// "AttnBackend.auto".
bool is_same(const std::string& asked, const std::string& effective) {
  constexpr double k_same = 1e-9;  // relative; both are printed whole
  const auto a = number_in(asked), b = number_in(effective);
  if (a && b) return std::abs(*a - *b) <= k_same * std::max(std::abs(*a), std::abs(*b));
  for (const char* end : {"at0x", ">"})
    if (effective.starts_with('<') && effective.find("function" + asked + end) != std::string::npos) return true;
  return asked == effective || effective.ends_with("." + asked);
}

// What the log shows of a setting: its value, or of a function the entry that YAML makes of it, or both.
std::vector<std::string> find_printed(const std::string& name, const std::map<std::string, std::string>& settings) {
  std::vector<std::string> values;
  if (const auto value = settings.find(name); value != settings.end()) values.push_back(plain(value->second));
  const auto target = settings.find(name + "._target_"), call = settings.find(name + "._call_");
  if (target != settings.end() && call != settings.end() && plain(call->second) == "false")
    values.push_back(plain(target->second));
  return values;
}

// Primus names a setting by its place in the configuration, or, where a recipe does not take it, without the section.
std::optional<std::string> why_dropped(const std::string& name, const std::map<std::string, std::string>& dropped) {
  for (const std::string& each : {name, name.substr(name.rfind('.') + 1)})
    if (const auto found = dropped.find(each); found != dropped.end()) return found->second;
  return std::nullopt;
}

}  // namespace

StatedAudit audit_stated(const std::vector<StatedSetting>& stated, const logs::ExtractedLog& log) {
  StatedAudit audit;
  const bool any = std::ranges::any_of(
      stated, [&](const StatedSetting& each) { return !find_printed(each.name, log.settings).empty(); });
  if (!any && !stated.empty())
    audit.warnings.emplace_back("the log shows no configuration, so the settings in effect are not known");
  for (const StatedSetting& each : stated) {
    const std::vector<std::string> effective = find_printed(each.name, log.settings);
    const auto dropped = why_dropped(each.name, log.dropped_settings);
    const std::string asked = plain(each.value);
    if (std::ranges::any_of(effective, [&](const std::string& value) { return is_same(asked, value); })) continue;
    if (effective.empty() && !dropped && (!any || asked == k_none)) continue;
    const std::string absent = dropped ? "left out" : "not in its configuration";
    audit.differences.push_back({each.key, asked, effective.empty() ? absent : effective.back()});
    if (dropped)
      audit.warnings.push_back(fmt::format("the framework left out the setting {}: {}", each.name, *dropped));
  }
  return audit;
}

}  // namespace tprimat::suite
