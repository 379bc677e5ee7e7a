#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "extract/dialects.h"
#include "extract/dialects/tfrecord.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string record(const std::string& data) {
  const std::string length = little_endian(data.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + data + little_endian(masked_crc32c(data), 4);
}

std::string message(char field, const std::string& data) {
  return std::string(1, static_cast<char>(field << 3 | 2)) + static_cast<char>(data.size()) + data;
}

std::string event(uint8_t step, const std::string& tag, float value, double wall_time) {
  const std::string scalar = message(1, tag) + '\x15' + little_endian(std::bit_cast<uint32_t>(value), 4);
  return record('\x09' + little_endian(std::bit_cast<uint64_t>(wall_time), 8) + '\x10' + static_cast<char>(step) +
                message(5, message(1, scalar)));
}

ExtractedLog read_events(const std::string& file) {
  const Dialect& dialect = find_dialect("tfevents");
  EXPECT_TRUE(dialect.is_document(file));
  LogBuilder builder;
  dialect.read_document(file, builder);
  return builder.take();
}

bool notes_hold(const ExtractedLog& log, std::string_view words) {
  for (const std::string& note : log.notes)
    if (contains(note, words)) return true;
  return false;
}

TEST(TfRecord, KnowsTheCheckValueOfTheChecksum) {
  const uint32_t crc = 0xe3069283;  // CRC-32C of "123456789", RFC 3720
  EXPECT_EQ(masked_crc32c("123456789"), ((crc >> 15) | (crc << 17)) + 0xa282ead8);
}

TEST(TfEvents, ReadsTorchtitanScalars) {
  const ExtractedLog log = read_events(
      read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/tfevents/torchtitan.tfevents"));
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[2].step, 20);
  EXPECT_DOUBLE_EQ(*log.steps[2].loss, 8.5);  // as a tensor
  EXPECT_DOUBLE_EQ(*log.steps[2].time_seconds, 1.0);
  EXPECT_EQ(log.steps[2].mean_of, 10);
  EXPECT_DOUBLE_EQ(*log.steps[1].mfu, 0.25);
  EXPECT_NEAR(*log.steps[1].memory_reserved_gb, 10 * k_gib / 1e9, 1e-9);
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_DOUBLE_EQ(*log.events[0].value, 8.75);
}

TEST(TfEvents, SaysThatTheFirstIntervalWasDividedWrongly) {
  const ExtractedLog log = read_events(
      read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/tfevents/torchtitan.tfevents"));
  EXPECT_DOUBLE_EQ(*log.steps[0].time_seconds, 1.0);
  EXPECT_DOUBLE_EQ(*log.steps[0].time_high, 10.0);
  EXPECT_TRUE(notes_hold(log, "log interval of 10"));
}

TEST(TfEvents, DerivesTimesFromWallTimeWhereNoneIsWritten) {
  const ExtractedLog log =
      read_events(event(10, "train/loss", 2.5F, 1000) + event(10, "train/learning_rate", 1e-3F, 1000) +
                  event(20, "train/loss", 2.25F, 1030));
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_NEAR(*log.steps[0].learning_rate, 1e-3, 1e-9);
  EXPECT_EQ(log.steps[0].time_source, TimeSource::none);
  EXPECT_EQ(log.steps[1].time_source, TimeSource::from_timestamps);
  EXPECT_NEAR(*log.steps[1].time_seconds, 3, 1e-9);
}

TEST(TfEvents, ReadsWhatIsWholeOfACutFile) {
  const std::string whole = event(1, "lm loss", 9, 1) + event(2, "lm loss", 8, 2) + event(3, "lm loss", 7, 3);
  const ExtractedLog log = read_events(whole.substr(0, whole.size() - 5));
  EXPECT_EQ(log.steps.size(), 2u);
  EXPECT_TRUE(notes_hold(log, "is truncated"));
}

TEST(TfEvents, StopsAtAWrongChecksum) {
  std::string file = event(1, "lm loss", 9, 1) + event(2, "lm loss", 8, 2) + event(3, "lm loss", 7, 3);
  file[file.size() * 2 / 3 - 6] ^= 1;  // in the data of the second
  const ExtractedLog log = read_events(file);
  EXPECT_EQ(log.steps.size(), 1u);
  EXPECT_TRUE(notes_hold(log, "checksum"));
}

TEST(TfEvents, DoesNotBelieveAHugeLength) {
  const std::string length = little_endian(~uint64_t{0} - 3, 8);
  const std::string file = event(1, "lm loss", 9, 1) + length + little_endian(masked_crc32c(length), 4) + "abcd";
  const ExtractedLog log = read_events(file);
  EXPECT_EQ(log.steps.size(), 1u);
  EXPECT_TRUE(notes_hold(log, "is truncated"));
}

TEST(TfEvents, NamesScalarsThatMeanNothingHere) {
  const ExtractedLog log = read_events(event(0, "strict/foo", 1, 1) + event(5, "strict/foo", 2, 2));
  EXPECT_TRUE(log.steps.empty());
  EXPECT_TRUE(notes_hold(log, "strict/foo"));
}

TEST(TfEvents, RefusesAFileWithoutAnEvent) {
  const std::string file = event(1, "lm loss", 9, 1).substr(0, 20);
  LogBuilder builder;
  EXPECT_THROW(find_dialect("tfevents").read_document(file, builder), Error);
}

TEST(TfEvents, IsNoOtherBinaryFile) {
  EXPECT_FALSE(find_dialect("tfevents").is_document(std::string(64, '\0')));
  EXPECT_FALSE(find_dialect("tfevents").is_document("\x1f\x8b\x08"));
}

}  // namespace
}  // namespace tprimat::logs
