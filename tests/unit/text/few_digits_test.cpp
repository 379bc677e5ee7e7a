#include "text/few_digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <string>

#include "text/json.h"
#include "text/json_object_printer.h"

namespace tprimat {
namespace {

// A value alone is printed by the library, a series by ours.
std::string by_library(double value) { return "{\n  \"x\": [" + print_json_line(Json(value)) + "]\n}\n"; }
std::string by_series(double value) {
  JsonObjectPrinter printer;
  printer.add("x", std::span(&value, 1));
  return std::move(printer).finish();
}

TEST(FewDigits, AreFoundWhateverPlacesAreTriedFirst) {
  for (const int first : {0, 3, 9, 17}) {
    int places = first;
    const auto found = find_few_digits(1.2007, places);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->digits, 12007u);
    EXPECT_EQ(found->places, 4);
  }
  for (const double value : {0.0, -1.5, 1e15, 1e300, 1e-13, 0.1 + 0.2, std::nan(""), HUGE_VAL, 5e-324}) {
    int places = 0;
    EXPECT_FALSE(find_few_digits(value, places)) << value;
  }
}

TEST(FewDigits, ArePrintedAsTheLibraryPrintsThem) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const int digits = 1 + static_cast<int>(random() % 16), places = static_cast<int>(random() % 24) - 4;
    const double whole = std::floor(std::pow(10.0, digits) * std::ldexp(static_cast<double>(random() >> 11), -53));
    const double value = whole / std::pow(10.0, places);
    for (const double each : {value, std::nextafter(value, 0), value / 3, std::ldexp(1.0, places)})
      ASSERT_EQ(by_series(each), by_library(each)) << each;
  }
}

}  // namespace
}  // namespace tprimat
