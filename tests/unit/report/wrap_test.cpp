#include "report/document.h"

#include <gtest/gtest.h>

namespace tprimat::results {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, BreaksAtBlanks) {
  EXPECT_EQ(wrap_words("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap_words("one", 7), (Lines{"one"}));
  EXPECT_EQ(wrap_words("", 7), (Lines{""}));
}

TEST(Wrap, NoLineBeginsWithACommandOfARunner) {
  EXPECT_EQ(wrap_words("one two ::error::x y", 8), (Lines{"one two ::error::x", "y"}));
  EXPECT_EQ(wrap_words("a abcd::error", 4), (Lines{"a", "abcd::", "erro", "r"}));
}

TEST(Wrap, CutsWordsLongerThanTheLine) { EXPECT_EQ(wrap_words("a abcdefgh", 4), (Lines{"a", "abcd", "efgh"})); }

TEST(Wrap, TwoBlanksWhereALineIsFull) { EXPECT_EQ(wrap_words("one two  three", 7), (Lines{"one two", "three"})); }

TEST(Wrap, CountsCodePoints) {
  EXPECT_EQ(wrap_words("äöü äöü", 7), (Lines{"äöü äöü"}));
  EXPECT_EQ(shorten("äöüäöü", 6), "äöüäöü");
  EXPECT_EQ(shorten("äöüäöü", 4), "äöü…");
}

}  // namespace
}  // namespace tprimat::results
