#include "spec/tsv_rows.h"

#include <cctype>
#include <charconv>

#include "base/check.h"

namespace tprimat {
namespace {

std::vector<std::string> split_cells(std::string_view text, char separator) {
  std::vector<std::string> cells;
  while (true) {
    const size_t end = text.find(separator);
    cells.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return cells;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<TsvRow> parse_tsv_rows(std::string_view text) {
  std::vector<TsvRow> rows;
  std::vector<std::string> columns;
  for (const std::string& line : split_words(text, '\n')) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> cells = split_cells(line, '\t');
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    CHECK(cells.size() == columns.size());
    TsvRow& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size(); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::string& cell : split_cells(text, separator))
    if (!cell.empty()) words.push_back(std::move(cell));
  return words;
}

std::string fold_name(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) folded += static_cast<char>(std::tolower(byte));
  }
  return folded;
}

double parse_figure(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  CHECK(error == std::errc() && end == text.data() + text.size());
  return value;
}

}  // namespace tprimat
