#include "process/process.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tprimat {
namespace {

using Lines = std::vector<std::string>;

Lines split(const std::vector<std::string>& pieces, size_t longest = 1000) {
  Lines lines;
  LineSplitter splitter(longest);
  const LineSink sink = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& piece : pieces) splitter.add(piece, sink);
  splitter.finish(sink);
  return lines;
}

TEST(LineSplitter, CutsAtEveryKindOfLineEnd) {
  EXPECT_EQ(split({"a\nb\r\nc\rd\n"}), (Lines{"a", "b", "c", "d"}));
  EXPECT_EQ(split({"\n\na\n"}), (Lines{"", "", "a"}));
  EXPECT_EQ(split({""}), Lines{});
}

TEST(LineSplitter, DoesNotCareHowTheBytesArrive) {
  const std::string text = "one\r\ntwo\rthree\n\nfour";
  const Lines whole = split({text});
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(split({text.substr(0, cut), text.substr(cut)}), whole) << cut;
  Lines bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(split(bytes), whole);
  EXPECT_EQ(whole, (Lines{"one", "two", "three", "", "four"}));
}

TEST(LineSplitter, HandsOnALastLineWithoutNewline) { EXPECT_EQ(split({"a\nb"}), (Lines{"a", "b"})); }

TEST(LineSplitter, BoundsTheMemoryOfAnEndlessLine) {
  EXPECT_EQ(split({"abcdefgh\n"}, 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(split({"abc\n"}, 3), Lines{"abc"});
}

TEST(LineSplitter, PassesBinaryBytes) {
  const std::string junk("\0\xff\x80\x1b[0m", 7);
  EXPECT_EQ(split({junk + "\n"}), Lines{junk});
}

}  // namespace
}  // namespace tprimat
