#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "extract/anchor_scanner.h"
#include "extract/line_cleaner.h"
#include "extract/log_builder.h"
#include "extract/log_source.h"
#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

TEST(Figure, AbsentIsNotNan) {
  EXPECT_FALSE(Figure().known());
  EXPECT_TRUE(Figure(std::numeric_limits<double>::quiet_NaN()).known());
  EXPECT_EQ(Figure(2.5).value_or(0), 2.5);
  EXPECT_EQ(Figure().value_or(7), 7);
  EXPECT_FALSE(Figure(std::numeric_limits<double>::infinity()).finite());
}

TEST(ScanText, FindsTextAsTheStandardLibraryDoes) {
  std::mt19937 random(1);
  const auto text_of = [&](size_t most) {
    std::string text(random() % (most + 1), ' ');
    for (char& c : text) c = "ab\xff"[random() % 3];
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    const std::string text = text_of(70), part = text_of(5);
    ASSERT_EQ(find_text(text, part), std::string_view(text).find(part)) << text << " in " << part;
  }
}

TEST(ScanText, NumbersInEveryDress) {
  EXPECT_EQ(*parse_number("  12.5 ms"), 12.5);
  EXPECT_EQ(*parse_number("1.244502E+01|"), 12.44502);
  EXPECT_EQ(*parse_number("-3"), -3);
  EXPECT_EQ(*parse_number("12,345.5"), 12345.5);
  EXPECT_FALSE(parse_number("1,2").known());  // a list, or a decimal comma
  EXPECT_TRUE(std::isnan(*parse_number("NaN")));
  EXPECT_TRUE(std::isinf(*parse_number("-inf")));
  EXPECT_FALSE(parse_number("abc").known());
  EXPECT_FALSE(parse_number("").known());
  EXPECT_TRUE(std::isnan(*parse_number("1e999")));
  EXPECT_EQ(parse_whole("2e+3"), 2000);
  EXPECT_EQ(parse_whole("39.00"), 39);
  EXPECT_EQ(parse_whole("39.5"), std::nullopt);
  EXPECT_EQ(parse_whole("1e300"), std::nullopt);
}

TEST(ScanText, HumanNumbersKeepTheirRounding) {
  const auto number = parse_human_number("28.2K");
  ASSERT_TRUE(number);
  EXPECT_DOUBLE_EQ(number->value, 28200);
  EXPECT_DOUBLE_EQ(number->low, 28150);
  EXPECT_DOUBLE_EQ(number->high, 28250);
  EXPECT_DOUBLE_EQ(parse_human_number("272")->low, 271.5);
  EXPECT_FALSE(parse_human_number("K"));
}

TEST(ScanText, TimeStamps) {
  for (const char* text : {"2024-09-03 15:54:54", "[2024-09-03 15:54:54]", "20240903 15:54:54", "09/03/2024 15:54:54",
                           " 2024-09-03T15:54:54", "2024/09/03 15:54:54"}) {
    std::string_view rest = text;
    EXPECT_EQ(take_timestamp(rest).value_or(0), 1725378894) << text;
    EXPECT_TRUE(rest.empty()) << rest;
  }
  std::string_view fraction = "[2023-04-18 01:48:06,269] [INFO]";
  EXPECT_NEAR(*take_timestamp(fraction), 1681782486.269, 1e-6);
  EXPECT_EQ(fraction, " [INFO]");
  for (const char* text : {"2024-13-03 15:54:54", "2024-09-03 25:54:54", "12:30:00", "[2024-09-03 15:54:54", "x"}) {
    std::string_view rest = text;
    EXPECT_FALSE(take_timestamp(rest).known()) << text;
    EXPECT_EQ(rest, text);
  }
}

TEST(ScanText, BytesAreNotMixed) {
  EXPECT_DOUBLE_EQ(*parse_bytes_gb("1GiB"), 1.073741824);
  EXPECT_DOUBLE_EQ(*parse_bytes_gb("4 GB"), 4);
  EXPECT_DOUBLE_EQ(*parse_bytes_gb("1024 MiB"), 1.073741824);
  EXPECT_DOUBLE_EQ(*parse_bytes_gb("29225381888 B"), 29.225381888);
  EXPECT_FALSE(parse_bytes_gb("12 apples").known());
}

TEST(LineCleaner, TakesOffWhatLaunchersPutOn) {
  LineCleaner cleaner;
  const auto check = [&](const char* raw, const char* text, int32_t rank) {
    const LogLine line = cleaner.clean(raw, 1);
    EXPECT_EQ(line.text, text) << raw;
    EXPECT_EQ(line.rank, rank) << raw;
  };
  check(" 12: step 3", "step 3", 12);
  check("[default3]: iteration", " iteration", 3);
  check("[rank0]:[rank0]: Traceback", " Traceback", 0);
  check("[0434:5]:text", "text", 5);
  check("[1,7]<stdout>:text", "text", 7);
  check("ining-demo/0 [default4]:Training", "Training", 4);
  check("\x1b[32mgreen\x1b[0m text", "green text", -1);
  check("[[32mx[0m y", "[x y", -1);
  check("12/45 [00:57<01:00]", "12/45 [00:57<01:00]", -1);
  check("loss: 2.5", "loss: 2.5", -1);
  check("123456789012: x", "123456789012: x", -1);
}

