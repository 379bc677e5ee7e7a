#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/tsv_rows.h"

namespace tprimat::planner {

// The rows of an embedded table, and each by its id and the words of its column `words`, whatever their case and
// punctuation. Of a name the first 200 characters count.
template <class Row>
class WordedRows {
 public:
  WordedRows(std::string_view table, Row (*parse)(const TsvRow&)) {
    for (const TsvRow& row : parse_tsv_rows(table)) {
      for (const std::string& word : split_words(row.at("words") + '|' + row.at("id"), '|'))
        words_.emplace_back(fold_name(word), rows_.size());
      rows_.push_back(parse(row));
    }
  }

  const std::vector<Row>& rows() const { return rows_; }

  const Row* find(std::string_view name) const {
    const std::string folded = fold_name(name.substr(0, 200));
    for (const auto& [word, row] : words_)
      if (word == folded) return &rows_[row];
    return nullptr;
  }

  // In the looser spelling of tables: the longest word that occurs in the name wins.
  template <class Accept>
  const Row* find_printed(std::string_view name, const Accept& accept) const {
    const std::string folded = fold_name(name.substr(0, 200));
    const Row* best = nullptr;
    size_t longest = 0;
    for (const auto& [word, row] : words_)
      if (word.size() > longest && folded.find(word) != std::string::npos && accept(rows_[row]))
        best = &rows_[row], longest = word.size();
    return best;
  }

 private:
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, size_t>> words_;  // folded; place in rows_
};

}  // namespace tprimat::planner
