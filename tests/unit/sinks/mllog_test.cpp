#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "extract/read_log.h"
#include "text/json.h"
#include "unit/sinks/export_samples.h"
#include "unit/temporary_folder.h"

namespace tprimat::results {
namespace {

using namespace test;

// As mlcommons' parser: whatever stands before the last mark of a line is dropped, the rest is JSON.
std::vector<Json> parse_mllog(const std::string& text) {
  std::vector<Json> entries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t mark = line.rfind(":::MLLOG ");
    EXPECT_EQ(mark, 0u) << line;
    entries.push_back(parse_json(line.substr(9), "line"));
    for (const char* key : {"namespace", "time_ms", "event_type", "key", "value", "metadata"})
      EXPECT_TRUE(entries.back().contains(key)) << line;
  }
  return entries;
}

std::string mllog_of(const RunResult& result) {
  const TemporaryFolder folder;
  export_results("mllog", folder.path(), {result});
  return read_file(folder / "mllog/run1.log");
}

Json find_key(const std::vector<Json>& entries, const std::string& key) {
  for (const Json& entry : entries)
    if (entry["key"] == key) return entry;
  return {};
}

TEST(MllogSink, WritesSettingsStepsAndTheEnd) {
  const auto entries = parse_mllog(mllog_of(short_run()));
  EXPECT_EQ(find_key(entries, "global_batch_size")["value"], 64);
  EXPECT_EQ(find_key(entries, "run_start")["event_type"], "INTERVAL_START");
  EXPECT_EQ(find_key(entries, "run_start")["time_ms"], 1767225600000);
  const Json first = find_key(entries, "tracked_stats");
  EXPECT_EQ(first["value"]["train_loss"], 9.5);
  EXPECT_EQ(first["metadata"]["step"], 1);
  EXPECT_EQ(first["metadata"]["samples_count"], 64);
  EXPECT_EQ(find_key(entries, "eval_accuracy")["value"], 9.125);
  EXPECT_EQ(entries.back()["key"], "run_stop");
  EXPECT_EQ(entries.back()["metadata"]["status"], "success");
  EXPECT_EQ(entries.back()["time_ms"], 1767225603500);
}

TEST(MllogSink, AMomentThatNoCalendarHasIsNone) {
  RunResult r = short_run();
  r.reported->unix_time = std::vector<double>{1e300, -1e300, 1e18, 1767225602.5};
  const auto entries = parse_mllog(mllog_of(r));
  EXPECT_EQ(find_key(entries, "run_start")["time_ms"], 1767225599000);
  r.timestamp.clear();
  r.step_times.assign(4, 1e300);
  r.reported->unix_time->back() = 1e300;
  for (const Json& entry : parse_mllog(mllog_of(r))) EXPECT_EQ(entry["time_ms"], 0);
}

TEST(MllogSink, ARunThatFailedIsAborted) {
  EXPECT_EQ(parse_mllog(mllog_of(empty_run())).back()["metadata"]["status"], "aborted");
}

TEST(MllogSink, HostileTextStaysInItsLine) {
  const std::string text = mllog_of(hostile_run());
  const auto entries = parse_mllog(text);
  EXPECT_EQ(find_key(entries, "opt_name")["value"], k_hostile);
  EXPECT_EQ(entries.back()["metadata"]["reason"], k_hostile);
  EXPECT_EQ(count_of(text, "\x1b"), 0u);
}

TEST(MllogSink, OurReaderFindsTheSameSteps) {
  const TemporaryFolder folder;
  RunResult r = sample_run("", Platform::nvd, Framework::mega, 0.5, 30).result;
  export_results("mllog", folder.path(), {r});
  const logs::ExtractedLog log = logs::read_log(folder / "mllog/run1.log", {}).log;
  ASSERT_EQ(log.steps.size(), 30u);
  for (size_t i = 0; i < log.steps.size(); ++i) {
    EXPECT_EQ(log.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(*log.steps[i].time_seconds, r.step_times[i]);
    EXPECT_EQ(*log.steps[i].loss, r.loss_values[i]);
    EXPECT_EQ(*log.steps[i].learning_rate, r.learning_rates[i]);
  }
  EXPECT_EQ(log.facts.gpu_count, 8);
  EXPECT_EQ(log.facts.global_batch_size, 64);
}

}  // namespace
}  // namespace tprimat::results
