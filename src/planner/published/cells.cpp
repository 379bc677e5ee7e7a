#include "published/cells.h"

#include <cctype>
#include <cmath>

#include "published/printed.h"

namespace tprimat::planner {

std::string lower_text(std::string_view text) {
  std::string result(text.substr(0, 4096));
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool mentions(const std::string& lower, std::string_view word) { return lower.find(word) != std::string::npos; }

std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column) {
  constexpr double k_max_count = 1 << 24;
  const auto printed = parse_printed(row.cell(column));
  if (!printed || printed->approximate || printed->value < 1 || printed->value > k_max_count) return std::nullopt;
  if (printed->value != std::floor(printed->value)) return std::nullopt;
  return static_cast<int64_t>(printed->value);
}

}  // namespace tprimat::planner
