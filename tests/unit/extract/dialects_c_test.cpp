#include <filesystem>

#include "base/error.h"
#include "unit/extract/dialect_reading.h"

namespace tprimat {
namespace {

TEST(Mlperf, TurnsSamplesIntoSteps) {
  const Reading reading = read_fixture("mlperf", "mlperf/samples.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 54.5);
  EXPECT_EQ(step(reading, 1).time_source, TimeSource::printed);
  EXPECT_DOUBLE_EQ(*step(reading, 1).tokens, 1152.0 * 8192);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_DOUBLE_EQ(*step(reading, 2).time_seconds, 55.5);  // not the mean over the block
  EXPECT_TRUE(has_note(reading, "counts samples"));
  EXPECT_TRUE(has_note(reading, "broken"));
  EXPECT_EQ(reading.log.facts.gpu_count, 16);
  EXPECT_EQ(reading.log.facts.gpu_name, "B200-SXM-180GB");
  EXPECT_EQ(count(reading, EventKind::failed), 1);  // status aborted
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_NEAR(*reading.log.events[0].seconds, 20, 1e-6);
}

TEST(Mlperf, TurnsTokensIntoSteps) {
  const Reading reading = read_fixture("mlperf", "mlperf/tokens.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(reading.log.steps.front().step, 1);
  EXPECT_EQ(reading.log.steps.back().step, 2);
  EXPECT_TRUE(has_note(reading, "counts tokens"));
  EXPECT_EQ(reading.log.facts.gpu_count, 2);  // two init_start on one line
}

TEST(Mlperf, DerivesTimesFromStampsAndMarksEvaluations) {
  const Reading reading = read_fixture("mlperf", "mlperf/losses_and_rates.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_EQ(step(reading, 10).time_source, TimeSource::from_timestamps);
  EXPECT_NEAR(*step(reading, 10).time_seconds, 1.6, 1e-9);
  EXPECT_FALSE(step(reading, 10).with_evaluation);
  EXPECT_TRUE(step(reading, 20).with_evaluation);
  EXPECT_DOUBLE_EQ(*step(reading, 20).learning_rate, 0.0004);
  EXPECT_FALSE(reading.log.facts.gpu_count.has_value());  // "1xMI300X" counts systems
  EXPECT_EQ(reading.log.facts.platform, Platform::amd);
}

TEST(Mlperf, TakesRatesWhereThereIsNothingFiner) {
  std::string text = fixture("mlperf/losses_and_rates.log");
  for (size_t at; (at = text.find("\"train_loss\"")) != std::string::npos;) text.replace(at, 12, "\"other_loss\"");
  const Reading reading = read_text(find_dialect("mlperf"), text);
  ASSERT_EQ(reading.log.steps.size(), 1u);
  EXPECT_EQ(reading.log.steps[0].step, 20);
  EXPECT_EQ(reading.log.steps[0].time_source, TimeSource::from_rate);
  EXPECT_NEAR(*reading.log.steps[0].time_seconds, 8 / 4.8, 1e-9);
}

TEST(StepFile, ReadsOurRecords) {
  const Reading reading = read_fixture("steps", "steps/adapter.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 2.5);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_FALSE(step(reading, 1).grad_norm.known());
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::allocated), 13.5);
}

TEST(Native, ReadsItsOwnConsole) {
  const Reading reading = read_fixture("native", "native/console.log");
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 0.9505);
  EXPECT_TRUE(is_nan(step(reading, 2).loss));
  EXPECT_EQ(reading.log.facts.precision, Precision::bf16);
  EXPECT_EQ(reading.log.facts.parameters, 124439808);
  EXPECT_EQ(reading.log.settings.at("attention"), "cudnn forward, own backward");
  EXPECT_GT(reading.confidence, 0.95);
}

TEST(Native, KnowsOverflowsAndEvaluations) {
  const Reading reading = read_fixture("native", "native/fp16.log");
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_TRUE(step(reading, 1).skipped);
  EXPECT_FALSE(step(reading, 1).grad_norm.known());
  EXPECT_DOUBLE_EQ(*step(reading, 1).loss_scale, 4096);
  EXPECT_FALSE(step(reading, 2).skipped);
  EXPECT_EQ(count(reading, EventKind::skipped_update), 1);
  EXPECT_EQ(count(reading, EventKind::nan), 0);
  EXPECT_FALSE(step(reading, 3).with_evaluation);  // its time leaves evaluations out
}

TEST(CsvHistory, MergesTheRowsOfAStep) {
  const Dialect& dialect = find_dialect("csv");
  const std::string text = fixture("csv/lightning_metrics.csv");
  EXPECT_TRUE(dialect.is_document(text));
  const Reading reading = read_text(dialect, text);
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 9).loss, 9.25);
  EXPECT_DOUBLE_EQ(*step(reading, 9).learning_rate, 0.0002);
  EXPECT_EQ(step(reading, 9).time_source, TimeSource::none);
  ASSERT_EQ(count(reading, EventKind::evaluation), 1);
  EXPECT_DOUBLE_EQ(*reading.log.events[0].value, 9.5);
}

TEST(CsvHistory, ReadsQuotedColumnsOfOneRun) {
  const Dialect& dialect = find_dialect("csv");
  const std::string text = fixture("csv/wandb_export.csv");
  EXPECT_TRUE(dialect.is_document(text));
  const Reading reading = read_text(dialect, text);
  ASSERT_EQ(reading.log.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).loss, 2.5);
  EXPECT_TRUE(is_nan(step(reading, 3).loss));
  EXPECT_NEAR(*step(reading, 3).time_seconds, 2, 1e-9);  // 4 s of time stamps over two steps
  EXPECT_TRUE(has_note(reading, "several runs"));
}

