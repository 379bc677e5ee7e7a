#include "train/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "extract/dialects.h"
#include "extract/dialects/tfrecord.h"
#include "text/proto.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

using test::TemporaryFolder;

TEST(EventFile, OurReaderOfEventFilesReadsIt) {
  const TemporaryFolder folder;
  EventFile file(folder / "events", 1700000000.25);
  for (int64_t step = 1; step <= 300; ++step) {
    const double seconds = static_cast<double>(step);
    const EventScalar scalars[] = {{"train/loss", 9.0 - 0.01 * seconds},
                                   {"train/learning_rate", 1e-4 * seconds},
                                   {"train/grad_norm", 1.5},
                                   {"step_time_seconds", 0.75}};
    file.write_step(step, 1700000000.0 + seconds, scalars);
  }
  const std::string bytes = read_file(file.path());
  const logs::Dialect& dialect = logs::find_dialect("tfevents");
  ASSERT_TRUE(dialect.is_document(bytes));
  logs::LogBuilder builder;
  dialect.read_document(bytes, builder);
  const logs::ExtractedLog log = builder.take();
  ASSERT_EQ(log.steps.size(), 300u);
  EXPECT_EQ(log.steps[299].step, 300);
  EXPECT_EQ(*log.steps[299].loss, static_cast<float>(6.0));
  EXPECT_EQ(*log.steps[9].learning_rate, static_cast<float>(1e-3));
  EXPECT_EQ(*log.steps[0].grad_norm, 1.5);
  EXPECT_EQ(*log.steps[0].time_seconds, 0.75);
}

TEST(EventFile, BeginsWithTheVersionAndTheTime) {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 1700000000.25);
  EXPECT_EQ(file.path().filename().string().rfind("events.out.tfevents.1700000000.", 0), 0u);
  const std::string bytes = read_file(file.path());
  logs::TfRecords records(bytes);
  const auto first = records.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(logs::parse_tf_event(*first)->wall_time, 1700000000.25);
  EXPECT_NE(first->find("brain.Event:2"), std::string_view::npos);
  EXPECT_FALSE(records.next());
  EXPECT_EQ(records.end(), logs::TfRecords::End::clean);
}

TEST(EventFile, AResumedRunSaysFromWhereItCounts) {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 1.0, 5000000000);
  const std::string bytes = read_file(file.path());
  logs::TfRecords records(bytes);
  records.next();
  std::string_view start = *records.next();
  EXPECT_EQ(logs::parse_tf_event(start)->step, 5000000000);
  bool has_session_log = false;
  while (const auto field = take_proto_field(start))
    has_session_log |= field->number == 7 && field->bytes == "\x08\x01";
  EXPECT_TRUE(has_session_log);
}

TEST(EventFile, EachStepIsInTheFileAtOnceNaNToo) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 1.0);
  const EventScalar scalars[] = {{"train/loss", NAN}};
  file.write_step(1, 2.0, scalars);
  const std::string bytes = read_file(file.path());
  logs::TfRecords records(bytes);
  records.next();
  std::string_view summary = logs::parse_tf_event(*records.next())->summary;
  EXPECT_TRUE(std::isnan(*logs::take_scalar(summary)->value));
}

TEST(EventFile, SaysWhereItCannotWrite) {
  try {
    EventFile file("/dev/null/events", 1.0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/null/events"), std::string::npos);
  }
}

}  // namespace
}  // namespace tprimat::engine
