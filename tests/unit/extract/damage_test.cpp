// Logs that were cut, coloured or printed elsewhere: what remains is what the whole log says, or is absent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/sanitizers.h"
#include "extract/dialects.h"
#include "extract/line_cleaner.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

namespace fs = std::filesystem;
const fs::path k_damaged_fixtures = fs::path(TPRIMAT_SOURCE_DIR) / "tests/unit/extract/fixtures";

std::vector<fs::path> logs_of(const Dialect& dialect) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(k_damaged_fixtures / dialect.id))
    if (entry.path().extension() != ".expected" && entry.path().extension() != ".py") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

const std::pair<const char*, Figure ExtractedStep::*> k_figures[] = {
    {"time", &ExtractedStep::time_seconds},
    {"loss", &ExtractedStep::loss},
    {"learning rate", &ExtractedStep::learning_rate},
    {"grad norm", &ExtractedStep::grad_norm},
    {"loss scale", &ExtractedStep::loss_scale},
    {"batch", &ExtractedStep::global_batch_size},
    {"tokens", &ExtractedStep::tokens},
    {"TFLOP/s", &ExtractedStep::tflops_per_gpu},
    {"MFU", &ExtractedStep::mfu},
    {"tokens/s", &ExtractedStep::tokens_per_second},
    {"tokens/s/GPU", &ExtractedStep::tokens_per_second_per_gpu},
    {"samples/s", &ExtractedStep::samples_per_second},
    {"power", &ExtractedStep::power_watts_per_gpu},
    {"allocated", &ExtractedStep::memory_allocated_gb},
    {"reserved", &ExtractedStep::memory_reserved_gb},
    {"used", &ExtractedStep::memory_used_gb}};

// A step may be reported twice, the second time in more digits.
bool same(Figure a, Figure b) {
  constexpr double k_rounding = 1e-3;
  if (!a || !b) return a == b;
  return (std::isnan(*a) && std::isnan(*b)) || std::abs(*a - *b) <= k_rounding * std::abs(*a);
}

std::string show(Figure figure) { return figure ? fmt::format("{}", *figure) : "absent"; }

// That a figure of a part of the log is that of the whole. A time may follow from other lines that are there, and of
// memory the highest of all ranks counts.
bool fits(const ExtractedStep& whole, const ExtractedStep& part, Figure ExtractedStep::*member) {
  const bool is_memory = member == &ExtractedStep::memory_allocated_gb ||
                         member == &ExtractedStep::memory_reserved_gb || member == &ExtractedStep::memory_used_gb;
  return same(whole.*member, part.*member) || (is_memory && *(part.*member) <= *(whole.*member)) ||
         (member == &ExtractedStep::time_seconds && whole.time_source != part.time_source);
}

// Every figure of `part` is one that `whole` has for the same step, but for those that are left out.
std::string first_strange(const ReadLog& part, const ReadLog& whole, bool all_present) {
  std::multimap<int64_t, const ExtractedStep*> steps;
  for (const ExtractedStep& step : whole.log.steps) steps.emplace(step.step, &step);
  for (const ExtractedStep& step : part.log.steps) {
    const auto [begin, end] = steps.equal_range(step.step);
    if (begin == end) return fmt::format("a step {}", step.step);
    for (const auto& [name, member] : k_figures) {
      if (!all_present && !(step.*member)) continue;
      const auto figure = member;
      const bool found = std::any_of(begin, end, [&](const auto& each) { return fits(*each.second, step, figure); });
      if (!found) return fmt::format("{} of step {}: {}", name, step.step, show(step.*member));
    }
  }
  return all_present && part.log.steps.size() != whole.log.steps.size() ? "another number of steps" : "";
}

size_t start_of_last_lines(const std::string& text, int lines) {
  size_t start = text.size();
  for (; lines >= 0 && start != std::string::npos && start > 0; --lines) start = text.rfind('\n', start - 1);
  return start == std::string::npos ? 0 : start;
}

TEST(Damage, CutAnywhereNothingNewIsRead) {
  constexpr size_t k_stride = TPRIMAT_ADDRESS_SANITIZER ? 3 : 1;
  for (const Dialect& dialect : dialects()) {
    if (dialect.id == "tfevents" || dialect.id == "result" || dialect.id == "trainer_state") continue;  // no lines
    for (const fs::path& file : logs_of(dialect)) {
      const std::string text = read_file(file);
      const std::string format(dialect.id);
      const ReadLog whole = read_log_text(text, {format});
      for (size_t length = start_of_last_lines(text, 2); length < text.size(); length += k_stride) {
        const ReadLog part = read_log_text(text.substr(0, length), {format});
        const std::string strange = first_strange(part, whole, false);
        ASSERT_EQ(strange, "") << file << " cut behind: " << text.substr(length > 80 ? length - 80 : 0, 80);
      }
    }
  }
}

TEST(Damage, ALossThatWasCutOffIsNoNan) {
  const std::string line =
      " iteration        1/     100 | consumed samples: 8 | elapsed time per iteration (ms): 500.0 | learning rate: "
      "1.0E-04 | global batch size: 8 | number of skipped iterations:   0 | number of nan iterations:   0 | lm loss: "
      "9.1234E+00 | grad norm: 1.0 |\n";
  for (size_t length = line.find("|"); length < line.size(); ++length)
    for (const ExtractedStep& step : read_log_text(line.substr(0, length), {"megatron"}).log.steps) {
      EXPECT_FALSE(step.loss.known() && std::isnan(*step.loss)) << line.substr(0, length);
    }
}

