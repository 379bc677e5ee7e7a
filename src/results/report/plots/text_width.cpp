#include "report/plots/text_width.h"

#include <algorithm>
#include <array>

#include "base/printable.h"

namespace tprimat::results {
namespace {

// Advance widths of the characters from U+0020 on in DejaVu Sans, in thousandths of the size.
constexpr auto k_ascii = std::to_array<int>(
    {318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
     636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
     575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
     611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
     278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838});

struct ScriptWidth {
  char32_t first, last;
  double width;
};

// Of other characters: about the widest of their script. Combining marks have none.
constexpr ScriptWidth k_scripts[] = {
    {0x00a0, 0x024f, 0.80}, {0x0300, 0x036f, 0},      {0x0370, 0x03ff, 0.85},   {0x0400, 0x052f, 0.95},
    {0x0590, 0x05ff, 0.70}, {0x0600, 0x06ff, 0.95},   {0x0900, 0x0dff, 0.95},   {0x0e00, 0x0fff, 0.70},
    {0x1ab0, 0x1aff, 0},    {0x1dc0, 0x1dff, 0},      {0x2010, 0x205f, 1.00},   {0x20d0, 0x20ff, 0},
    {0x2e80, 0xd7ff, 1.05}, {0xf900, 0xfaff, 1.05},   {0xfe00, 0xfe0f, 0},      {0xfe20, 0xfe2f, 0},
    {0xff00, 0xff60, 1.05}, {0x1f000, 0x1faff, 1.40}, {0x20000, 0x3ffff, 1.05},
};

double width_of(char32_t code) {
  constexpr double k_other = 1.0;
  if (code >= 0x20 && code < 0x20 + k_ascii.size()) return k_ascii[code - 0x20] / 1000.0;
  for (const ScriptWidth& script : k_scripts)
    if (code >= script.first && code <= script.last) return script.width;
  return k_other;
}

size_t bytes_of(std::string_view text) { return std::max<size_t>(1, decode_utf8(text).bytes); }

}  // namespace

double text_width(std::string_view text, double size, bool is_bold) {
  constexpr double k_bold = 1.13;
  double width = 0;
  for (; !text.empty(); text.remove_prefix(bytes_of(text))) width += width_of(decode_utf8(text).code);
  return width * size * (is_bold ? k_bold : 1);
}

std::string fit_text(const std::string& text, double size, double width, bool is_bold) {
  if (text_width(text, size, is_bold) <= width) return text;
  const double limit = width - text_width("…", size, is_bold);
  size_t end = 0;
  for (double used = 0; end < text.size();) {
    const std::string_view rest = std::string_view(text).substr(end);
    used += text_width(rest.substr(0, bytes_of(rest)), size, is_bold);
    if (used > limit) break;
    end += bytes_of(rest);
  }
  if (end == 0) return limit < 0 ? "" : "…";
  return text.substr(0, text.find_last_not_of(' ', end - 1) + 1) + "…";
}

std::vector<std::string> wrap_text(std::string_view text, double size, double width, size_t max_lines) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < max_lines) {
    size_t end = 0;  // of the words that fit
    for (size_t blank = 0; blank < text.size(); ++blank) {
      blank = std::min(text.find(' ', blank), text.size());
      if (end > 0 && text_width(text.substr(0, blank), size) > width) break;
      end = blank;
    }
    if (lines.size() + 1 == max_lines) end = text.size();
    lines.push_back(fit_text(std::string(text.substr(0, end)), size, width));
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  }
  return lines;
}

}  // namespace tprimat::results
