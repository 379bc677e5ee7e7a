#include "spec/tsv_rows.h"

#include <algorithm>

#include "text/words.h"

namespace tprimat {
std::vector<TsvRow> parse_tsv_rows(std::string_view text) {
  std::vector<TsvRow> rows;
  std::vector<std::string_view> columns;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string_view> cells = split(line, '\t');
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    CHECK(cells.size() == columns.size());
    TsvRow& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size(); ++i) row[std::string(columns[i])] = cells[i];
  }
  return rows;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, separator))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

std::pair<std::string_view, std::string_view> split_setting(std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  return {word.substr(0, equals), word.substr(std::min(equals + 1, word.size()))};
}

std::string fold_name(std::string_view name) {
  std::string folded = lower_case(name);
  std::erase_if(folded, [](char c) { return !is_letter(c) && !is_digit(c); });
  return folded;
}

double parse_figure(std::string_view text) {
  const auto figure = parse_number<double>(text);
  CHECK(figure.has_value());
  return *figure;
}

}  // namespace tprimat
