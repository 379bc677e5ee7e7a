#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "text/json.h"
#include "text/words.h"

namespace tprimat {

// Small scanners for the output of monitoring tools. They do not throw; text that does not fit gives nothing.

// Lines without their end (LF, CRLF), one at a time; false at the end.
bool next_line(std::string_view& text, std::string_view& line);
std::vector<std::string_view> split_words(std::string_view line);
std::vector<std::string_view> split_csv(std::string_view line);  // cells without blanks around them and without quotes
bool holds(std::string_view text, std::string_view part);

// Read as UTC, in seconds since 1970: "2026/09/12 06:17:26.305", "2026-09-12T06:17:26", "20260816 09:22:34", or a plain
// number of such seconds.
std::optional<double> parse_time(std::string_view text);
std::optional<double> parse_day(std::string_view text);            // "2026/09/12", "20260816"; seconds since 1970
std::optional<double> parse_second_of_day(std::string_view text);  // "06:17:26.305"

// "154.88 W" -> 154.88 and "W"; nothing without a number at the start.
struct Quantity {
  double value = 0.0;
  std::string_view unit;
};
std::optional<Quantity> parse_quantity(std::string_view cell);

// In W, J, 0..1, degrees Celsius, Hz or bytes. Nothing for unknown units and negative values.
std::optional<double> to_base_unit(const Quantity& quantity, std::string_view unit_if_none);

// Tools that are polled print one JSON document after another, with warnings between them. Throws Error when the first
// document is broken; returns false when a later one is, as happens when a recording is stopped.
bool for_each_json_document(std::string_view text, std::string_view where, const std::function<void(const Json&)>& use);

}  // namespace tprimat
