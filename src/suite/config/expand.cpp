#include "config/expand.h"

#include <fmt/format.h>

#include "base/environment.h"
#include "config/values.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr int k_deepest_default = 8;  // ${A:-${B:-...}}

// Where the brace that was opened just before `at` closes; npos when it never does.
size_t find_closing_brace(std::string_view text, size_t at) {
  int open = 1;
  for (; at < text.size(); ++at) {
    if (text.substr(at, 2) == "${") ++open;
    if (text[at] == '}' && --open == 0) return at;
  }
  return std::string_view::npos;
}

// What is wrong with a reference, without its place.
struct Refusal {
  std::string what, hint;
};

class Expander {
 public:
  explicit Expander(const Environment& environment) : environment_(environment) {}

  // Throws Refusal.
  std::string expand(std::string_view text, int depth) const {
    if (depth > k_deepest_default) throw Refusal{"${...} is nested too deeply", ""};
    std::string out;
    for (;;) {
      const size_t start = text.find("${");
      out += text.substr(0, start);
      if (start == std::string_view::npos) return out;
      const size_t end = find_closing_brace(text, start + 2);
      if (end == std::string_view::npos) throw Refusal{"a ${ is not closed", "write ${NAME} or ${NAME:-default}"};
      out += look_up(text.substr(start + 2, end - start - 2), depth);
      text.remove_prefix(end + 1);
    }
  }

 private:
  std::string look_up(std::string_view reference, int depth) const {
    const size_t dash = reference.find(":-");
    const std::string name(reference.substr(0, dash));
    if (!is_variable_name(name))
      throw Refusal{fmt::format("${{{}}} does not name a variable", reference.substr(0, 40)),
                    "write ${NAME} or ${NAME:-default}"};
    if (names_a_secret(name))
      throw Refusal{
          fmt::format("${{{}}} must not appear in a configuration: configurations are printed and stored", name),
          "delete it; the frameworks read it from the environment"};
    if (const std::string* value = find_variable(environment_, name)) return *value;
    if (dash != std::string_view::npos) return expand(reference.substr(dash + 2), depth + 1);
    throw Refusal{fmt::format("the environment variable {} is not set", name),
                  fmt::format("set it, or give a default: ${{{}:-value}}", name)};
  }

  const Environment& environment_;
};

void expand_at(YamlNode& node, const std::string& path, const Expander& expander, Diagnosis& diagnosis) {
  for (YamlEntry& entry : node.entries) expand_at(entry.value, join_path(path, entry.key), expander, diagnosis);
  for (YamlNode& item : node.items) expand_at(item, path, expander, diagnosis);
  if (!node.is_scalar() || node.scalar.find("${") == std::string::npos) return;
  try {
    node.scalar = expander.expand(node.scalar, 0);
    node.quoted = false;  // "${N:-8}" needs its quotes inside braces and may still mean a number
  } catch (const Refusal& refusal) {
    diagnosis.add_error({refusal.what, node.origin.text(), refusal.hint}, path);
  }
}

}  // namespace

const std::string* find_variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

void expand_variables(YamlNode& tree, const Environment& environment, Diagnosis& diagnosis) {
  expand_at(tree, "", Expander(environment), diagnosis);
}

}  // namespace tprimat::suite
