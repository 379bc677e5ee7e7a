#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tprimat::results {

// An estimate, rather too large, of the width of text in DejaVu Sans; the other fonts that may stand in are narrower.
double text_width(std::string_view text, double size, bool is_bold = false);

// As much of it as fits; an ellipsis marks the cut.
std::string fit_text(const std::string& text, double size, double width, bool is_bold = false);

// In at most `max_lines` lines, broken at blanks; the last one is cut.
std::vector<std::string> wrap_text(std::string_view text, double size, double width, size_t max_lines);

}  // namespace tprimat::results
