#pragma once

#include <optional>
#include <string>
#include <utility>

#include "spec/names.h"

namespace tprimat::suite {

// A framework to run, and which of its installations: "mega", "mega@a".
struct FrameworkChoice {
  FrameworkChoice(Framework id, std::optional<std::string> installation = {})
      : framework(id), label(std::move(installation)) {}

  Framework framework;
  std::optional<std::string> label;  // a name under frameworks.<id>.installations; nothing: as `paths` states

  std::string name() const;  // with the framework's short name
  bool operator==(const FrameworkChoice&) const = default;
};

// "megatron@a" -> {mega, "a"}; nothing where the text before the @ is no framework.
std::optional<FrameworkChoice> find_framework_choice(const std::string& text);

// The same of an option. Throws Error with the choices and the nearest.
FrameworkChoice parse_framework_choice(const std::string& text, const std::string& option);

}  // namespace tprimat::suite
