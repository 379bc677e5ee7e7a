#include "extract/dialects/mlperf_line.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_mark = ":::MLLOG";
constexpr size_t k_longest = 1 << 20;  // bytes of one line's JSON

std::optional<Json> parse_object(std::string_view text) {
  const size_t open = text.find('{'), close = text.rfind('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  text = text.substr(open, close - open + 1);
  if (text.size() > k_longest) return std::nullopt;
  try {
    Json json = parse_json(replace_bare_words(text, [](std::string_view) { return std::string("null"); }), "MLLOG");
    return json.is_object() ? std::optional<Json>(std::move(json)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Figure json_figure(const Json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return value.is_number() ? Figure(value.get<double>()) : Figure();
}

Figure json_figure(const Json& object, const char* key) {
  const Json* found = object.find(key);
  return found == nullptr ? Figure() : json_figure(*found);
}

std::optional<int64_t> json_count(const Json& value) {
  const Figure figure = json_figure(value);
  if (!figure.finite() || !(*figure >= 1 && *figure < 9e15) || std::floor(*figure) != *figure) return std::nullopt;
  return static_cast<int64_t>(*figure);
}

std::optional<int64_t> json_count(const Json& object, const char* key) {
  const Json* found = object.find(key);
  return found == nullptr ? std::nullopt : json_count(*found);
}

std::optional<MlperfLine> take_mlperf_line(std::string_view& text) {
  if (!skip_past(text, k_mark)) {
    text = {};
    return std::nullopt;
  }
  const std::string_view one = text.substr(0, text.find(k_mark));
  text.remove_prefix(one.size());
  const auto json = parse_object(one);
  const Json* key = json ? json->find("key") : nullptr;
  if (key == nullptr || !key->is_string()) return std::nullopt;
  MlperfLine line;
  line.key = key->text();
  line.value = json->value("value", Json());
  line.metadata = json->value("metadata", Json());
  if (const Figure ms = json_figure(*json, "time_ms"); ms.finite()) line.seconds = *ms / 1e3;
  return line;
}

}  // namespace tprimat::logs
