#include "extract/common/dumped_settings.h"

#include <algorithm>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

bool is_absent(std::string_view value) { return value.empty() || value == "None" || value == "null"; }

// "[64]" of Megatron-DeepSpeed.
std::string_view without_brackets(std::string_view text) {
  const bool is_list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  return is_list && !contains(text, ",") ? trim(text.substr(1, text.size() - 2)) : text;
}

}  // namespace

const std::string* DumpedSettings::find(const std::string& name) const {
  for (const char* prefix : {"", "model."})
    if (const auto found = settings_.find(prefix + name); found != settings_.end()) return &found->second;
  return nullptr;
}

std::string_view DumpedSettings::word(Names names) const {
  for (const char* name : names)
    if (const std::string* value = find(name); value != nullptr && !is_absent(*value)) return *value;
  return {};
}

std::optional<int64_t> DumpedSettings::whole(Names names) const {
  const auto value = parse_whole(without_brackets(word(names)));
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<double> DumpedSettings::number(Names names) const {
  const Figure value = parse_number(without_brackets(word(names)));
  return value.finite() ? value.to_optional() : std::nullopt;
}

bool DumpedSettings::is_true(Names names) const {
  const std::string_view value = word(names);
  return value == "True" || value == "true";
}

bool DumpedSettings::has_any(Names names) const {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return has(name); });
}

std::string_view DumpedSettings::family() const {
  return has_any({"num_hidden_layers", "n_layer"}) ? word({"model_type"}) : std::string_view();
}

}  // namespace tprimat::logs
