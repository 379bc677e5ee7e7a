#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "published/table.h"

namespace tprimat::planner {

// What the groups of a pattern (ECMAScript) hold in a row's cell, whose first 1000 characters are searched; empty where
// it does not occur. `pattern` is a literal, compiled once.
std::vector<std::string> find_in_cell(const PublishedRow& row, const std::string& column, const char* pattern);

inline std::vector<std::string> find_in_notes(const PublishedRow& row, const char* pattern) {
  return find_in_cell(row, "notes", pattern);
}

struct Bounds {
  double low = 0;
  double high = 0;
  double middle() const { return (low + high) / 2; }
  bool meets(const Bounds& other) const { return low <= other.high && other.low <= high; }
};
Bounds operator*(const Bounds& interval, double factor);               // factor > 0
Bounds operator/(const Bounds& numerator, const Bounds& denominator);  // both > 0

// A figure as a table prints it. Its last digit says how well it is known.
struct Printed {
  double value = 0;
  double unit = 1;           // of the last digit: 0.01 for "41.50"
  bool approximate = false;  // "~32"

  Bounds rounded() const;  // half a unit on each side; a whole unit where it is approximate
  Bounds cut() const;      // what cutting off the further digits leaves: up to one unit more
  Bounds either() const;   // rounded or cut
};

// "1.10", "650264", "~32". Nothing for anything else, for values not above 0, and for values that no measurement can
// have.
std::optional<Printed> parse_printed(std::string_view text);

// A parameter count: "12853954560", "174.6B", "350M".
std::optional<Printed> parse_printed_count(std::string_view text);

// The first four thousand characters, in lower case.
std::string lower_text(std::string_view text);
bool mentions(const std::string& lower, std::string_view word);

// The folded name of a GPU (spec/tsv_rows.h) without words that only say what joins it to others: "GB200 NVL72".
std::string fold_gpu_name(std::string_view name);

// A whole number that a shape or layout can have, from 1 to 2^24; nothing for an empty cell and for anything else.
std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column);

}  // namespace tprimat::planner
