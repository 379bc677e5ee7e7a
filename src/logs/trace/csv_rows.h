#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// A table whose first row names the columns.
class CsvTable {
 public:
  CsvTable(std::string_view text, std::string_view where);

  bool has_column(std::string_view name) const { return find_column({name}).has_value(); }
  // The first of these names that is a column.
  std::optional<size_t> find_column(std::initializer_list<std::string_view> names) const;
  size_t require_column(std::initializer_list<std::string_view> names) const;  // throws Error

  bool next();  // a row; throws Error for one that is shorter than the header
  const std::string& text(size_t column) const { return row_[column]; }
  std::optional<int64_t> whole(size_t column) const;      // not negative; also that of "Agent 3"
  [[noreturn]] void refuse(std::string_view what) const;  // with the number of the row

 private:
  std::string where_;
  std::string_view rest_;
  std::vector<std::string> header_, row_;
  int64_t number_ = 1;
};

}  // namespace tprimat::logs
