// Logs as collectors, terminals and cut files leave them, and texts that only look like logs.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "extract/line_cleaner.h"
#include "extract/read_log.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

const std::string k_titan =
    "step:  1  loss: 11.9000  grad_norm:  1.5000  memory: 40.15GiB(50.73%)  tps: 6,501  tflops: 380.12  mfu: 38.43%";

TEST(LineCleaner, TakesOffWhatCollectorsPutOn) {
  LineCleaner cleaner;
  for (const char* prefix :
       {"2024-01-01T00:00:05.123456789Z stdout F ", "2024-01-01T00:00:05.123+00:00 stderr P ", "trainer-1  | ",
        "trainer_1    | ", "(RayTrainWorker pid=123, ip=10.0.0.1) ", "\x1b[36m(TrainWorker pid=7)\x1b[0m ",
        "[pod/train-worker-0/pytorch] ", "Nov 21 03:57:42 ", "Nov  1 03:57:42 node01 train.sh[1234]: "})
    EXPECT_EQ(cleaner.clean(prefix + std::string("loss: 2.5"), 1).text, "loss: 2.5") << prefix;
  for (const char* prefix : {"worker-1: ", "10.0.0.12: ", "ip-10-0-0-1.ec2: 3: "})
    EXPECT_EQ(cleaner.clean(prefix + std::string("[rank3]:x"), 1).rank, prefix[0] == 'i' ? -1 : 3) << prefix;
}

TEST(LineCleaner, LeavesWordsThatAreNoPrefix) {
  LineCleaner cleaner;
  for (const char* text : {"RuntimeError: CUDA error", "loss: 2.5", "iteration2: 5 / 10", "step | loss",
                           "gpt-2 (124M) | x", "(loss 2.5) lr 3", "May the 4th", "[podium] x", "Dec 32 aa:bb:cc text"})
    EXPECT_EQ(cleaner.clean(text, 1).text, text);
}

TEST(LineCleaner, ZonesAreTakenIntoAccount) {
  LineCleaner cleaner;
  const double utc = *cleaner.clean("2024-01-01T00:00:05Z x", 1).unix_time;
  EXPECT_EQ(*cleaner.clean("2024-01-01T09:00:05+09:00 x", 1).unix_time, utc);
  EXPECT_EQ(*cleaner.clean("2023-12-31 17:00:05-0700 x", 1).unix_time, utc);
  EXPECT_EQ(*cleaner.clean("2024-01-01 00:00:05 - root - INFO", 1).unix_time, utc);
}

TEST(ReadLog, ANumberCutAtTheEndIsNotKnown) {
  const ReadLog whole = read_log_text(k_titan, {});
  ASSERT_EQ(whole.log.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(*whole.log.steps[0].mfu, 0.3843);
  const size_t rate = k_titan.find("6,501"), flops = k_titan.find("380.12"), mfu = k_titan.find("38.43");
  for (const size_t end : {mfu + 1, mfu + 4, flops + 3, flops + 6, rate + 1, rate + 3}) {
    const ReadLog cut = read_log_text(k_titan.substr(0, end), {});
    if (cut.log.steps.empty()) continue;
    const ExtractedStep& step = cut.log.steps[0];
    EXPECT_FALSE(step.mfu.known()) << end;
    if (end <= flops + 6) {
      EXPECT_FALSE(step.tflops_per_gpu.known()) << end;
    }
    if (end <= rate + 5) {
      EXPECT_FALSE(step.tokens_per_second_per_gpu.known()) << end;
    }
  }
}

// A loop over the rest of the text for each rewrite took minutes.
TEST(ReadLog, ANegativeTimeIsNoTime) {
  std::string log;
  for (int step = 1; step <= 3; ++step)
    log += " iteration " + std::to_string(step) + "/ 3 | consumed samples: " + std::to_string(step * 32) +
           " | elapsed time per iteration (ms): " + (step == 2 ? "-501.1" : "501.1") +
           " | learning rate: 1.0E-04 | global batch size: 32 | lm loss: 2.5E+00 |\n";
  const ReadLog read = read_log_text(log, {});
  ASSERT_EQ(read.log.steps.size(), 3u);
  EXPECT_TRUE(read.log.steps[0].time_seconds.known());
  EXPECT_FALSE(read.log.steps[1].time_seconds.known());
  EXPECT_EQ(read.log.steps[1].time_source, TimeSource::none);
}

TEST(ReadLog, ABarMayRewriteItselfVeryOften) {
  std::string text = "***** Running training *****\n  Total optimization steps = 200,000\n";
  for (int i = 0; i < 200000; ++i)
    text += "\r 10%|###       | " + std::to_string(i) + "/200000 [10:00<10:00,  2.00s/it]";
  const auto start = std::chrono::steady_clock::now();
  const ReadLog read = read_log_text(std::move(text), {});
  EXPECT_FALSE(read.log.steps.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

std::string end_of(const std::string& text) {
  return make_result(read_log_text(text, {}), "a.log", {}).status_reason.value_or("");
}

TEST(ReadLog, AnIgnoredExceptionEndsNothing) {
  const std::string step = k_titan + "\n";
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: closed\n";
  EXPECT_EQ(end_of(step + "Exception ignored in: <function A.__del__ at 0x7f>\n" + traceback), "");
  EXPECT_NE(end_of(step + traceback).find("ValueError: closed"), std::string::npos);
  EXPECT_NE(end_of(step + "Exception ignored in: <x>\nother words\n" + traceback).find("ValueError"),
            std::string::npos);
}

TEST(ReadLog, AFailureWithoutTrainingIsNoRun) {
  for (const char* text : {"Killed\n", "KeyError: 'x'\n", "Process exited with exit code 1\n"}) {
    const ReadLog read = read_log_text(text, {});
    EXPECT_TRUE(read.log.events.empty()) << text;
    EXPECT_NE(read.why_nothing.find("it ends with"), std::string::npos) << read.why_nothing;
  }
  for (const char* text : {"[rank3]: ValueError: x\n", "RuntimeError: CUDA error: an illegal memory access\n",
                           "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"})
    EXPECT_EQ(read_log_text(text, {}).why_nothing, "") << text;
}

}  // namespace
}  // namespace tprimat::logs
