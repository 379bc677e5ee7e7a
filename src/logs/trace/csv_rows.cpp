#include "trace/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace tprimat::logs {

CsvCells take_csv_row(std::string_view& text) {
  CsvCells cells(1);
  bool quoted = false;
  size_t at = 0;
  for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
    const char c = text[at];
    if (c == '"' && quoted && at + 1 < text.size() && text[at + 1] == '"')
      cells.back() += text[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return cells;
}

CsvTable::CsvTable(std::string_view text, std::string_view where) : where_(where), rest_(text) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  header_ = take_csv_row(rest_);
}

std::optional<size_t> CsvTable::find_column(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found != header_.end()) return static_cast<size_t>(found - header_.begin());
  }
  return std::nullopt;
}

size_t CsvTable::require_column(std::initializer_list<std::string_view> names) const {
  const auto column = find_column(names);
  if (!column) throw Error(Problem{fmt::format("has no column \"{}\"", *names.begin()), where_, ""});
  return *column;
}

void CsvTable::refuse(std::string_view what) const {
  throw Error(Problem{fmt::format("row {} {}", number_, what), where_, ""});
}

bool CsvTable::next() {
  do {
    if (rest_.empty()) return false;
    row_ = take_csv_row(rest_);
    ++number_;
  } while (row_.size() == 1 && row_.front().empty());
  if (row_.size() < header_.size()) refuse(fmt::format("has {} cells, not {}", row_.size(), header_.size()));
  return true;
}

std::optional<double> CsvTable::figure(size_t column) const {
  std::string text = row_[column];
  std::erase(text, ',');
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> CsvTable::whole(size_t column) const {
  std::string_view text = row_[column];
  if (const size_t blank = text.find(' '); blank != std::string_view::npos) text.remove_prefix(blank + 1);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace tprimat::logs
