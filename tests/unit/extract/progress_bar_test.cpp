// A progress bar of tqdm, taken apart.
#include <gtest/gtest.h>

#include <cmath>

#include "extract/dialects/progress_bar.h"

namespace tprimat::logs {

namespace {

TEST(ProgressBar, IsTakenApart) {
  std::string_view text =
      "Epoch 0: :  47%|####7     | 7/15 [1:06:19<07:13, 2.50s/it, loss=11.50, v_num=, lr=1e-4][NeMo I] text";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->title, "Epoch 0");
  EXPECT_EQ(bar->reading.count, 7);
  EXPECT_EQ(bar->reading.total, 15);
  EXPECT_DOUBLE_EQ(bar->reading.elapsed_seconds, 3979.0);
  ASSERT_TRUE(bar->reading.seconds_per_count);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->value, 2.5);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->high, 2.505);
  EXPECT_EQ(postfix_value(bar->postfix, "loss"), "11.50");
  EXPECT_EQ(postfix_value(bar->postfix, "v_num"), "");
  EXPECT_EQ(postfix_value(bar->postfix, "lr"), "1e-4");
  EXPECT_FALSE(postfix_value(bar->postfix, "num"));
  EXPECT_EQ(text, "[NeMo I] text");
  EXPECT_FALSE(take_progress_bar(text));
}

TEST(ProgressBar, RatePerSecondBecomesSecondsWithTheInversesOfItsBounds) {
  std::string_view text = " 10%|#  | 1/10 [00:00<00:07, 1.25it/s]";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar && bar->reading.seconds_per_count);
  EXPECT_EQ(bar->unit, "it");
  EXPECT_EQ(bar->title, "");
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->value, 0.8);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->low, 1 / 1.255);
  EXPECT_DOUBLE_EQ(bar->reading.seconds_per_count->high, 1 / 1.245);
}

TEST(ProgressBar, OfAnUnknownPaceHasNone) {
  std::string_view text = "  0%|          | 0/16 [00:00<?, ?it/s]";
  const auto bar = take_progress_bar(text);
  ASSERT_TRUE(bar);
  EXPECT_FALSE(bar->reading.seconds_per_count);
}

TEST(ProgressBar, BrokenOnesAreNone) {
  for (std::string_view text : {"", " [", "1/2 [", "x/2 [00:01]", "1/ [00:01]", " 3 [12:00]", "[00:01<00:02]",
                                "99999999999999999999/2 [00:01]", "see 1/2 [a:b]"})
    EXPECT_FALSE(take_progress_bar(text)) << text;
}

TEST(ProgressBar, ShortDistancesTakeThePaceAndLongOnesTheClock) {
  const BarReading start{0, 100, 0.0, {}};
  ExtractedStep step;
  derive_step_time(start, {4, 100, 3.0, RoundedNumber{0.8, 0.79, 0.81}}, step);
  EXPECT_EQ(step.time_source, TimeSource::from_rate);
  EXPECT_DOUBLE_EQ(*step.time_seconds, 0.8);
  EXPECT_EQ(step.mean_of, 4);
  derive_step_time(start, {50, 100, 40.0, RoundedNumber{0.8, 0.79, 0.81}}, step);
  EXPECT_EQ(step.time_source, TimeSource::from_timestamps);
  EXPECT_DOUBLE_EQ(*step.time_seconds, 0.8);
  EXPECT_DOUBLE_EQ(*step.time_low, 39.0 / 50);
  EXPECT_DOUBLE_EQ(*step.time_high, 41.0 / 50);
}

TEST(ProgressBar, WithoutProgressTellsNoTime) {
  ExtractedStep step;
  derive_step_time({5, 10, 10.0, {}}, {5, 10, 60.0, {}}, step);
  derive_step_time({5, 10, 10.0, {}}, {4, 10, 60.0, {}}, step);
  EXPECT_FALSE(step.time_seconds);
}

}  // namespace
}  // namespace tprimat::logs
