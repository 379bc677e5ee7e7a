#include "trace/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/csv.h"
#include "text/words.h"

namespace tprimat::logs {

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

std::optional<int64_t> CsvTable::whole(size_t column) const {
  std::string_view text = row_[column];
  if (const size_t blank = text.find(' '); blank != std::string_view::npos) text.remove_prefix(blank + 1);
  const auto value = parse_number<int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace tprimat::logs