TEST(LineCleaner, PrimusPrefixTellsRankAndRanks) {
  LineCleaner cleaner;
  const LogLine line = cleaner.clean(
      "[\x1b[32m20251030 07:25:36\x1b[0m][\x1b[36mrank-7/8\x1b[0m][\x1b[1mINFO \x1b[0m] \x1b[1m[----trainer.py:2509] : "
      "hello\x1b[0m",
      1);
  EXPECT_EQ(line.text, "hello");
  EXPECT_EQ(line.rank, 7);
  EXPECT_EQ(line.ranks, 8);
  EXPECT_EQ(line.unix_time.value_or(0), 1761809136);
}

TEST(AnchorScanner, AgreesWithThePlainSearch) {
  const std::vector<std::string_view> anchors = {"iteration ", "loss:",  "out of memory",  "Watchdog",
                                                 "aaaa",       "NaN or", "tokens_per_sec", "step:"};
  const AnchorScanner scanner(anchors);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const size_t length = random() % 700;
    while (text.size() < length) {
      if (random() % 9 == 0)
        text += anchors[random() % anchors.size()];
      else
        text += "aeinstor lo:NW\n"[random() % 15];
    }
    std::vector<std::pair<size_t, uint32_t>> expected, actual;
    for (size_t at = 0; at < text.size(); ++at)
      for (uint32_t i = 0; i < anchors.size(); ++i)
        if (std::string_view(text).substr(at, anchors[i].size()) == anchors[i]) expected.emplace_back(at, i);
    std::vector<AnchorHit> hits;
    scanner.scan(text, hits);
    for (const AnchorHit& hit : hits) actual.emplace_back(hit.position, hit.anchor);
    std::sort(actual.begin(), actual.end());
    ASSERT_EQ(actual, expected) << text;
    ASSERT_EQ(count_newlines(text), std::count(text.begin(), text.end(), '\n'));
  }
}

std::string gzip(const std::string& text) {
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string megatron_line(int step, double ms, const std::string& prefix = "") {
  char line[400];
  std::snprintf(line, sizeof line,
                "%s iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning "
                "rate: 1.000000E-04 | global batch size:    16 | lm loss: %.6E | loss scale: 1.0 | grad norm: 1.250 | "
                "number of skipped iterations:   0 | number of nan iterations:   0 |\n",
                prefix.c_str(), step, step * 16, ms, 10.0 / step);
  return line;
}

std::string megatron_log(int steps) {
  std::string text;
  for (int step = 1; step <= steps; ++step) text += megatron_line(step, 500 + step);
  return text;
}

TEST(LogSource, CompressionMakesNoDifference) {
  const std::string text = megatron_log(5000);
  for (const std::string& bytes :
       {text, gzip(text), zstd(text), gzip(text.substr(0, 70000)) + gzip(text.substr(70000))}) {
    const ReadLog read = read_log_text(bytes, {});
    EXPECT_EQ(read.log.steps.size(), 5000u);
    EXPECT_EQ(read.lines, 5000);
    EXPECT_TRUE(read.log.notes.empty());
  }
}

TEST(LogSource, TruncatedArchiveGivesWhatIsThere) {
  const std::string text = megatron_log(5000);
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const ReadLog read = read_log_text(whole.substr(0, whole.size() / 2), {});
    EXPECT_GT(read.log.steps.size(), 10u);
    EXPECT_LT(read.log.steps.size(), 5000u);
    ASSERT_FALSE(read.log.notes.empty());
    EXPECT_NE(read.log.notes.back().find("ends early"), std::string::npos) << read.log.notes.back();
  }
}

TEST(LogSource, LinesAreWholeWhateverTheirLength) {
  const std::string text =
      std::string(300000, 'x') + "\n" + megatron_log(3) + std::string(20'000'000, 'y') + "\n" + megatron_line(4, 10);
  const ReadLog read = read_log_text(text, {});
  EXPECT_EQ(read.log.steps.size(), 4u);
  EXPECT_EQ(read.lines, 6);
  EXPECT_EQ(read.log.steps.back().line, 6);
}

TEST(ReadLog, RanksBecomeOneStep) {
  std::string text;
  for (int step = 1; step <= 20; ++step)
    for (int rank = 0; rank < 8; ++rank)
      text += megatron_line(step, 100 + step, "[default" + std::to_string((rank + step) % 8) + "]:");
  const ReadLog read = read_log_text(text, {});
  ASSERT_EQ(read.log.steps.size(), 20u);
  EXPECT_EQ(read.log.records, 160);
  EXPECT_EQ(read.log.steps.front().reports, 8);
}

