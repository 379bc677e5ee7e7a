#include "config/framework_choice.h"

#include <fmt/format.h>

#include "text/choice.h"

namespace tprimat::suite {

std::string FrameworkChoice::name() const {
  return label ? fmt::format("{}@{}", enum_name(framework), *label) : std::string(enum_name(framework));
}

std::optional<FrameworkChoice> find_framework_choice(const std::string& text) {
  const size_t at = text.find('@');
  const auto framework = parse_word<Framework>(text.substr(0, at));
  if (!framework) return std::nullopt;
  if (at == std::string::npos) return FrameworkChoice(*framework);
  return FrameworkChoice(*framework, text.substr(at + 1));
}

FrameworkChoice parse_framework_choice(const std::string& text, const std::string& option) {
  if (auto choice = find_framework_choice(text)) return *choice;
  return parse_choice<Framework>(text.substr(0, text.find('@')), option);
}

}  // namespace tprimat::suite
