#include "result/result_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/files.h"
#include "text/json_fields.h"
#include "unit/result/sample_result.h"

namespace tprimat {
namespace {

// What the ordinary reader makes of a text; empty where it complains.
std::string read_slowly(const std::string& text) {
  try {
    return print_json(run_result_to_json(run_result_from_json(parse_json(text, "a.json"), "a.json")));
  } catch (const Error&) {
    return "";
  }
}

std::string read_as_file(const std::string& text) {
  try {
    return print_json(run_result_to_json(read_run_result(text, "a.json")));
  } catch (const Error&) {
    return "";
  }
}

std::string sample_text() { return print_json(run_result_to_json(sample_result())); }

TEST(CurrentResult, IsWhatTheOrdinaryReaderReads) {
  const std::string text = sample_text();
  ASSERT_TRUE(read_current_result(text));
  EXPECT_EQ(read_as_file(text), read_slowly(text));
}

TEST(CurrentResult, LeavesWhatIsUnusualToTheOrdinaryReader) {
  Json json = parse_json(sample_text(), "a.json");
  EXPECT_FALSE(read_current_result(""));
  EXPECT_FALSE(read_current_result("[1]"));
  EXPECT_FALSE(read_current_result(sample_text().substr(0, 500)));
  for (const char* key : {"schema_version", "platform", "status", "step_times"}) {
    Json without = json;
    without.erase(key);
    EXPECT_FALSE(read_current_result(print_json(without))) << key;
  }
  Json newer = json;
  newer["schema_version"] = 2;
  EXPECT_FALSE(read_current_result(print_json(newer)));
  Json wrong = json;
  wrong["step_times"] = "fast";
  EXPECT_FALSE(read_current_result(print_json(wrong)));
}

// Bytes changed at random: both readers read the same or both complain.
TEST(CurrentResult, AgreesWithTheOrdinaryReaderOnDamagedFiles) {
  const std::string text = sample_text();
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 2; ++k) damaged[random() % damaged.size()] = "0123456789.,:{}[]\"en-"[random() % 21];
    EXPECT_EQ(read_as_file(damaged), read_slowly(damaged)) << damaged;
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace tprimat
