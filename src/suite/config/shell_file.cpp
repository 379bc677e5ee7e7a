#include "config/shell_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "config/values.h"
#include "text/format.h"
#include "text/yaml.h"

namespace tprimat::suite {
namespace {

using Variables = std::map<std::string, std::string>;

// A variable of the scripts, the section of its key and the key.
struct ShellKey {
  const char *variable, *section, *key;
  bool is_number = true;
};

constexpr ShellKey k_keys[] = {{"SEED", "general", "seed"},
                               {"MBS", "data", "micro_batch_size"},
                               {"SL", "data", "seq_length"},
                               {"TRAIN_ITERS", "duration", "max_steps"},
                               {"LR", "optimizer", "learning_rate"},
                               {"WARMUP_STEPS", "optimizer", "warmup_steps"},
                               {"WEIGHT_DECAY", "optimizer", "weight_decay"},
                               {"BETA1", "optimizer", "beta1"},
                               {"BETA2", "optimizer", "beta2"},
                               {"PRECISION", "precision", "default", false},
                               {"FP8_HYBRID", "precision", "fp8_hybrid", false},
                               {"FP8_PARAM", "precision", "fp8_param", false}};
constexpr const char* k_sections[] = {"general", "data", "duration", "optimizer", "precision"};

bool is_word(std::string_view text) {
  constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
  return !text.empty() && text.size() <= 32 && text.find_first_not_of(k_letters) == std::string_view::npos;
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// As a shell reads it: "2", '2' and 2 are the same, and a comment may follow. What has more parts is no word.
std::string_view read_word(std::string_view text) {
  if (text.empty() || (text.front() != '"' && text.front() != '\''))
    return text.substr(0, text.find_first_of(" \t\r;#"));
  const size_t end = text.find(text.front(), 1);
  if (end == std::string_view::npos) return "";
  const std::string_view rest = text.substr(end + 1);
  return rest.empty() || rest.find_first_of(" \t\r;#") == 0 ? text.substr(1, end - 1) : "";
}

// NAME=VALUE or export NAME=VALUE, one a line, with comments; lines of another form are not settings.
Variables read_variables(std::string_view text) {
  Variables variables;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = without_blanks(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("export ")) line = without_blanks(line.substr(7));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = read_word(line.substr(equals + 1));
    if (is_word(line.substr(0, equals)) && is_word(value)) variables[std::string(line.substr(0, equals))] = value;
  }
  return variables;
}

std::optional<int64_t> find_count(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return std::nullopt;
  const auto count = parse_whole(yaml_scalar(found->second, {}));
  return count && *count > 0 && *count < 100000 ? count : std::nullopt;
}

bool is_readable(const ShellKey& key, const std::string& value) {
  return !key.is_number || parse_number(yaml_scalar(value, {})).has_value();
}

std::string render_training(const Variables& variables) {
  std::string sections;
  for (const std::string_view section : k_sections) {
    std::vector<std::string> settings;
    for (const ShellKey& each : k_keys)
      if (const auto found = variables.find(each.variable);
          section == each.section && found != variables.end() && is_readable(each, found->second))
        settings.push_back(fmt::format("{}: {}", each.key, found->second));
    const auto batch = find_count(variables, "MBS"), data = find_count(variables, "DP"),
               accumulation = find_count(variables, "GA");
    if (section == "data" && batch && data && accumulation)
      settings.push_back(fmt::format("global_batch_size: {}", *batch * *data * *accumulation));
    if (!settings.empty())
      sections += fmt::format("{}{}: {{{}}}", sections.empty() ? "" : ", ", section, join(settings, ", "));
  }
  return sections.empty() ? "" : fmt::format("  training: {{{}}}", sections);
}

std::string render_layout(const Variables& variables) {
  std::vector<std::string> sizes;
  for (const char* size : {"TP", "PP", "DP", "GA"})
    if (const auto count = find_count(variables, size)) sizes.push_back(fmt::format("{}: {}", size, *count));
  return sizes.empty() ? "" : fmt::format("  and the layout  {{{}}}", join(sizes, ", "));
}

}  // namespace

void refuse_shell_file(std::string_view text, const std::string& name) {
  if (!name.ends_with(".env")) return;
  const Variables variables = read_variables(text);
  if (variables.empty()) return;
  throw Error(Problem{"holds shell variables; a configuration is YAML, and also names its models and devices", name,
                      fmt::format("start from tprimat config init --config my.yaml{}{}",
                                  render_training(variables).empty() ? "" : ", with" + render_training(variables),
                                  render_layout(variables))});
}

}  // namespace tprimat::suite
