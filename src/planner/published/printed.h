#pragma once

#include <optional>
#include <string_view>

namespace tprimat::planner {

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

// "1.10", "650264", "~32". Nothing for anything else, for what is not above 0 and for what no measurement can be.
std::optional<Printed> parse_printed(std::string_view text);

// A parameter count: "12853954560", "174.6B", "350M".
std::optional<Printed> parse_printed_count(std::string_view text);

}  // namespace tprimat::planner
