#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat {

// One row of an embedded data file, by column name.
using TsvRow = std::map<std::string, std::string, std::less<>>;

// Lines that start with '#' are comments; the first other line names the columns. Our own files only: a malformed one
// is a bug (CHECK).
std::vector<TsvRow> parse_tsv_rows(std::string_view text);

// The parts between separators, without empty ones.
std::vector<std::string> split_words(std::string_view text, char separator);

// Lower case letters and digits alone, so that "Llama-3.1 8B" and "llama3.1_8b" are one name.
std::string fold_name(std::string_view name);

// Whole text as a number; anything else is a bug in our data (CHECK).
double parse_figure(std::string_view text);

}  // namespace tprimat
