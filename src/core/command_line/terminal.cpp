#include "command_line/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/environment.h"
#include "text/words.h"

namespace tprimat {
namespace {

constexpr size_t k_min_width = 20, k_max_width = 1000;

size_t stated_width() {  // 0: none that can be
  const auto width = parse_number<size_t>(read_environment("COLUMNS").value_or(""));
  return width && *width >= k_min_width && *width <= k_max_width ? *width : 0;
}

}  // namespace

bool is_live_terminal(int descriptor) {
  return ::isatty(descriptor) == 1 && read_environment("TERM").value_or("") != "dumb";
}

bool shows_colour(int descriptor, bool no_colour_option) {
  return is_live_terminal(descriptor) && !no_colour_option && read_environment("NO_COLOR").value_or("").empty();
}

size_t terminal_width(int descriptor, size_t otherwise) {
  if (const size_t width = stated_width(); width > 0) return width;
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= k_min_width;
  return known ? size.ws_col : otherwise;
}

}  // namespace tprimat
