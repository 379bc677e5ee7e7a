#include "result/step_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "unit/temporary_folder.h"

namespace tprimat {
namespace {

TEST(StepRecord, LineAndBack) {
  StepRecord record;
  record.step = 7;
  record.time_seconds = 0.25;
  record.loss = 3.5;
  record.tokens = 4096;
  const std::string line = step_record_to_line(record);
  EXPECT_EQ(line, R"({"step":7,"time_seconds":0.25,"loss":3.5,"tokens":4096})");
  const auto parsed = parse_step_record(line);
  EXPECT_EQ(parsed->step, 7);
  EXPECT_EQ(parsed->loss, 3.5);
  EXPECT_FALSE(parsed->grad_norm);
}

TEST(StepRecord, NanLossSurvives) {
  StepRecord record;
  record.step = 1;
  record.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(*parse_step_record(step_record_to_line(record))->loss));
}

TEST(StepRecord, NumbersAsPythonWritesThem) {
  const auto record = parse_step_record(
      R"({"step": 7, "time_seconds": 0.5, "loss": NaN, "grad_norm": Infinity, "z_loss": -Infinity, "note": "a \"NaN"})");
  ASSERT_TRUE(record && record->loss);
  EXPECT_TRUE(std::isnan(*record->loss));
  EXPECT_FALSE(record->grad_norm);
  EXPECT_FALSE(record->z_loss);
  const auto sparse = parse_step_record(R"({"step": 7, "time_seconds": 0.5, "loss": 3.5, "expert_load": NaN})");
  ASSERT_TRUE(sparse);
  EXPECT_EQ(sparse->loss, 3.5);
  EXPECT_FALSE(sparse->expert_load);
  for (const char* line : {R"({"step":NaN,"time_seconds":1})", R"({"step":7,"time_seconds":1,"loss":1NaN})",
                           R"({"step":7,"time_seconds":1,"note":"NaN)", "NaN", R"({"step":7,"time_seconds":1,"NaN\)"})
    EXPECT_FALSE(parse_step_record(line)) << line;
}

TEST(StepRecord, OtherLinesAreNone) {
  for (const char* line :
       {"", "step 7", "{}", "[1]", R"({"step":7})", R"({"step":"seven","time_seconds":1})", R"({"step":7,"time_sec)"})
    EXPECT_FALSE(parse_step_record(line)) << line;
}

TEST(StepRecord, IncompleteLastLineIsLeftOut) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "steps.jsonl";
  write_file_atomically(
      path, "{\"step\":1,\"time_seconds\":1}\nnoise\n{\"step\":2,\"time_seconds\":1}\n{\"step\":3,\"time_seconds\":1");
  const auto records = read_step_records(path);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].step, 2);
  std::filesystem::remove(path);
  EXPECT_TRUE(read_step_records(path).empty());
}

}  // namespace
}  // namespace tprimat
