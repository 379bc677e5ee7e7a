#include "cli/extract_request.h"

#include "result/result_place.h"

namespace tprimat::cli {

std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request) {
  const logs::AttemptChoice& attempts = request.options.attempts;
  const std::filesystem::path output = request.output;
  return tprimat::result_path(result, log, output, attempts.all || (attempts.number && output.extension() != ".json"));
}

std::filesystem::path free_result_path(const RunResult& result, const std::string& log, const ExtractRequest& request,
                                       std::set<std::filesystem::path>& taken) {
  const std::filesystem::path wanted = result_path(result, log, request);
  return wanted == std::filesystem::path(request.output) ? wanted : free_path(wanted, result, taken);
}

}  // namespace tprimat::cli
