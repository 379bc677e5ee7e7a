#include "extract/dialects/mlperf_line.h"

#include <limits>

#include "base/error.h"
#include "extract/dialects/log_facts.h"
#include "extract/scan_text.h"
#include "text/characters.h"

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

// The digits that end right before `end`.
std::optional<int64_t> count_before(std::string_view text, size_t end) {
  size_t start = end;
  while (start > 0 && is_digit(text[start - 1]) && end - start < 6) --start;
  const auto count = parse_whole(text.substr(start, end - start));
  return count && *count >= 1 ? count : std::nullopt;
}

// Where the name of the device starts.
size_t find_device(std::string_view name) {
  for (const std::string_view mark : {"GB200", "GB300", "GH200", "A100", "H100", "H200", "B200", "B300", "L40", "V100",
                                      "MI250", "MI300", "MI325", "MI350", "MI355"})
    if (const size_t at = name.find(mark); at != std::string_view::npos) return at;
  return std::string_view::npos;
}

}  // namespace

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

Figure json_figure(const Json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return value.is_number() ? Figure(value.get<double>()) : Figure();
}

Figure json_figure(const Json& object, const char* key) {
  const Json* found = object.find(key);
  return found == nullptr ? Figure() : json_figure(*found);
}

MlperfPlatform parse_mlperf_platform(std::string_view name) {
  MlperfPlatform result;
  const size_t device = find_device(name);
  if (device == std::string_view::npos) return result;
  const std::string_view gpu = name.substr(device, name.substr(device).find_first_of(" _,"));
  result.gpu_name = std::string(gpu);
  result.platform = platform_of_gpu(gpu);
  // "<systems>x<system>x<devices>" or "<system>_<devices>x": a number at the very start counts systems, not devices.
  size_t end = device;
  if (end > 0 && name[end - 1] == 'x') --end;
  const auto devices = count_before(name, end);
  if (!devices || (end <= 6 && name.find_first_not_of("0123456789") >= end)) return result;
  size_t digits = 0;
  while (digits < name.size() && is_digit(name[digits])) ++digits;
  const bool counts_systems = digits > 0 && digits < name.size() && name[digits] == 'x';
  const auto systems = counts_systems ? count_before(name, digits) : std::optional<int64_t>(1);
  if (systems) result.gpu_count = *systems * *devices;
  return result;
}

}  // namespace tprimat::logs