TEST(CsvHistory, RowWithoutItsEndMayBeCut) {
  const Dialect& dialect = find_dialect("csv");
  const std::string whole = "step,step_time,loss\n1,0.5,9.25\n2,0.5,9.125\n";
  for (const std::string_view last : {"3,0.5,9.0", "3,0.5,", "3,0.5", "3,\"0.5\",\"9."}) {
    const Reading reading = read_text(dialect, whole + std::string(last));
    EXPECT_EQ(reading.log.steps.size(), 2u) << last;
    EXPECT_TRUE(has_note(reading, "without a line end")) << last;
  }
  const Reading quoted = read_text(dialect, whole + "3,\"0.5\",\"9.0\"");
  EXPECT_DOUBLE_EQ(*step(quoted, 3).loss, 9);
  EXPECT_FALSE(has_note(quoted, "without a line end"));
  EXPECT_FALSE(has_note(read_text(dialect, whole), "without a line end"));
}

TEST(CsvHistory, LeavesOtherTablesAlone) {
  const Dialect& dialect = find_dialect("csv");
  EXPECT_FALSE(dialect.is_document("timestamp, index, power.draw [W]\n2024/01/01 00:00:00, 0, 300 W\n"));
  EXPECT_FALSE(dialect.is_document("Wall time,Step,Value\n1.7e9,1,2.5\n"));
  EXPECT_FALSE(dialect.is_document("step 1, loss 2.5\nstep 2, loss 2.4\n"));
}

TEST(ResultJson, ReadsAnOlderResult) {
  const Dialect& dialect = find_dialect("result");
  const std::string text = fixture("result/older.json");
  EXPECT_TRUE(dialect.is_document(text));
  const Reading reading = read_text(dialect, text);
  ASSERT_EQ(reading.log.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(*step(reading, 1).time_seconds, 5);
  EXPECT_DOUBLE_EQ(*step(reading, 3).loss, 8);
  EXPECT_EQ(reading.log.facts.gpu_count, 8);
  EXPECT_DOUBLE_EQ(memory(reading, -1, MemoryKind::peak_allocated), 22.5);
  EXPECT_THROW(read_text(dialect, "{\"step_times\": [1.0]}"), Error);
  EXPECT_THROW(read_text(dialect, "{\"step_times\": [1.0"), Error);
}

// Nothing that a damaged log holds ends the program, and every fixture is claimed by its own dialect.
TEST(DialectsB, SurviveDamagedLogs) {
  const std::string_view ids[] = {"torchtitan",
                                  "primus_torchtitan",
                                  "llmc",
                                  "llmc_main",
                                  "modded_nanogpt",
                                  "nanotron",
                                  "picotron",
                                  "composer",
                                  "litgpt",
                                  "mlperf",
                                  "steps",
                                  "native",
                                  "csv",
                                  "result",
                                  "tfevents"};
  for (const std::string_view id : ids) {
    const std::filesystem::path folder =
        std::filesystem::path(TPRIMAT_SOURCE_DIR) / "tests/unit/extract/fixtures" / std::string(id);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string whole = read_file(entry.path().string());
      uint32_t seed = 1;
      for (int round = 0; round < 60; ++round) {
        std::string text = whole.substr(0, whole.size() * static_cast<size_t>(round % 10 + 1) / 10);
        for (int i = 0; i < round && !text.empty(); ++i) {
          seed = seed * 1664525 + 1013904223;
          text[seed % text.size()] = "9999e.-+:|{}[]\",/ \n"[(seed >> 16) % 19];
        }
        try {
          const Reading reading = read_text(find_dialect(id), text);
          for (const ExtractedStep& each : reading.log.steps) EXPECT_GE(each.step, 0);
        } catch (const Error&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace tprimat
