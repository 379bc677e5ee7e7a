#include <gtest/gtest.h>

#include "base/error.h"
#include "unit/why/sample_traces.h"
#include "why/make_ledger.h"

// What belongs together is explained, and what does not is refused with a sentence.
namespace tprimat::results {
namespace {

SideInput side(const std::string& label, logs::Trace trace = sample_trace(sample_step())) {
  SideInput input;
  input.label = label;
  input.ranks.push_back(std::move(trace));
  return input;
}

RunResult result_of(double step, int64_t steps = 20) {
  RunResult result;
  result.model_info.name = "sample";
  StepStatistics statistics;
  statistics.count = steps, statistics.mean = statistics.median = step, statistics.cv = 0.01;
  statistics.ci95_low = 0.99 * step, statistics.ci95_high = 1.01 * step;
  result.statistics = statistics;
  result.step_times.assign(static_cast<size_t>(steps), step);
  return result;
}

double recorded_step(const SideInput& input) {
  return static_cast<double>(input.ranks[0].marks[0].span.length()) * 1e-9;
}

std::string reason(const SideInput& a, const SideInput& b) {
  try {
    make_ledger(a, b);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.what();
  }
  return "";
}

void expect_refused(const SideInput& a, const SideInput& b, std::string_view words) {
  EXPECT_NE(reason(a, b).find(words), std::string::npos) << reason(a, b);
}

TEST(Refusals, NoTrace) { expect_refused({.label = "A"}, side("B"), "A: no trace is recorded"); }

TEST(Refusals, NoSteps) {
  logs::Trace trace = sample_trace(sample_step(), 1);
  trace.marks.clear();
  expect_refused(side("A"), side("B", trace), "marks no steps");
}

TEST(Refusals, StepsThatOverlap) {
  logs::Trace trace = sample_trace(sample_step());
  trace.marks[0].span.end += trace.marks[0].span.length() / 2;
  expect_refused(side("A"), side("B", trace), "overlap");
}

TEST(Refusals, DoctoredDurations) {
  logs::Trace trace = sample_trace(sample_step());
  for (logs::GpuEvent& event : trace.events) event.span.end += event.span.length();
  expect_refused(side("A"), side("B", trace), "on one stream of the GPU overlaps");
}

TEST(Refusals, TheSameRankTwice) {
  SideInput twice = side("A");
  twice.ranks[0].rank = 1;
  twice.ranks.push_back(twice.ranks[0]);
  expect_refused(twice, side("B"), "two traces are of rank 1");
}

TEST(Refusals, RanksOfTwoRuns) {
  SideInput mixed = side("A");
  mixed.ranks.push_back(mixed.ranks[0]);
  mixed.ranks[0].rank = 1, mixed.ranks[0].world_size = 2;
  mixed.ranks[1].rank = 3, mixed.ranks[1].world_size = 8;
  expect_refused(mixed, side("B"), "the traces are of runs of 2 and of 8 processes");
}

TEST(Refusals, ARunOfAnotherSize) {
  SideInput other = side("A");
  other.ranks[0].world_size = 8;
  other.result = result_of(recorded_step(other));
  other.result->training_config.num_gpus = 16;
  expect_refused(other, side("B"), "of a run of 8 processes, the result of one on 16 devices");
}

TEST(Refusals, AModelOfAnotherWidth) {
  SideInput other = side("A");
  other.result = result_of(recorded_step(other));
  other.result->model_info.shape = ModelSpec{};
  other.result->model_info.shape->hidden_size = 4096;
  expect_refused(other, side("B"), "has a dimension of 4096");
  other.result->model_info.shape->hidden_size = 256;
  EXPECT_EQ(reason(other, side("B")), "");
}

TEST(Refusals, TwoModels) {
  SampleStep step = sample_step();
  step[0].shapes = "[512,768] [768,3072]", step[2].shapes = "[768] [512,3072] [3072,768]";
  step[5].shapes = "[3072,512] [512,768]";
  expect_refused(side("A"), side("B", sample_trace(step)), "different models");
  SideInput a = side("A"), b = side("B");
  a.result = b.result = result_of(recorded_step(a));
  b.result->model_info.name = "another";
  expect_refused(a, b, "sample and another");
}

TEST(Refusals, StepsThatAreNotThoseOfTheResult) {
  SideInput input = side("A");
  input.result = result_of(recorded_step(input) / 1.5);
  expect_refused(input, side("B"), "50.0 % more is beyond the 10 %");
  input.result = result_of(recorded_step(input) * 1.5);
  expect_refused(input, side("B"), "33.3 % less is beyond");
}

TEST(Scaling, UnprofiledStepsAreTheTruth) {
  SampleStep slower = sample_step();
  slower[0].device += 100'000;
  SideInput a = side("A"), b = side("B", sample_trace(slower));
  a.result = result_of(recorded_step(a) / 1.05), b.result = result_of(recorded_step(b) / 1.02);
  const Ledger ledger = make_ledger(a, b);
  EXPECT_DOUBLE_EQ(ledger.gap_seconds, b.result->statistics->mean - a.result->statistics->mean);
  EXPECT_NEAR(*ledger.a.scale, 1 / 1.05, 1e-12);
  double sum = 0;
  for (const LedgerTerm& term : ledger.terms) sum += term.seconds;
  EXPECT_NEAR(sum, ledger.gap_seconds, 1e-12);
  ASSERT_FALSE(ledger.notes.empty());
  EXPECT_NE(ledger.notes[0].find("5.0 % more"), std::string::npos) << ledger.notes[0];
}

TEST(Scaling, SlowStepsOfTheRunAreATerm) {
  SideInput a = side("A"), b = side("B");
  const double step = recorded_step(a);
  a.result = result_of(step), b.result = result_of(step);
  for (const size_t slow : {4, 9, 14, 19}) {
    b.result->step_times[slow] = 3 * step;
    b.result->statistics->outliers.push_back(static_cast<int64_t>(slow) + 1);
  }
  b.result->statistics->mean = 1.4 * step;
  const Ledger ledger = make_ledger(a, b);
  EXPECT_NEAR(ledger.terms[static_cast<size_t>(Cause::outliers)].seconds, 0.4 * step, 1e-12);
  EXPECT_NEAR(ledger.gap_seconds, 0.4 * step, 1e-12);
  b.result->steps = StepSeries{};
  b.result->steps->counts_from = 0;  // the log begins at 1 all the same
  EXPECT_NEAR(make_ledger(a, b).term(Cause::outliers).seconds, 0.4 * step, 1e-12);
}

TEST(Clocks, ALowerClockLengthensProducts) {
  SampleStep slower = sample_step();
  for (const size_t product : {0, 1, 2, 5}) slower[product].device = slower[product].device * 5 / 4;
  SideInput a = side("A"), b = side("B", sample_trace(slower));
  a.result = result_of(recorded_step(a)), b.result = result_of(recorded_step(b));
  for (SideInput* each : {&a, &b}) {
    TelemetrySummary clock;
    clock.source = "nvml", clock.mean_clock_hz = each == &a ? 1.5e9 : 1.2e9;
    each->result->gpu_info.device_name = "GPU";
    each->result->telemetry.push_back(clock);
  }
  TelemetrySummary second = b.result->telemetry[0];
  b.result->telemetry[0].mean_clock_hz = 1.3e9, second.mean_clock_hz = 1.1e9;  // a second device; the mean counts
  b.result->telemetry.push_back(second);
  const Ledger ledger = make_ledger(a, b);
  EXPECT_NEAR(ledger.terms[static_cast<size_t>(Cause::clocks)].seconds, 112.5e-6, 1e-6);
  EXPECT_NEAR(ledger.terms[static_cast<size_t>(Cause::clocks)].a_seconds, 0, 1e-9);
  EXPECT_NEAR(ledger.terms[static_cast<size_t>(Cause::clocks)].b_seconds, 112.5e-6, 1e-6);
  EXPECT_NEAR(ledger.terms[static_cast<size_t>(Cause::products)].seconds, 0, 1e-6);
  b.result->gpu_info.device_name = "another GPU";
  EXPECT_EQ(make_ledger(a, b).terms[static_cast<size_t>(Cause::clocks)].seconds, 0);
}

TEST(Intervals, OneStepHasNone) {
  const Ledger ledger = make_ledger(side("A", sample_trace(sample_step(), 1)), side("B"));
  EXPECT_FALSE(ledger.terms[0].low);
  EXPECT_FALSE(ledger.low);
  EXPECT_NE(ledger.notes[0].find("one step is recorded"), std::string::npos);
}

TEST(Intervals, NoiseNamesNoCause) {
  const auto noisy = [](unsigned seed) {
    SampleTrace sample;
    for (int i = 0; i < 4; ++i) {
      SampleStep step = sample_step();
      for (SampleOperation& each : step)
        each.device += static_cast<int64_t>((seed = seed * 1664525u + 1013904223u) >> 17);
      sample.add(step);
    }
    return sample.trace;
  };
  const Ledger ledger = make_ledger(side("A", noisy(1)), side("B", noisy(2)));
  ASSERT_TRUE(ledger.terms[2].low && ledger.terms[2].high);
  EXPECT_LE(*ledger.terms[2].low, ledger.terms[2].seconds);
  EXPECT_GE(*ledger.terms[2].high, ledger.terms[2].seconds);
  EXPECT_TRUE(ledger.findings.empty());
}

}  // namespace
}  // namespace tprimat::results
