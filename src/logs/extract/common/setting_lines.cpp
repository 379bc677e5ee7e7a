#include "extract/common/setting_lines.h"

#include <algorithm>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_flags = 2000;

bool is_key_char(char c) { return is_name_char(c) || c == '.' || c == '-' || c == '/'; }

// Removes the key at the start of the text; "" if there is none. Filler dots do not belong to it.
std::string_view take_key(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && is_key_char(text[length])) {
    if (text[length] == '.' && text.substr(length, 3) == "...") break;
    ++length;
  }
  const std::string_view key = text.substr(0, length);
  if (key.empty() || length > k_longest_key || !(is_letter(key.front()) || key.front() == '_')) return {};
  text.remove_prefix(length);
  return key;
}

// Nothing for a value that spans lines.
std::optional<Setting> make_setting(std::string_view key, std::string_view value) {
  if (trim(value) == "{") return std::nullopt;
  return Setting{std::string(key), quote_text(value, k_longest_value)};
}

// The prefixes of torchrun and DeepSpeed: "I0307 22:41:27.659000 192252 torch/.../api.py:194]", "[INFO]
// [config.py:752:print]".
std::string_view skip_log_prefix(std::string_view text) {
  if (const auto rest = text_after(text, ":print]")) return *rest;
  const size_t at = text.find("]  ");
  return at != std::string_view::npos && contains(text.substr(0, at), ".py:") ? text.substr(at + 1) : text;
}

std::string_view without_origin(std::string_view value) {
  for (const std::string_view origin : {"updated", "default"})
    if (value.ends_with(origin)) value.remove_suffix(origin.size());
  while (value.ends_with(".")) value.remove_suffix(1);
  return value;
}

// ds_report's "[NO] ....... [OKAY]" and timers: "....: (1.0, 2.0)".
bool is_other_table(std::string_view rest) {
  return rest.starts_with(":") || rest.starts_with("[NO]") || rest.starts_with("[YES]") || rest.starts_with("[OKAY]");
}

bool is_short_flag(std::string_view word) { return word.size() > 1 && word[0] == '-' && is_letter(word[1]); }

}  // namespace

std::optional<Setting> read_dotted_setting(std::string_view text, bool updated_or_default) {
  std::string_view rest = trim(skip_log_prefix(text));
  if (rest.starts_with("arguments ")) rest = trim(rest.substr(10));
  const std::string_view key = take_key(rest);
  if (key.empty()) return std::nullopt;
  rest = trim(rest);
  const size_t dots = std::min(rest.find_first_not_of('.'), rest.size());
  if (dots < 3) return std::nullopt;
  rest = rest.substr(dots);
  if (is_other_table(rest) || (!rest.empty() && rest.front() != ' ')) return std::nullopt;
  rest = trim(rest);
  if (is_other_table(rest)) return std::nullopt;
  return make_setting(key, updated_or_default ? without_origin(rest) : rest);
}

std::optional<Setting> read_undotted_setting(std::string_view text, bool updated_or_default) {
  std::string_view rest = trim(skip_log_prefix(text));
  const bool of_primus = rest.starts_with("arguments ");
  if (of_primus) rest = trim(rest.substr(10));
  const std::string_view key = take_key(rest);
  if (key.size() < 20 || rest.empty() || rest.front() != ' ') return std::nullopt;
  if (!of_primus && !rest.starts_with("  ")) return std::nullopt;
  rest = trim(rest);
  return make_setting(key, updated_or_default ? without_origin(rest) : rest);
}

std::optional<Setting> read_typed_setting(std::string_view text) {
  std::string_view rest = trim(text);
  const std::string_view key = take_key(rest);
  rest = trim(rest);
  if (key.empty() || !rest.starts_with(": ") || !rest.ends_with(")")) return std::nullopt;
  const size_t type = rest.rfind(" (");
  if (type == std::string_view::npos || type == 0) return std::nullopt;
  const std::string_view name = rest.substr(type + 2, rest.size() - type - 3);
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_char)) return std::nullopt;
  return make_setting(key, rest.substr(2, type > 2 ? type - 2 : 0));
}

std::optional<Setting> read_dropped_setting(std::string_view text) {
  if (const auto unknown = text_between(text, "Removing invalid parameter '", "'"))
    return make_setting(*unknown, "its recipe does not take it");
  const auto skipped = text_between(text, "Skipping config_container.", ": type mismatch (");
  if (!skipped || *skipped == "model") return std::nullopt;  // "model" holds the name of a preset, in every experiment
  const auto target = text_between(text, "(target=", ","), source = text_between(text, "source=", ")");
  if (!target || !source) return std::nullopt;
  return make_setting(*skipped, "it has the type " + std::string(*target) + ", and the value " + std::string(*source));
}

std::optional<Setting> read_colon_setting(std::string_view text) {
  std::string_view rest = skip_log_prefix(text);
  if (!rest.starts_with("  ")) return std::nullopt;
  rest = trim(rest);
  const std::string_view key = take_key(rest);
  rest = trim(rest);
  if (key.empty() || !rest.starts_with(":")) return std::nullopt;
  return make_setting(key, rest.substr(1));
}

