#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

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
    EXPECT_TRUE(has_note(reading, "no final newline")) << last;
  }
  const Reading quoted = read_text(dialect, whole + "3,\"0.5\",\"9.0\"");
  EXPECT_DOUBLE_EQ(*step(quoted, 3).loss, 9);
  EXPECT_FALSE(has_note(quoted, "no final newline"));
  EXPECT_FALSE(has_note(read_text(dialect, whole), "no final newline"));
}

TEST(CsvHistory, LeavesOtherTablesAlone) {
  const Dialect& dialect = find_dialect("csv");
  EXPECT_FALSE(dialect.is_document("timestamp, index, power.draw [W]\n2024/01/01 00:00:00, 0, 300 W\n"));
  EXPECT_FALSE(dialect.is_document("Wall time,Step,Value\n1.7e9,1,2.5\n"));
  EXPECT_FALSE(dialect.is_document("step 1, loss 2.5\nstep 2, loss 2.4\n"));
}

}  // namespace
}  // namespace tprimat::logs
