#include "trace/workbook.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "zip_fixture.h"

namespace tprimat::logs {
namespace {

std::string workbook_refusal(std::string_view bytes) {
  try {
    read_workbook(bytes, "w.xlsx");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Workbook, ReadsInlineAndSharedStringsAndNumbers) {
  const Workbook workbook = read_workbook(
      make_workbook(
          {{"first",
            R"(<row r="1"><c r="A1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>in &amp; out</t></is></c></row>
                                  <row r="4"><c r="B4"><f>1+1</f><v>2.5</v></c><c r="D4" s="3"/><c t="s"><v>0</v></c></row>)"},
           {"empty", ""}},
          "<si><t>zero</t></si><si><r><t>on</t></r><r><rPr/><t>e</t></r></si>"),
      "w.xlsx");
  ASSERT_EQ(workbook.sheets.size(), 2u);
  const Sheet& sheet = workbook.sheets[0];
  EXPECT_EQ(sheet.name, "first");
  EXPECT_EQ(sheet.rows, 4u);
  EXPECT_EQ(sheet.columns, 5u);
  ASSERT_EQ(sheet.content.size(), 2u);
  EXPECT_EQ(cell_text(sheet.content[0], 0), "one");
  EXPECT_EQ(cell_text(sheet.content[0], 1), "");
  EXPECT_EQ(cell_text(sheet.content[0], 2), "in & out");
  EXPECT_EQ(cell_number(sheet.content[1], 1), 2.5);
  EXPECT_FALSE(cell_number(sheet.content[0], 0).has_value());
  EXPECT_EQ(cell_text(sheet.content[1], 4), "zero");
  EXPECT_EQ(workbook.sheets[1].rows, 0u);
}

TEST(Workbook, MovesWithoutLosingItsTexts) {
  Workbook first = read_workbook(make_workbook({{"s", sheet_data({{"short", "1"}})}}), "w.xlsx");
  const Workbook second = std::move(first);
  EXPECT_EQ(cell_text(second.sheets.at(0).content.at(0), 0), "short");
}

TEST(Workbook, RefusesWhatIsNone) {
  EXPECT_NE(workbook_refusal("PK").find("not a zip file"), std::string::npos);
  EXPECT_NE(workbook_refusal(std::string(1000, 'x')).find("not a zip file"), std::string::npos);
  EXPECT_NE(workbook_refusal(make_zip({{"a.txt", "hello"}})).find("it has no xl/workbook.xml"), std::string::npos);
  const std::string whole = make_workbook({{"s", sheet_data({{"x"}})}});
  EXPECT_NE(workbook_refusal(whole.substr(0, whole.size() / 2)).find("not a zip file, or is truncated"),
            std::string::npos);
  EXPECT_NE(workbook_refusal(make_workbook({{"s", "<row><c>"}})).find("sheet1.xml, which is damaged at byte"),
            std::string::npos);
}

TEST(Workbook, DoesNotUnpackBombs) {
  const std::string big(33'000'000, ' ');
  EXPECT_NE(workbook_refusal(make_workbook({{"s", big}})).find("32 MB"), std::string::npos);
  auto parts = workbook_parts({{"s", big}});
  std::string zip = make_zip(parts);
  // The directory claims a small size.
  const size_t entry = zip.find("PK\x01\x02");
  zip.replace(entry + 24, 4, little_endian(100, 4));
  EXPECT_NE(workbook_refusal(zip).find("larger than 32 MB"), std::string::npos);
}

TEST(Workbook, KeepsToTheLimitsOfTheFormat) {
  const Workbook workbook =
      read_workbook(make_workbook({{"s", R"(<row r="1048576"><c r="XFD1048576"><v>1</v></c><c><v>2</v></c></row>
                              <row><c><v>3</v></c></row>)"}}),
                    "w.xlsx");
  EXPECT_EQ(workbook.sheets[0].rows, 1048576u);
  EXPECT_EQ(workbook.sheets[0].columns, 16384u);
  EXPECT_EQ(workbook.sheets[0].content.size(), 1u);
}

// Whatever byte is wrong, there is a result or a sentence.
TEST(Workbook, SurvivesEveryWrongByte) {
  const std::string whole =
      make_workbook({{"s", sheet_data({{"type", "time ms"}, {"busy_time", "1"}})}}, "<si><t>a</t></si>");
  for (size_t i = 0; i < whole.size(); ++i)
    for (const char wrong : {'\0', '\xff', static_cast<char>(whole[i] ^ 1)}) {
      std::string bytes = whole;
      bytes[i] = wrong;
      workbook_refusal(bytes);
    }
  SUCCEED();
}

}  // namespace
}  // namespace tprimat::logs
