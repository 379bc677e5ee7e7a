#include "result/schema.h"

#include "result/run_result.h"
#include "text/json_fields.h"

namespace tprimat {

std::string print_schema() {
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "tprimat/result/1"},
      {"title", "TensorPrimat result"},
      {"description", "One training run, from launch to exit. A figure that is not known is absent or null, never 0."}};
  const Json fields = json_schema<RunResult>();
  for (const auto& [key, value] : fields.items()) schema[key] = value;
  schema["properties"]["schema_version"] = {{"const", k_schema_version}, {"description", "version of this schema"}};
  schema["properties"]["platform"]["enum"].push_back(nullptr);  // a log that does not say
  schema["required"].push_back("platform");
  return print_json(schema);
}

}  // namespace tprimat