TEST(ReadLog, RestartRepeatsSteps) {
  std::string text = megatron_log(15) + "restarting\n";
  for (int step = 10; step <= 20; ++step) text += megatron_line(step, 600 + step);
  const ReadLog read = read_log_text(text, {});
  EXPECT_EQ(read.log.steps.size(), 26u);
  ASSERT_EQ(read.log.event_counts.count(EventKind::restart), 1u);
  const RunResult result = make_result(read, "x.log", {});
  EXPECT_EQ(result.step_times.size(), 20u);
  EXPECT_EQ(result.source.attempts, 2);
  ASSERT_TRUE(result.steps);
  ASSERT_EQ(result.steps->labelled.size(), 1u);
  EXPECT_EQ(result.steps->labelled[0].label, StepLabel::restart);
  EXPECT_EQ(result.steps->labelled[0].step, 10);
}

TEST(ReadLog, AModelThatWasCutHasNoShapeByItsName) {
  ReadLog read = read_log_text(megatron_log(5), {});
  read.log.facts.model = "llama";
  EXPECT_TRUE(make_result(read, "x.log", {}).model_info.shape);
  read.log.facts.parameters = 8'000'000'000;
  EXPECT_TRUE(make_result(read, "x.log", {}).model_info.shape);
  read.log.facts.parameters = 1'923'125'248;
  const RunResult result = make_result(read, "x.log", {});
  EXPECT_FALSE(result.model_info.shape);
  EXPECT_TRUE(std::any_of(result.warnings.begin(), result.warnings.end(), [](const std::string& warning) {
    return warning.find("it is another model") != std::string::npos;
  }));
}

TEST(ReadLog, MissingLossIsNan) {
  std::string text = megatron_log(3);
  std::string line = megatron_line(4, 500);
  line.erase(line.find(" lm loss"), line.find(" loss scale") - line.find(" lm loss"));
  const ReadLog read = read_log_text(text + line, {});
  ASSERT_EQ(read.log.steps.size(), 4u);
  EXPECT_TRUE(read.log.steps.back().loss.known());
  EXPECT_TRUE(std::isnan(*read.log.steps.back().loss));
  const RunResult result = make_result(read, "x.log", {});
  EXPECT_EQ(result.status, RunStatus::invalid);
}

TEST(ReadLog, CutLastFieldIsNotRead) {
  const std::string line = megatron_line(2, 500);
  const ReadLog read = read_log_text(megatron_line(1, 500) + line.substr(0, line.find("lm loss: ") + 11), {});
  EXPECT_EQ(read.log.steps.size(), 1u);  // a step without its loss counts for nothing
}

TEST(ReadLog, SecondStepMayBeAMean) {
  const auto line = [](const char* stamp, int step, double ms) {
    return std::string(" [2026-05-15 17:10:") + stamp + "]" + megatron_line(step, ms);
  };
  const ReadLog read =
      read_log_text(line("32.805", 1, 25412.7) + line("33.447", 2, 13027.2) + line("34.043", 3, 596.2), {});
  ASSERT_EQ(read.log.steps.size(), 3u);
  EXPECT_EQ(read.log.steps[1].mean_of, 2);
  EXPECT_EQ(read.log.steps[2].mean_of, 1);
}

TEST(ReadLog, EvaluationInsideAStepIsLeftOut) {
  std::string text;
  for (int step = 1; step <= 40; ++step) {
    text += megatron_line(step, step == 21 ? 9000 : 500);
    if (step == 20)
      text += " validation loss at iteration 20 on validation set | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |\n";
  }
  const RunResult result = make_result(read_log_text(text, {}), "x.log", {});
  ASSERT_TRUE(result.steps);
  ASSERT_EQ(result.steps->labelled.size(), 1u);
  EXPECT_EQ(result.steps->labelled[0].step, 21);
  EXPECT_EQ(result.steps->labelled[0].label, StepLabel::evaluation);
  ASSERT_TRUE(result.statistics);
  EXPECT_NEAR(result.statistics->mean, 0.5, 1e-9);
}

TEST(ReadLog, UnknownFormatIsNamed) {
  EXPECT_THROW(read_log_text("x", {"megatrom"}), Error);
  EXPECT_EQ(read_log_text("", {}).why_nothing, "the file is empty");
  EXPECT_EQ(read_log_text("hello\nworld\n", {}).why_nothing, "no known log format was recognised");
}

TEST(LogBuilder, LateRankIsNoRestart) {
  LogBuilder log;
  const auto add = [&](int32_t rank, int64_t step) {
    LogLine line{"", step, rank, -1, {}};
    ExtractedStep record = LogBuilder::start_step(line, step);
    record.loss = 1.0 / static_cast<double>(step);
    log.add(record);
  };
  for (const auto& [rank, step] : {std::pair{0, 1}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}}) add(rank, step);
  EXPECT_EQ(log.log().steps.size(), 3u);
  EXPECT_TRUE(log.log().events.empty());
}

}  // namespace
}  // namespace tprimat::logs
