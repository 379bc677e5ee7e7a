#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tprimat {

// One row of an embedded data file, by column name.
using TsvRow = std::map<std::string, std::string, std::less<>>;

// Lines that start with '#' are comments; the first other line names the columns. Our own files only: a malformed one
// is a bug (CHECK).
std::vector<TsvRow> parse_tsv_rows(std::string_view text);

// The parts between separators, without empty ones.
std::vector<std::string> split_words(std::string_view text, char separator);

// "bf16=989" -> "bf16" and "989"; without = the second is empty.
std::pair<std::string_view, std::string_view> split_setting(std::string_view word);

// Lower case letters and digits alone, so that "Llama-3.1 8B" and "llama3.1_8b" are one name.
std::string fold_name(std::string_view name);

// Whole text as a number; anything else is a bug in our data (CHECK).
double parse_figure(std::string_view text);

// The rows of an embedded table, and each by its names: its key, its full_name and its aliases, in any usual spelling.
// Two rows with the same name are a bug (CHECK).
template <class Row>
class NamedRows {
 public:
  NamedRows(std::string_view table, Row (*parse)(const TsvRow&), const char* key, const char* aliases) {
    for (const TsvRow& row : parse_tsv_rows(table)) {
      std::vector<std::string> names = split_words(row.at(aliases), '|');
      names.push_back(row.at(key));
      names.push_back(row.at("full_name"));
      for (const std::string& name : names)
        CHECK(places_.try_emplace(fold_name(name), rows_.size()).first->second == rows_.size());
      rows_.push_back(parse(row));
    }
  }

  const std::vector<Row>& rows() const { return rows_; }
  const Row* find(std::string_view name) const {
    const auto found = places_.find(fold_name(name));
    return found != places_.end() ? &rows_[found->second] : nullptr;
  }

 private:
  std::vector<Row> rows_;
  std::map<std::string, size_t> places_;  // by folded name
};

}  // namespace tprimat
