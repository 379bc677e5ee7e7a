#include "extract/plain_number.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <random>
#include <string>

namespace tprimat::logs {
namespace {

// What the standard library reads there.
PlainNumber by_library(const std::string& text) {
  PlainNumber number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error == std::errc()) number.length = static_cast<size_t>(end - text.data());
  return number;
}

TEST(PlainNumber, IsTheNearestOne) {
  for (const char* text :
       {"1200.7 | loss", "1.099519E+01", "1.500000E-07|", "0", "007", "3.14.15", "1,234", "5e", "5e+1", "12e-03x",
        "9007199254740993", "123456789012345", "0.30000000000000004", "1e+99", "4.5 e+01"}) {
    const PlainNumber found = read_plain_number(text), expected = by_library(text);
    if (found.length == 0) continue;
    EXPECT_EQ(found.length, expected.length) << text;
    EXPECT_EQ(found.value, expected.value) << text;
  }
  EXPECT_EQ(read_plain_number("1200.7 | loss").length, 6u);
  EXPECT_EQ(read_plain_number("1.099519E+01").length, 12u);
}

TEST(PlainNumber, LeavesOthersToTheLibrary) {
  for (const char* text : {"", "-1", "+1", ".5", "12.", "12.e+01", "nan", "inf", "1e5", "1e+5", "1e+123", "9.5E-40",
                           "12345678901234567", "99999999999999999999999999", "x1"})
    EXPECT_EQ(read_plain_number(text).length, 0u) << text;
}

TEST(PlainNumber, OfAnyDigitsIsTheLibrarys) {
  std::mt19937_64 random(3);
  const std::string characters = "0123456789012345678901234567.eE+- ,";
  int compared = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (size_t length = 1 + random() % 20; length > 0; --length) text += characters[random() % characters.size()];
    const PlainNumber found = read_plain_number(text), expected = by_library(text);
    if (found.length == 0) continue;
    ++compared;
    ASSERT_EQ(found.length, expected.length) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>(found.value), std::bit_cast<uint64_t>(expected.value)) << text;
  }
  EXPECT_GT(compared, 50'000);
}

}  // namespace
}  // namespace tprimat::logs
