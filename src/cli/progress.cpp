#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "command_line/terminal.h"
#include "text/format.h"

namespace tprimat::cli {

std::string describe_progress(const Progress& progress, std::string_view things, double seconds) {
  const std::string text = fmt::format("{} of {} {}", progress.done, progress.all, things);
  if (progress.done == 0) return text;
  const double each = seconds / static_cast<double>(progress.done);
  return fmt::format("{}, {} left", text, format_duration(each * static_cast<double>(progress.all - progress.done)));
}

void show_progress(const Progress& progress, std::string_view things, SteadyClock::time_point start) {
  if (!is_live_terminal(STDERR_FILENO) || log_settings().level == LogLevel::quiet) return;
  const bool ended = progress.done >= progress.all;
  write_stderr("\r\033[K" + (ended ? "" : describe_progress(progress, things, seconds_since(start))));
}

}  // namespace tprimat::cli
