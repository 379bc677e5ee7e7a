#include "text/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"

namespace tprimat {

std::string csv_cell(std::string cell) {
  std::replace(cell.begin(), cell.end(), '\0', ' ');
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_text(std::string_view text) { return csv_cell(disarm_formula(printable(text))); }

std::string csv_number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

std::string disarm_formula(std::string cell) {
  constexpr std::array<std::string_view, 8> k_beginnings = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  const size_t start = cell.find_first_not_of(" \t\r\n\v\f");
  const std::string_view rest = start == std::string::npos ? "" : std::string_view(cell).substr(start);
  if (std::any_of(k_beginnings.begin(), k_beginnings.end(), [&](auto each) { return rest.starts_with(each); }))
    cell.insert(0, 1, '\'');
  return cell;
}

std::vector<std::string> take_csv_row(std::string_view& text, size_t max_cells) {
  std::vector<std::string> cells;
  std::string cell;
  const auto end_cell = [&] {
    if (cells.size() < max_cells) cells.push_back(std::move(cell));
    cell.clear();
  };
  bool quoted = false;
  size_t at = 0;
  for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
    const char c = text[at];
    if (c == '"' && quoted && at + 1 < text.size() && text[at + 1] == '"')
      cell += text[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      end_cell();
    else if (c != '\r')
      cell += c;
  }
  end_cell();
  text.remove_prefix(std::min(at + 1, text.size()));
  return cells;
}

}  // namespace tprimat
