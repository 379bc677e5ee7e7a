#include "config/values.h"

#include <gtest/gtest.h>

namespace tprimat::suite {
namespace {

YamlNode plain(const std::string& text) { return yaml_scalar(text, {}); }

TEST(Values, WholeNumbersMayBeWrittenAsFractions) {
  EXPECT_EQ(parse_whole(plain("8")), 8);
  EXPECT_EQ(parse_whole(plain("8.0e9")), 8000000000);
  EXPECT_EQ(parse_whole(plain("+3")), 3);
  EXPECT_EQ(parse_whole(plain("-0")), 0);
}

TEST(Values, WhatIsNoNumberIsNone) {
  for (const char* text :
       {"", "+", "8.5", "8x", "0x10", "1_000", " 8", "nan", ".nan", "inf", ".inf", "1e999", "99999999999999999"})
    EXPECT_EQ(parse_whole(plain(text)), std::nullopt) << text;
  for (const char* text : {"", "nan", "-inf", "1e999", "1,5", "1.5.2"})
    EXPECT_EQ(parse_number(plain(text)), std::nullopt) << text;
}

TEST(Values, QuotedNumbersAreText) {
  EXPECT_EQ(parse_number(yaml_scalar("8", {}, true)), std::nullopt);
  EXPECT_EQ(parse_boolean(yaml_scalar("true", {}, true)), std::nullopt);
}

TEST(Values, OnlyTrueAndFalseAreBoolean) {
  EXPECT_EQ(parse_boolean(plain("true")), true);
  EXPECT_EQ(parse_boolean(plain("False")), false);
  for (const char* text : {"yes", "no", "on", "off", "1", "0", "tRUE", ""})
    EXPECT_EQ(parse_boolean(plain(text)), std::nullopt) << text;
}

TEST(Values, ListsMayBeOneText) {
  EXPECT_EQ(parse_text_list(plain("a, b c")), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parse_text_list(plain("")), std::vector<std::string>{});
}

TEST(Values, AnOriginIsTheNearestKnown) {
  const YamlNode root = parse_yaml("a: {b: 1}\n", "f").root;
  EXPECT_EQ(origin_of(root, "a.b"), "f:1:8");
  EXPECT_EQ(origin_of(root, "a.c.d"), "f:1:4");
  EXPECT_EQ(find_path(root, "a.c"), nullptr);
}

TEST(Values, PathsAreSplitAtDots) {
  EXPECT_EQ(split_path("a.b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split_path(""), std::vector<std::string>{});
  EXPECT_EQ(join_path("", "a"), "a");
  EXPECT_EQ(join_path("a", "b"), "a.b");
}

}  // namespace
}  // namespace tprimat::suite
