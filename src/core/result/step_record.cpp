#include "result/step_record.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "text/json_fields.h"

namespace tprimat {

namespace {

constexpr std::string_view k_bare_numbers[] = {"NaN", "Infinity", "-Infinity"};

// Python's json.dumps writes these, which JSON lacks; outside of texts each becomes null.
std::string null_bare_numbers(std::string_view line) {
  std::string text;
  bool is_quoted = false;
  while (!line.empty()) {
    const auto* found = std::ranges::find_if(k_bare_numbers, [&](auto each) { return line.starts_with(each); });
    const bool is_bare = !is_quoted && found != std::end(k_bare_numbers);
    const size_t length = is_bare ? found->size() : is_quoted && line.front() == '\\' ? 2 : 1;
    if (line.front() == '"') is_quoted = !is_quoted;
    text += is_bare ? "null" : line.substr(0, length);
    line.remove_prefix(std::min(length, line.size()));
  }
  return text;
}

bool has_bare_number(const std::string& line) {
  return std::ranges::any_of(k_bare_numbers, [&](auto each) { return line.find(each) != std::string::npos; });
}

std::optional<StepRecord> parse_strictly(const std::string& line) {
  try {
    const Json json = parse_json(line, "step record");
    if (!json.is_object() || !json.contains("step") || !json.contains("time_seconds")) return std::nullopt;
    StepRecord record = from_json<StepRecord>(json, "step record");
    // A null loss means NaN; a missing one means that the trainer did not report it.
    if (json.contains("loss") && json["loss"].is_null()) record.loss = std::numeric_limits<double>::quiet_NaN();
    return record;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string step_record_to_line(const StepRecord& record) { return print_json_line(to_json(record)); }

std::optional<StepRecord> parse_step_record(const std::string& line) {
  const auto record = parse_strictly(line);
  return record || !has_bare_number(line) ? record : parse_strictly(null_bare_numbers(line));
}

std::vector<StepRecord> read_step_records(const std::string& path) {
  std::vector<StepRecord> records;
  if (!std::filesystem::exists(path)) return records;
  const std::string text = read_file(path);
  for (size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    if (auto record = parse_step_record(text.substr(start, end - start))) records.push_back(*record);
  return records;
}

}  // namespace tprimat
