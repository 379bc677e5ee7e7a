#include "result/result_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "result/summary.h"
#include "sample_result.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

bool has_one_type(const Json& value, const Json& types) {
  if (types.is_string()) return has_type(value, types.get<std::string>());
  for (const Json& type : types)
    if (has_type(value, type.get<std::string>())) return true;
  return false;
}

const Json& resolve(const Json& schema) {
  static const Json document = parse_json(print_schema(), "schema");
  const std::string prefix = "#/$defs/";
  return schema.contains("$ref") ? document["$defs"][schema["$ref"].text().substr(prefix.size())] : schema;
}

// The few words of JSON Schema that ours uses, read independently of the code that wrote it.
void check_against(const Json& named, const Json& value, const std::string& where, std::vector<std::string>& faults) {
  const Json& schema = resolve(named);
  if (schema.contains("type") && !has_one_type(value, schema["type"])) faults.push_back(where + ": wrong type");
  if (schema.contains("const") && value != schema["const"]) faults.push_back(where + ": not the constant");
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    faults.push_back(where + ": not in the list");
  if (schema.contains("required"))
    for (const Json& key : schema["required"])
      if (!value.contains(key.get<std::string>())) faults.push_back(where + ": lacks " + key.get<std::string>());
  if (schema.contains("items") && value.is_array())
    for (const Json& item : value) check_against(schema["items"], item, where + "[]", faults);
  if (!value.is_object()) return;
  for (const auto& [key, item] : value.items()) {
    if (schema.contains("properties") && schema["properties"].contains(key))
      check_against(schema["properties"][key], item, where + "." + key, faults);
    else if (schema.contains("additionalProperties"))
      check_against(schema["additionalProperties"], item, where + "." + key, faults);
    else
      faults.push_back(where + "." + key + ": not in the schema");
  }
}

std::vector<std::string> faults_of(const Json& value) {
  std::vector<std::string> faults;
  check_against(parse_json(print_schema(), "schema"), value, "result", faults);
  return faults;
}

TEST(Schema, FileHoldsWhatTheFieldListsSay) {
  const std::string path = std::string(TPRIMAT_SOURCE_DIR) + "/schema/result.schema.json";
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(path, print_schema());
  EXPECT_EQ(read_file(path), print_schema()) << "regenerate with TPRIMAT_UPDATE_GOLDEN=1";
}

TEST(Schema, WrittenResultsValidate) {
  RunResult result = sample_result();
  result.loss_values[3] = std::numeric_limits<double>::quiet_NaN();
  result.telemetry.push_back({});
  result.config_audit.push_back({"precision", "bf16", "fp16"});
  summarise_run(result, {.peak = PeakInfo{"test", 1e12, "by hand"}, .usd_per_hour = 2});
  EXPECT_EQ(faults_of(run_result_to_json(result)), std::vector<std::string>{});
  EXPECT_EQ(faults_of(run_result_to_json(RunResult{})), std::vector<std::string>{});
}

TEST(Schema, NoticesWhatIsWrong) {
  Json json = run_result_to_json(sample_result());
  json.erase("timestamp");
  json["status"] = "fine";
  json["step_times"][0] = "fast";
  json["gpu_info"]["device_count"] = 1.5;
  json["schema_version"] = 2;
  EXPECT_EQ(faults_of(json).size(), 5u);
}

}  // namespace
}  // namespace tprimat
