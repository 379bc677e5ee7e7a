#include "base/log.h"

#include <fmt/color.h>
#include <fmt/core.h>

#include <cstdio>

namespace tprimat {
namespace {

LogSettings g_settings;  // written once by main before any thread starts

void print(std::string_view label, fmt::terminal_color colour, std::string_view sentence) {
  const std::string styled =
      g_settings.colour ? fmt::format(fmt::fg(colour) | fmt::emphasis::bold, "{}", label) : std::string(label);
  fmt::print(stderr, "{}{}{}\n", styled, label.empty() ? "" : ": ", sentence);
}

}  // namespace

void configure_log(const LogSettings& settings) { g_settings = settings; }
const LogSettings& log_settings() { return g_settings; }

void log_error(std::string_view sentence) { print("error", fmt::terminal_color::red, sentence); }
void log_warning(std::string_view sentence) {
  if (g_settings.level != LogLevel::quiet) print("warning", fmt::terminal_color::yellow, sentence);
}
void log_note(std::string_view sentence) {
  if (g_settings.level != LogLevel::quiet) print("", fmt::terminal_color::white, sentence);
}
void log_detail(std::string_view sentence) {
  if (g_settings.level == LogLevel::verbose) print("detail", fmt::terminal_color::cyan, sentence);
}

}  // namespace tprimat
