#include "report/fit_table.h"

#include <algorithm>

#include "report/document.h"

namespace tprimat::results {
namespace {

constexpr size_t k_gap = 2;         // between columns
constexpr size_t k_min_prose = 30;  // narrower prose is a column of words

using Cells = std::vector<std::string>;  // a cell for each row, the header first

size_t text_width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t width_of(const Cells& column) {
  size_t width = 0;
  for (const std::string& cell : column) width = std::max(width, text_width(cell));
  return width;
}

size_t width_of(const std::vector<Cells>& columns) {
  size_t width = 0;
  for (const Cells& column : columns) width += width_of(column) + (width > 0 ? k_gap : 0);
  return width;
}

std::vector<Cells> columns_of(const TextTable& table) {
  size_t count = table.header.size();
  for (const auto& row : table.rows) count = std::max(count, row.size());
  std::vector<Cells> columns(count, Cells(table.rows.size() + 1));
  for (size_t i = 0; i < table.header.size(); ++i) columns[i][0] = printable(table.header[i]);
  for (size_t row = 0; row < table.rows.size(); ++row)
    for (size_t i = 0; i < table.rows[row].size(); ++i) columns[i][row + 1] = printable(table.rows[row][i]);
  return columns;
}

// Columns of lines: each cell may have several.
using Lines = std::vector<std::string>;
struct Block {
  std::vector<std::vector<Lines>> columns;
  std::vector<bool> right;

  void add(const Cells& column, bool is_right, Lines (*split)(const std::string&, size_t), size_t width) {
    columns.emplace_back();
    for (const std::string& cell : column) columns.back().push_back(split(cell, width));
    right.push_back(is_right);
  }

  TextTable to_table() const {
    TextTable table;
    for (size_t i = 0; i < columns.size(); ++i)
      if (right[i]) table.right.push_back(i);
    for (size_t row = 0; row < columns.front().size(); ++row) {
      size_t height = 1;
      for (const auto& column : columns) height = std::max(height, column[row].size());
      for (size_t line = 0; line < height; ++line) {
        std::vector<std::string>& cells = row == 0 && line == 0 ? table.header : table.rows.emplace_back();
        for (const auto& column : columns) cells.push_back(line < column[row].size() ? column[row][line] : "");
      }
    }
    return table;
  }
};

Lines one_line(const std::string& cell, size_t) { return {cell}; }
Lines wrapped(const std::string& cell, size_t width) { return wrap_words(cell, width); }

// "41.7 % [41.6 % to 41.8 %]": the figure, and its interval below.
Lines above_interval(const std::string& cell, size_t) {
  const size_t bracket = cell.ends_with(']') ? cell.find(" [") : std::string::npos;
  if (bracket == std::string::npos) return {cell};
  return {cell.substr(0, bracket), cell.substr(bracket + 1)};
}

class Fitting {
 public:
  Fitting(const TextTable& table, size_t width) : table_(table), width_(width), columns_(columns_of(table)) {
    keys_ = table.header.size() > 1 && table.header.front().empty() ? 2 : 1;  // the letter and the name, or the name
    for (const Cells& column : columns_) {
      size_t least = 0;
      for (const std::string& cell : column)
        for (const std::string& line : above_interval(cell, 0)) least = std::max(least, text_width(line));
      stacked_.push_back(least);
    }
  }

  bool has_prose() const {
    for (size_t i = keys_; i < columns_.size(); ++i)
      if (is_prose(i)) return true;
    return false;
  }

  std::vector<TextTable> blocks() {
    begin_block();
    for (size_t i = keys_; i < columns_.size(); ++i) place(i);
    end_block();
    return std::move(tables_);
  }

 private:
  bool is_right(size_t column) const { return std::ranges::find(table_.right, column) != table_.right.end(); }

  bool is_prose(size_t column) const { return !is_right(column) && stacked_[column] > k_min_prose; }

  void begin_block() {
    block_ = {};
    used_ = 0;
    for (size_t i = 0; i < std::min(keys_, columns_.size()); ++i) {
      block_.add(columns_[i], is_right(i), one_line, 0);
      used_ += width_of(columns_[i]) + (i > 0 ? k_gap : 0);
    }
  }

  void end_block() { tables_.push_back(block_.to_table()); }

  void place(size_t i) {
    const bool is_first = block_.columns.size() == keys_;
    size_t rest = width_ > used_ + k_gap ? width_ - used_ - k_gap : 0;
    if (stacked_[i] > rest && !is_first && !(is_prose(i) && rest >= k_min_prose)) {
      end_block();
      begin_block();
      rest = width_ > used_ + k_gap ? width_ - used_ - k_gap : 0;
    }
    if (stacked_[i] <= rest || !is_prose(i)) {
      block_.add(columns_[i], is_right(i), above_interval, 0);
      used_ += k_gap + stacked_[i];
      return;
    }
    const size_t prose = std::max(rest, k_min_prose);
    block_.add(columns_[i], false, wrapped, prose);
    used_ += k_gap + prose;
  }

  const TextTable& table_;
  size_t width_, keys_ = 1, used_ = 0;
  std::vector<Cells> columns_;
  std::vector<size_t> stacked_;  // width of each column with intervals below their figures
  Block block_;
  std::vector<TextTable> tables_;
};

}  // namespace

std::vector<TextTable> fit_table(const TextTable& table, size_t width) {
  const std::vector<Cells> columns = columns_of(table);
  if (columns.size() < 2 || width_of(columns) <= width) return {table};
  std::vector<TextTable> blocks = Fitting(table, width).blocks();
  if (blocks.size() < 2 || Fitting(table, width).has_prose()) return blocks;
  for (size_t less = width - 1; less > 0; --less) {  // parts of like width, not one full and one with the last column
    std::vector<TextTable> narrower = Fitting(table, less).blocks();
    if (narrower.size() > blocks.size()) break;
    blocks = std::move(narrower);
  }
  return blocks;
}

}  // namespace tprimat::results
