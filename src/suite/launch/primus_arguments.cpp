#include "launch/primus_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace tprimat::suite {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(Problem{what, "frameworks.prim.arguments", hint});
}

bool is_key(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", 2) ==
             std::string::npos;
}

// "--overlap-grad-reduce", as Megatron-LM's command line has it, is the key overlap_grad_reduce.
std::string key_of(const std::string& word) {
  std::string key = word.substr(2);
  std::ranges::replace(key, '-', '_');
  return key;
}

// As YAML reads it: True and False are what Python prints.
Json value_of(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  if (text == "None") return nullptr;
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return text;
  }
}

void add_override(const std::string& word, const std::string& value, Json& overrides) {
  if (!is_key(word))
    refuse(fmt::format("'{}' is no setting of Primus' experiment file", printable(word.substr(0, 60))),
           "write --key value, --key=value, or --key for true");
  const std::string key = key_of(word);
  if (overrides.contains(key))
    refuse(
        fmt::format("{} is set already, to {}", key, print_json_line(overrides[key])),
        fmt::format("leave {} out; where it follows from the experiment, change that key of the configuration", word));
  overrides[key] = value_of(value);
}

}  // namespace

void add_primus_arguments(const std::vector<std::string>& arguments, Json& overrides) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const bool has_value = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
    if (equals != std::string::npos)
      add_override(arguments[i].substr(0, equals), arguments[i].substr(equals + 1), overrides);
    else
      add_override(arguments[i], has_value ? arguments[i + 1] : "true", overrides);
    if (equals == std::string::npos && has_value) ++i;
  }
}

}  // namespace tprimat::suite
