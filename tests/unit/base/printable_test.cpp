#include "base/printable.h"

#include <gtest/gtest.h>

#include <random>

namespace tprimat {
namespace {

TEST(Printable, WhiteSpaceBecomesBlanksAndControlCharactersShow) {
  EXPECT_EQ(printable("a\033[1m\tb\x7f\n"), "a\\x1b[1m b\\x7f ");
  EXPECT_EQ(printable("é µ \xc2\x9b"
                      "2J"),
            "é µ \\u009b2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, WhatHidesOrReordersTextShows) {
  EXPECT_EQ(printable("fast\xe2\x80\xae"
                      "wols"),
            "fast\\u202ewols");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\x8b\xe2\x80\x8f\xef\xbb\xbf\xe2\x80\xa8"),
            "\\u2066\\u200b\\u200f\\ufeff\\u2028");
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");
}

TEST(Printable, OrdinaryTextOfAnyScriptStays) {
  const std::string text = "naïve — 模型 модель نموذج ⚠️ 🚀 {a: \"b\\n\"}";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, BytesThatAreNoUtf8Show) {
  EXPECT_EQ(printable("\xff \xc3"), "\\xff \\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a lone surrogate";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong slash";
  EXPECT_EQ(printable("\xf4\x90\x80\x80").find('\xf4'), std::string::npos) << "beyond Unicode";
}

TEST(Printable, KeepsWhatTheCallerSays) { EXPECT_EQ(printable("a\nb\tc\rd", "\n\t"), "a\nb\tc d"); }

TEST(Printable, OfAnyBytesIsUtf8WithoutASingleUnprintableCharacterAndOnceIsEnough) {
  std::mt19937 random(42);
  for (int i = 0; i < 5000; ++i) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string shown = printable(text);
    for (std::string_view rest = shown; !rest.empty();) {
      const auto [code, bytes] = decode_utf8(rest);
      ASSERT_GT(bytes, 0u);
      ASSERT_FALSE(is_unprintable(code));
      rest.remove_prefix(bytes);
    }
    ASSERT_EQ(printable(shown), shown);
  }
}

}  // namespace
}  // namespace tprimat
