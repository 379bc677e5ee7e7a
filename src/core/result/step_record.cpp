#include "result/step_record.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "text/json_fields.h"

namespace tprimat {

std::string step_record_to_line(const StepRecord& record) { return print_json_line(to_json(record)); }

std::optional<StepRecord> parse_step_record(const std::string& line) {
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

std::vector<StepRecord> read_step_records(const std::string& path) {
  std::vector<StepRecord> records;
  if (!std::filesystem::exists(path)) return records;
  const std::string text = read_file(path);
  for (size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    if (auto record = parse_step_record(text.substr(start, end - start))) records.push_back(*record);
  return records;
}

}  // namespace tprimat
