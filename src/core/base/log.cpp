#include "base/log.h"

#include <fmt/format.h>

#include "base/output.h"
#include "base/printable.h"

namespace tprimat {
namespace {

LogSettings g_settings;  // written once by main before any thread starts

// Only a remedy, which is indented, has its own line; any other line break comes from foreign text.
std::string one_sentence(std::string_view sentence) {
  std::string text = printable(sentence, "\n\t");
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    if (text.compare(at + 1, 2, "  ") != 0) text[at] = ' ';
  return text;
}

// Of a terminal, by ECMA-48 (SGR). fmt's own colours would compile all of its formatting once more.
enum class Colour { red = 31, yellow = 33, cyan = 36, none = 39 };

void print(std::string_view label, Colour colour, std::string_view sentence) {
  const std::string styled =
      g_settings.colour ? fmt::format("\x1b[1m\x1b[{}m{}\x1b[0m", static_cast<int>(colour), label) : std::string(label);
  write_stderr(fmt::format("{}{}{}\n", styled, label.empty() ? "" : ": ", one_sentence(sentence)));
}

}  // namespace

void configure_log(const LogSettings& settings) { g_settings = settings; }
const LogSettings& log_settings() { return g_settings; }

void log_error(std::string_view sentence) { print("error", Colour::red, sentence); }
void log_warning(std::string_view sentence) {
  if (g_settings.level != LogLevel::quiet) print("warning", Colour::yellow, sentence);
}
void log_note(std::string_view sentence) {
  if (g_settings.level != LogLevel::quiet) print("", Colour::none, sentence);
}
void log_detail(std::string_view sentence) {
  if (g_settings.level == LogLevel::verbose) print("detail", Colour::cyan, sentence);
}

}  // namespace tprimat
