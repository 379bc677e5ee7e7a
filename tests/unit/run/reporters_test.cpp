#include "run/reporters.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tprimat::suite {
namespace {

TEST(PlainReporter, SpeaksNowAndThen) {
  std::string text;
  PlainReporter reporter([&](std::string_view more) { text += more; }, 0.0);
  Progress progress;
  progress.step = 1;
  progress.steps = 2;
  reporter.progressed(progress);
  reporter.progressed(progress);  // nothing new
  EXPECT_EQ(text, "      step 1/2\n");
}

TEST(PlainReporter, SaysThatAStepIsLateNowAndThen) {
  std::string text;
  PlainReporter reporter([&](std::string_view more) { text += more; }, 0.0);
  Progress progress;
  progress.steps = 2;
  for (const double late : {6.0, 7.0, 35.0}) {
    progress.late_seconds = late;
    reporter.progressed(progress);
  }
  EXPECT_EQ(text, "      step 0/2  0.0 us  no step for 6 s\n      step 0/2  0.0 us  no step for 35 s\n");
}

}  // namespace
}  // namespace tprimat::suite
