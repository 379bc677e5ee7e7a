#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "cli/extract_request.h"
#include "process/interrupt.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

int64_t file_size(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

// The name follows from what is known of the run, which grows with the log; each name is settled once.
fs::path place_of(const RunResult& result, const std::string& log, const ExtractRequest& request,
                  std::map<std::string, fs::path>& places) {
  const auto [place, is_new] = places.try_emplace(result_path(result, log, request).string());
  std::set<fs::path> taken;
  if (is_new) place->second = free_result_path(result, log, request, taken);
  return place->second;
}

}  // namespace

// Reads the log anew whenever it grew: at a gigabyte per second that is cheaper than being wrong about a restart. No
// more than a tenth of the time is spent reading.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request) {
  InterruptGuard interrupt;
  std::map<std::string, fs::path> places;
  int64_t seen = -1;
  double pause = 0.5;
  while (interrupt.count() == 0) {
    if (const int64_t size = file_size(path); size != seen) {
      const auto start = SteadyClock::now();
      const RunResult result = suite::extract_runs(path, request.options).front();
      if (!result.step_times.empty() || result.events)
        write_run_result(place_of(result, path, request, places), result, Survives::kill);
      seen = size;
      pause = std::clamp(10 * seconds_since(start), 0.5, 60.0);
      const size_t entries = result.step_times.size();
      if (entries > 0) {
        const double seconds = result.step_times.back();
        log_note(
            fmt::format("step {}{}{}{}", step_number(result, entries - 1),
                        result.training_config.max_steps ? fmt::format("/{}", *result.training_config.max_steps) : "",
                        seconds > 0 ? ", " + format_duration(seconds) : "",
                        result.loss_values.empty() ? "" : fmt::format(", loss {:.4f}", result.loss_values.back())));
      }
    }
    for (double waited = 0; waited < pause && interrupt.count() == 0; waited += 0.1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return ExitStatus::interrupted;
}

}  // namespace tprimat::cli
