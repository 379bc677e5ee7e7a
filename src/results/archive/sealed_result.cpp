#include "archive/sealed_result.h"

#include <algorithm>

namespace tprimat::results {

bool is_result(const Json& json) {
  if (!json.is_object()) return false;
  const auto has = [&](const char* key) { return json.contains(key); };
  const bool has_figures = has("step_times") || has("raw_step_times") || has("performance_metrics");
  return (has("platform") || has("gpu_info")) && has_figures;
}

bool holds_results(const Json& json) {
  return json.is_structured() && std::any_of(json.begin(), json.end(), [](const Json& each) {
           return is_result(each) || (each.is_array() && std::any_of(each.begin(), each.end(), is_result));
         });
}

}  // namespace tprimat::results
