#pragma once

#include <string_view>

namespace tprimat {

// Diagnostics go to stderr, so that stdout holds results only. Set once by main.
enum class LogLevel { quiet, normal, verbose };
struct LogSettings {
  LogLevel level = LogLevel::normal;
  bool colour = false;  // stderr is a terminal and neither --no-color nor NO_COLOR was given
};
void configure_log(const LogSettings& settings);
const LogSettings& log_settings();

void log_error(std::string_view sentence);    // always shown
void log_warning(std::string_view sentence);  // hidden by --quiet
void log_note(std::string_view sentence);     // hidden by --quiet
void log_detail(std::string_view sentence);   // shown by --verbose

}  // namespace tprimat