TEST(Damage, AStepThatWasCutBeforeItsLossCountsForNothing) {
  const auto line = [](int step) {
    return fmt::format(
        " iteration {}/ 6 | elapsed time per iteration (ms): 520.0 | number of skipped iterations: 0 | number of nan "
        "iterations: 0 | lm loss: 9.1E+00 |\n",
        step);
  };
  std::string text;
  for (int step = 1; step <= 5; ++step) text += line(step);
  const std::string last = line(6);
  const size_t loss = last.find("lm loss");
  for (size_t length = 1; length < last.size(); ++length) {
    const RunResult result = make_result(read_log_text(text + last.substr(0, length), {}), "a.log", {});
    EXPECT_FALSE(result.status_reason && contains(*result.status_reason, "not a number")) << last.substr(0, length);
    if (length > 80 && length <= loss) {
      EXPECT_EQ(result.step_times.size(), 5) << last.substr(0, length);
    }
  }
}

TEST(Damage, CommasAreNotGuessedAt) {
  const std::pair<const char*, Figure> numbers[] = {{"12,345.6 ms", 12345.6},
                                                    {"1,234,567", 1234567},
                                                    {"1,234.5", 1234.5},
                                                    {"-1,234.5", -1234.5},
                                                    {"1,234", {}},
                                                    {"0,523", {}},
                                                    {"1,2", {}},
                                                    {"12,3456", {}},
                                                    {"1234,5", {}},
                                                    {"1.234,5", {}},
                                                    {"1,234,56", {}},
                                                    {"0.001,0.002", 0.001},
                                                    {"1e-4,2e-4", 1e-4},
                                                    {"2.5, 3.5", 2.5},
                                                    {"500, 600", 500},
                                                    {"0.500,1", 0.5},
                                                    {"12.3,4", 12.3}};
  for (const auto& [text, figure] : numbers) EXPECT_EQ(parse_number(text), figure) << text;
  EXPECT_EQ(parse_whole("1,234"), 1234);
  EXPECT_EQ(parse_whole("14,768,307,200"), 14768307200);
  for (const char* text : {"0,523", "1,2", "1234,567", "1,2345"}) EXPECT_EQ(parse_whole(text), std::nullopt) << text;
}

TEST(Damage, DecimalCommasGiveNoFigure) {
  std::string text;
  for (int step = 1; step <= 6; ++step)
    text += fmt::format(
        " iteration {}/ 6 | elapsed time per iteration (ms): 0,52{} | global batch size: 8 | lm loss: "
        "9,123{} | grad norm: 1,2 | number of skipped iterations: 0 | number of nan iterations: 0 |\n",
        step, step, step);
  const ReadLog read = read_log_text(text, {});
  ASSERT_EQ(read.log.steps.size(), 6);
  for (const ExtractedStep& step : read.log.steps) {
    EXPECT_FALSE(step.time_seconds) << show(step.time_seconds);
    EXPECT_FALSE(step.loss) << show(step.loss);
    EXPECT_FALSE(step.grad_norm) << show(step.grad_norm);
  }
  EXPECT_FALSE(read.log.event_counts.contains(EventKind::nan));
}

TEST(Damage, EscapeCodesChangeNothing) {
  const char* const codes[] = {"\x1b[0m", "\x1b[1;32m", "\x1b[38;2;180;60;0m", "\x1b[K", "\x1b(B", "\x1b]0;title\x07"};
  for (const Dialect& dialect : dialects()) {
    if (dialect.make_reader == nullptr) continue;
    for (const fs::path& file : logs_of(dialect)) {
      const std::string text = read_file(file);
      const ReadLog plain = read_log_text(text, {});
      for (size_t kind = 0; kind < std::size(codes); ++kind) {
        std::string coloured;
        for (size_t at = 0; at < text.size(); ++at) {
          const bool border = at > 0 && is_letter(text[at - 1]) != is_letter(text[at]) && text[at] != '\n';
          if (border && text[at - 1] != '\x1b' && at % (kind + 1) == 0) coloured += codes[kind];
          coloured += text[at];
        }
        if (contains(text, "\x1b") || contains(text, "[0m")) continue;  // codes within codes
        const ReadLog read = read_log_text(coloured, {});
        EXPECT_EQ(read.dialect, plain.dialect) << file << " " << kind;
        EXPECT_EQ(first_strange(read, plain, true), "") << file << " " << kind;
      }
    }
  }
}

TEST(Damage, FormatIsFoundBehindAColour) {
  const std::string line =
      " \x1b[32miteration\x1b[0m       {}/     100 | elapsed time per iteration (ms): 500.0 | lm loss: 9.1E+00 |\n";
  std::string text;
  for (const char* step : {"1", "2", "3"}) text += std::string(line).replace(line.find("{}"), 2, step);
  EXPECT_EQ(read_log_text(text, {}).log.steps.size(), 3);
}

TEST(Damage, EscapesEndWhereTheyShould) {
  const std::pair<const char*, const char*> cases[] = {{"a\x1b[32mb", "ab"},
                                                       {"a\x1b[38;2;180;60;0mb\x1b[0m", "ab"},
                                                       {"\x1b[?25l\x1b[2Kx", "x"},
                                                       {"\x1b]8;;http://x\x1b\\link", "link"},
                                                       {"x\x1b(By", "xy"},
                                                       {"\x1b(345.3 ms", "(345.3 ms"},
                                                       {"\x1b[2025-11-02 10:00:05] x", "[2025-11-02 10:00:05] x"},
                                                       {"cut \x1b[3", "cut [3"},
                                                       {"[32mx[0m y", "x y"},
                                                       {"list[0] [32m", "list[0] [32m"}};
  for (const auto& [raw, text] : cases) {
    std::string storage;
    EXPECT_EQ(LineCleaner::strip_escapes(raw, storage), text) << text;
  }
}

}  // namespace
}  // namespace tprimat::logs
