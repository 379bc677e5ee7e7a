#include "text/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <string>

namespace tprimat {
namespace {

TEST(Format, SiPrefixes) {
  EXPECT_EQ(format_si(4.13e11, "FLOP/s"), "413 GFLOP/s");
  EXPECT_EQ(format_si(989e12, "FLOP/s"), "989 TFLOP/s");
  EXPECT_EQ(format_si(0, "B"), "0 B");
  EXPECT_EQ(format_si(std::numeric_limits<double>::quiet_NaN(), "B"), "unknown B");
}

TEST(Format, SiRoundsUpIntoTheNextPrefix) { EXPECT_EQ(format_si(999.9e9, "B"), "1.00 TB"); }

TEST(Format, GigabytesAreDecimal) { EXPECT_EQ(format_gb(34.29e9), "34.29 GB"); }

TEST(Format, MemoryBelowAGigabyteIsInMegabytes) {
  EXPECT_EQ(format_memory(34.29e9), "34.29 GB");
  EXPECT_EQ(format_memory(31.44e6), "31.4 MB");
  EXPECT_EQ(format_memory(0.9999e9), "1.00 GB");
}

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0.0001), "100.0 us");
  EXPECT_EQ(format_duration(0.25), "250.0 ms");
  EXPECT_EQ(format_duration(1.604), "1.604 s");
  EXPECT_EQ(format_duration(192), "3 min 12 s");
  EXPECT_EQ(format_duration(7500), "2 h 05 min");
  EXPECT_EQ(format_duration(3e120), "3.0e+120 s");
}

TEST(Format, Percent) {
  EXPECT_EQ(format_percent(0.4213), "42.1 %");
  EXPECT_EQ(format_percent(0.4213, 0), "42 %");
}

TEST(Format, CountsAreGrouped) {
  EXPECT_EQ(format_count(13425.1), "13 425");
  EXPECT_EQ(format_count(1234567), "1 234 567");
  EXPECT_EQ(format_count(-1234), "-1 234");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(9.876), "9.88");
}

TEST(Format, SignificantDigits) {
  EXPECT_EQ(format_significant(1.602, 4), "1.602");
  EXPECT_EQ(format_significant(0, 3), "0");
  EXPECT_EQ(format_significant(9.996, 3), "10.0");
  EXPECT_EQ(format_significant(-0.05, 2), "-0.050");
  EXPECT_EQ(format_significant(123456, 3), "123456");
}

TEST(NearestWord, FindsASlip) {
  EXPECT_EQ(nearest_word("seq_lenght", {"seq_length", "micro_batch_size"}), "seq_length");
  EXPECT_EQ(nearest_word("lama", {"qwen", "llama"}), "llama");
}

TEST(NearestWord, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("zzzzzz", {"seq_length", "seed"}), "");
  EXPECT_EQ(nearest_word("seed", {}), "");
}

TEST(Format, NoFigureFillsTheScreen) {
  constexpr double k_largest = std::numeric_limits<double>::max();
  for (const double value : {k_largest, -k_largest, 1e300, 1e15})
    for (const std::string& text :
         {format_fixed(value, 1), format_gb(value), format_memory(value), format_count(value), format_percent(value),
          format_duration(value), format_si(value, "B"), format_significant(value, 3)})
      EXPECT_LT(text.size(), 24u) << text;
  EXPECT_EQ(format_fixed(1.25e15, 1), "1.25e+15");
  EXPECT_EQ(format_fixed(999e12, 0), "999000000000000");
}

TEST(QuoteShell, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(quote_shell("plain-1.0/x=y"), "plain-1.0/x=y");
  EXPECT_EQ(quote_shell("a b"), "'a b'");
  EXPECT_EQ(quote_shell(""), "''");
  EXPECT_EQ(quote_command(std::vector<std::string>{"sh", "-c", "a b"}), "sh -c 'a b'");
  EXPECT_EQ(quote_shell("it's"), "'it'\\''s'");
  EXPECT_EQ(quote_shell("$(reboot)"), "'$(reboot)'");
}

// What /bin/sh makes of a quoted word.
std::string through_shell(const std::string& word) {
  const std::string command = "printf '%s' " + quote_shell(word);
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

TEST(QuoteShell, GivesTheShellWhatATerminalMustNotGet) {
  for (const char* word :
       {"a\033[31mb", "\r", "it's \xe2\x80\xae $(x) \\ \"", "caf\xc3\xa9 \xff", "two\nlines\n\n", "\x01'"}) {
    EXPECT_EQ(through_shell(word), word);
    EXPECT_EQ(printable(quote_shell(word), "\n\t"), quote_shell(word));
  }
}

TEST(TextTable, HoldsCellsThatSteerNothing) {
  EXPECT_EQ(render_text({{"a"}, {{"x\ny\033"}}, {}}), "a\nx y\\x1b\n");
  EXPECT_EQ(render_markdown({{"a"}, {{"x\ny\033"}}, {}}), "| a |\n|---|\n| x<br>y\\x1b |\n");
}

TEST(TextTable, AlignsByCharactersAndNotByBytes) {
  const TextTable table{{"name", "µs"}, {{"é", "1"}, {"long", "12"}}, {1}};
  EXPECT_EQ(render_text(table), "name  µs\né      1\nlong  12\n");
}

TEST(TextTable, MarkdownEscapesPipes) {
  const TextTable table{{"a", "b"}, {{"x|y", "1"}}, {1}};
  EXPECT_EQ(render_markdown(table), "| a | b |\n|---|---:|\n| x\\|y | 1 |\n");
}

}  // namespace
}  // namespace tprimat
