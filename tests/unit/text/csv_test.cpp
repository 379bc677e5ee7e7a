#include "text/csv.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
}

TEST(Csv, DisarmsFormulasBehindBlanksToo) {
  for (const char* text : {"=1+1", "+1", "-1+1", "@SUM(1)", "\t=1", "\r\n=1", " \n @x", "＝1"})
    EXPECT_EQ(disarm_formula(text), std::string("'") + text);
  EXPECT_EQ(disarm_formula("llama =1"), "llama =1");
  EXPECT_EQ(disarm_formula(""), "");
}

TEST(Csv, OfForeignTextHoldsNothingThatSteers) {
  EXPECT_EQ(csv_text("\n=1+1"), "' =1+1");
  EXPECT_EQ(csv_text("a\033[2J\xe2\x80\xae,"), "\"a\\x1b[2J\\u202e,\"");
}

TEST(Csv, NumbersKeepAllDigits) {
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number({}), "");
}

TEST(Csv, RowsAreTakenOffTheText) {
  std::string_view text = "a,\"b\"\"1\"\", c\",\"two\nlines\"\r\n,x\nlast";
  EXPECT_EQ(take_csv_row(text), (std::vector<std::string>{"a", "b\"1\", c", "two\nlines"}));
  EXPECT_EQ(take_csv_row(text), (std::vector<std::string>{"", "x"}));
  EXPECT_EQ(take_csv_row(text), (std::vector<std::string>{"last"}));
  EXPECT_TRUE(text.empty());
  text = "1,2,3\n4";
  EXPECT_EQ(take_csv_row(text, 2), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(text, "4");
}

}  // namespace
}  // namespace tprimat
