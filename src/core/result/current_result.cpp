#include "result/current_result.h"

#include "text/fast_json.h"

namespace tprimat {
namespace {

// A parser keeps its buffers from file to file.
simdjson::dom::parser& parser_of_thread(size_t bytes) {
  constexpr size_t k_deepest_nesting = 200;  // as parse_json
  thread_local simdjson::dom::parser parser;
  thread_local const bool ready =
      parser.allocate(std::max<size_t>(bytes, 1 << 16), k_deepest_nesting) == simdjson::SUCCESS;
  (void)ready;
  return parser;
}

bool is_current(const simdjson::dom::object& object) {
  int64_t version = 0;
  return object["schema_version"].get(version) == simdjson::SUCCESS && version == k_schema_version &&
         object["platform"].error() == simdjson::SUCCESS && object["status"].error() == simdjson::SUCCESS &&
         object["step_times"].error() == simdjson::SUCCESS;
}

}  // namespace

std::optional<RunResult> read_current_result(std::string_view text) {
  simdjson::dom::object object;
  FastElement root;
  if (parser_of_thread(text.size()).parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (root.get(object) != simdjson::SUCCESS || !is_current(object)) return std::nullopt;
  std::optional<RunResult> result(std::in_place);
  if (!read_fast(root, *result)) return std::nullopt;
  return result;
}

}  // namespace tprimat