std::optional<Setting> read_adapter_setting(std::string_view text) {
  std::string_view rest = trim(text.substr(std::min<size_t>(text.find(' '), text.size())));
  const std::string_view key = take_key(rest);
  rest = trim(rest);
  if (key.empty() || rest.empty()) return std::nullopt;
  return make_setting(key, rest);
}

namespace {

// The next word, without list punctuation.
std::string_view take_argument(std::string_view& text) {
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!word.empty() && (word.front() == '\'' || word.front() == '[')) word.remove_prefix(word.size() > 1 ? 1 : 0);
  return word;
}

bool is_long_flag(std::string_view word) { return word.starts_with("--") && word.size() > 2 && is_letter(word[2]); }

// "--key=value" or "--key"
Setting read_flag(std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  Setting flag{std::string(word.substr(2, equals - 2)), ""};
  std::replace(flag.key.begin(), flag.key.end(), '-', '_');
  if (equals < word.size()) flag.value = quote_text(word.substr(equals + 1), k_longest_value);
  return flag;
}

}  // namespace

std::vector<Setting> read_command_line(std::string_view text) {
  std::vector<Setting> found;
  bool takes_values = false;  // until the program's name or a flag of one letter ends them
  while (!text.empty() && found.size() < k_max_flags) {
    const std::string_view word = take_argument(text);
    if (is_long_flag(word)) {
      Setting flag = read_flag(word);
      if (flag.key.size() > k_longest_key) continue;
      found.push_back(std::move(flag));
      takes_values = true;
    } else if (word.ends_with(".py") || is_short_flag(word)) {
      takes_values = false;
    } else if (takes_values && !word.empty() && word != "\\" && found.back().value.size() < k_longest_value) {
      std::string& value = found.back().value;
      value += (value.empty() ? "" : " ") + quote_text(word, k_longest_value);
    }
  }
  for (Setting& flag : found)
    if (flag.value.empty()) flag.value = "True";
  return found;
}

std::optional<Setting> read_adapters(std::string_view text) {
  constexpr size_t k_shown = 60;
  if (looks_like_source(text)) return std::nullopt;
  for (const std::string_view kind : {"LoraConfig(", "LoRA("}) {
    const size_t at = text.find(kind);
    const bool is_own_word = at == 0 || (at != std::string_view::npos && !is_name_char(text[at - 1]));
    if (is_own_word) return Setting{"peft", quote_text(text.substr(at), k_shown)};
  }
  if (contains(text, "pplying LoRA to") || contains(text, "dding lora to")) return Setting{"peft", "LoRA"};
  if (contains(text, "Freezing base model")) return Setting{"freeze_base_model", "True"};
  const auto scheme = text_after(text, "peft_scheme:");
  if (!scheme || trim(*scheme).empty()) return std::nullopt;
  return Setting{"peft_scheme", quote_text(trim(*scheme), k_shown)};
}

std::optional<Setting> read_expert_count(std::string_view text) {
  for (const std::string_view key : {"num_local_experts", "num_moe_experts", "n_routed_experts", "num_experts"}) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos || (at > 0 && is_name_char(text[at - 1]))) continue;
    std::string_view rest = text.substr(at + key.size());
    if (rest.starts_with("\"") || rest.starts_with("'")) rest.remove_prefix(1);
    rest = trim(rest);
    if (!rest.starts_with(":") && !rest.starts_with("=")) continue;
    const auto count = parse_whole(trim(rest.substr(1)));
    if (count && *count > 0) return Setting{std::string(key), std::to_string(*count)};
  }
  return std::nullopt;
}

std::optional<Setting> read_tokenizer_vocabulary(std::string_view text) {
  const auto size = whole_after(text, "padded vocab (size: ");
  if (!size || *size <= 0 || !contains(text, "dummy tokens")) return std::nullopt;
  return Setting{k_tokenizer_vocabulary, std::to_string(*size)};
}

std::vector<Setting> read_model_arguments(std::string_view text) {
  const auto built = text_after(text, "Building ");
  if (!built) return {};
  const size_t arguments = built->find("Args("), with = built->find(" with ");
  const bool is_call = with != std::string_view::npos && arguments != std::string_view::npos && with < arguments &&
                       built->substr(with + 6, arguments - with - 6).find_first_of(" ({") == std::string_view::npos;
  if (!is_call) return {};
  std::vector<Setting> found;
  for (Setting& each : read_call_arguments(built->substr(arguments + 5))) {
    const std::string name = "model_args." + each.key;
    const size_t inner = each.value.find("Args(");
    if (inner == std::string::npos) {
      found.push_back({name, std::move(each.value)});
    } else {
      for (Setting& part : read_call_arguments(std::string_view(each.value).substr(inner + 5)))
        found.push_back({name + "." + part.key, std::move(part.value)});
    }
  }
  return found;
}

std::optional<Setting> read_planned_exit(std::string_view text) {
  constexpr size_t k_shown = 40;
  const auto how = text_after(text, "exiting program ");
  if (!how || (!how->starts_with("at iteration") && !contains(*how, "minutes"))) return std::nullopt;
  return Setting{"exiting program", quote_text(how->substr(0, how->find(']')), k_shown)};
}

}  // namespace tprimat::logs
