#include "result/result_place.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "result/result_file.h"

namespace tprimat {
namespace {

std::string result_name(const RunResult& result, const std::string& log) {
  if (!result.model_info.name.empty() && result.platform) return result_file_name(result, {});
  return (log == "-" ? std::string("stdin") : std::filesystem::path(log).filename().string()) + ".json";
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code unreadable;
  return one == other ||
         std::filesystem::weakly_canonical(one, unreadable) == std::filesystem::weakly_canonical(other, unreadable);
}

// What the file at `path` holds. Empty if `result` may replace it.
std::string content_to_keep(const std::filesystem::path& path, const RunResult& result) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return "";
  try {
    const RunResult there = load_run_result(path);
    if (there.config_hash && !result.config_hash) return "the result of a measured run";
    const std::string log = there.source.log.value_or("another run");
    return is_same_file(log, result.source.log.value_or("")) ? "" : "the result of " + printable(log);
  } catch (const Error&) {
    return is_same_file(path, result.source.log.value_or("")) ? "the log itself" : "something other than a result";
  }
}

}  // namespace

std::filesystem::path result_path(const RunResult& result, const std::string& log, const std::filesystem::path& output,
                                  bool names_attempt) {
  const std::filesystem::path path = output.extension() == ".json" ? output : output / result_name(result, log);
  if (!names_attempt) return path;
  return path.parent_path() / fmt::format("{}.attempt{}.json", path.stem().string(), result.source.attempt.value_or(1));
}

std::filesystem::path free_path(const std::filesystem::path& wanted, const RunResult& result,
                                std::set<std::filesystem::path>& taken) {
  std::filesystem::path path = wanted;
  std::string kept;
  for (int k = 2;; ++k) {
    const std::string other = taken.contains(path) ? "" : content_to_keep(path, result);
    if (kept.empty()) kept = other;
    if (!taken.contains(path) && other.empty()) break;
    path = wanted.parent_path() / fmt::format("{}_{}.json", wanted.stem().string(), k);
  }
  taken.insert(path);
  if (!kept.empty())
    log_warning(
        fmt::format("{} holds {} and is kept; the result of {} goes to {}; --output NAME.json chooses another name",
                    wanted.string(), kept, printable(result.source.log.value_or("")), path.string()));
  return path;
}

}  // namespace tprimat
