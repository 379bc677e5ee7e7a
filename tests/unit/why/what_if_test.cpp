#include "why/what_if.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "example_data.h"
#include "text/json.h"
#include "unit/why/pipeline_fixture.h"
#include "unit/why/rank_traces.h"
#include "why/operation_file.h"
#include "why/trace_replay.h"

namespace tprimat::results {
namespace {

using test::RankTrace;

// One step on a GPU in whole microseconds: a launch, then the kernel that it starts. `now` is the host's time.
class GpuStep {
 public:
  GpuStep() { trace_.marks.push_back({1, {}, {0, 0}}); }

  uint32_t launch(std::string_view name, int64_t host, int64_t begin, int64_t length, int32_t stream = 7) {
    now_ += host * 1000;
    logs::GpuEvent event;
    event.name = name_of(name);
    event.span = {begin * 1000, (begin + length) * 1000};
    event.stream = stream;
    event.launched = now_;
    trace_.events.push_back(event);
    return static_cast<uint32_t>(trace_.events.size() - 1);
  }
  void synchronise(int64_t until) {
    logs::HostEvent event;
    event.name = name_of("cudaDeviceSynchronize");
    event.kind = logs::HostEventKind::runtime;
    event.span = {now_, until * 1000};
    now_ = until * 1000;
    trace_.host_events.push_back(event);
  }
  void give_shapes(uint32_t event, std::string_view shapes) {
    logs::HostEvent launcher;
    launcher.name = name_of("aten::mm");
    launcher.span = {trace_.events[event].launched - 1, trace_.events[event].launched};
    launcher.shapes = static_cast<uint32_t>(trace_.shapes.size());
    trace_.shapes.emplace_back(shapes);
    trace_.events[event].launcher = static_cast<uint32_t>(trace_.host_events.size());
    trace_.host_events.push_back(launcher);
  }
  logs::Trace finish() {
    trace_.marks[0].span.end = now_;
    return trace_;
  }

 private:
  uint32_t name_of(std::string_view name) {
    const auto known = std::find(trace_.names.begin(), trace_.names.end(), name);
    if (known == trace_.names.end()) trace_.names.emplace_back(name);
    return static_cast<uint32_t>(std::find(trace_.names.begin(), trace_.names.end(), name) - trace_.names.begin());
  }
  logs::Trace trace_;
  int64_t now_ = 0;
};

// The device is busy from 10 to 710 us, and the host waits for it.
logs::Trace make_device_bound() {
  GpuStep step;
  const uint32_t product = step.launch("ampere_sgemm_128x64", 10, 10, 400);
  step.launch("vectorized_elementwise_kernel", 10, 410, 300);
  step.give_shapes(product, "[1000,1000] [1000,1000] fp32");
  step.synchronise(720);
  return step.finish();
}

WhatIfAnswer answer_of(std::span<const logs::Trace> ranks, std::string_view change, const WhatIfFacts& facts = {}) {
  const std::vector<WhatIf> changes{parse_what_if(change)};
  return answer_what_if(ranks, changes, facts).answers.at(0);
}

TEST(WhatIf, ReadsItsChanges) {
  EXPECT_EQ(parse_what_if("products=1.2x").factor, 1.2);
  EXPECT_EQ(parse_what_if("memory-bound=0").target, WhatIfTarget::memory_bound);
  EXPECT_FALSE(parse_what_if("products=probe").factor.has_value());
  EXPECT_EQ(parse_what_if("slowest-rank=median").target, WhatIfTarget::slowest_rank);
  for (const char* text : {"", "products", "products=", "products=fast", "overlap=2x", "slowest-rank=0", "gemm=2",
                           "products=-1", "products=nan", "products=1e9x", "launch=probe"})
    EXPECT_THROW(parse_what_if(text), Error) << text;
}

TEST(WhatIf, ADeviceBoundStepFollowsItsKernels) {
  const std::vector<logs::Trace> ranks{make_device_bound()};
  EXPECT_NEAR(answer_of(ranks, "products=1x").step_seconds, 720e-6, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "products=1x").saved_seconds, 0, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "products=0.5x").step_seconds, 520e-6, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "memory-bound=2x").step_seconds, 1020e-6, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "launch=0").step_seconds, 710e-6, 1e-9);  // the device alone
  // 2 GFLOP in 400 us are 5 TFLOP/s; at 20 they take 100.
  EXPECT_NEAR(answer_of(ranks, "products=probe", {{{"bf16", 1e9, 1e15}, {"fp32", 1e9, 2e13}, {"fp32", 1e12, 4e13}}})
                  .step_seconds,
              420e-6, 1e-9);
}

// Nothing tells that a host holds the kernels up.
TEST(WhatIf, ADeviceWithoutItsHostFollowsItsKernels) {
  logs::Trace trace = make_device_bound();
  trace.host_events.clear();
  for (logs::GpuEvent& event : trace.events) event.launched = -1, event.launcher = logs::k_none;
  const std::vector<logs::Trace> ranks{trace};
  EXPECT_NEAR(answer_of(ranks, "products=1x").step_seconds, 720e-6, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "products=0.5x").step_seconds, 520e-6, 1e-9);
}

TEST(WhatIf, RefusesImpossibleTimes) {
  logs::Trace trace = make_device_bound();
  trace.events[1].span.begin -= 200'000;
  const std::vector<logs::Trace> ranks{trace};
  EXPECT_THROW(answer_of(ranks, "products=0.5x"), Error);
}

// Each rank's step is its own recording over its own steps.
TEST(WhatIf, RanksMayRecordDifferentNumbersOfSteps) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1}) {
    RankTrace trace(rank, 0);
    for (int64_t step = 0; step < (rank == 0 ? 4 : 2); ++step) trace.begin_step(step).work("aten::mm", 10).end_step();
    ranks.push_back(trace.trace());
  }
  const TraceReplay replayed = make_trace_replay(ranks);
  EXPECT_NEAR(replay_step(replayed, replayed.durations), replayed.measured_seconds, 1e-9);
}

TEST(WhatIf, ALaunchBoundStepDoesNot) {
  GpuStep step;
  for (int64_t i = 0; i < 10; ++i) step.launch("ampere_sgemm_128x64", 100, 100 * (i + 1) + 5, 20);
  step.synchronise(1030);
  const std::vector<logs::Trace> ranks{step.finish()};
  const TraceReplay replayed = make_trace_replay(ranks);
  EXPECT_NEAR(replay_step(replayed, replayed.durations), 1030e-6, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "products=0.5x").step_seconds, 1020e-6, 1e-9);  // only the last one counts
  EXPECT_LT(answer_of(ranks, "launch=0").step_seconds, 260e-6);
}

TEST(WhatIf, AKernelWaitsForAnotherStream) {
  GpuStep step;
  step.launch("ampere_sgemm_128x64", 10, 10, 500, 7);
  step.launch("ncclDevKernel_AllReduce", 10, 512, 200, 20);  // on its stream alone it could begin at 20
  step.synchronise(715);
  const std::vector<logs::Trace> ranks{step.finish()};
  EXPECT_NEAR(answer_of(ranks, "products=0.5x").step_seconds, 465e-6, 5e-6);
  EXPECT_NEAR(answer_of(ranks, "communication=0").step_seconds, 515e-6, 5e-6);
  EXPECT_NEAR(answer_of(ranks, "overlap=full").step_seconds, 515e-6, 5e-6);
}

TEST(WhatIf, TheSlowestRankNoLongerHoldsTheOthers) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1, 2}) {
    RankTrace trace(rank, 50.0 * static_cast<double>(rank));
    for (int64_t step = 0; step < 4; ++step)
      trace.begin_step(step)
          .work("aten::mm", rank == 2 ? 16 : 10)
          .collective("all_reduce", "dp", 3, rank == 2 ? 1 : 7)
          .end_step();
    ranks.push_back(trace.trace());
  }
  const WhatIfAnswer answer = answer_of(ranks, "slowest-rank=median");
  EXPECT_NEAR(answer.step_seconds, 0.011, 1e-9);
  EXPECT_NEAR(answer.saved_seconds, 0.006, 1e-9);
  EXPECT_EQ(answer.note, "trace 3 of 3 is the slowest");
  EXPECT_NEAR(answer_of(ranks, "products=0.5x").step_seconds, 0.009, 1e-9);
  EXPECT_NEAR(answer_of(ranks, "communication=0").step_seconds, 0.016, 1e-9);
}

TEST(WhatIf, RefusesWhatTheTracesCannotTell) {
  const std::vector<logs::Trace> ranks{make_device_bound()};
  EXPECT_THROW(answer_of(ranks, "slowest-rank=median"), Error);
  EXPECT_THROW(answer_of(ranks, "products=probe"), Error);
  const std::vector<logs::Trace> without_steps{logs::Trace{}};
  EXPECT_THROW(answer_of(without_steps, "products=2x"), Error);
}

TEST(WhatIf, TakesTheRateOfTheNearestProduct) {
  const auto rates =
      product_rates(parse_json(R"({"matmul": [{"precision": "bf16", "flops_per_second": 6e14, "products": [
        {"m": 10, "n": 10, "k": 10, "flops_per_second": 1e12}, {"m": 1000, "n": 1000, "k": 1000, "flops_per_second": 5e14}]},
        {"precision": "fp32", "flops_per_second": 2e13, "shapes": []}]})",
                               "probe.json"),
                    "probe.json");
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_EQ(nearest_rate(rates, "bf16", 2e3), 1e12);
  EXPECT_EQ(nearest_rate(rates, "bf16", 1e8), 5e14);
  EXPECT_EQ(nearest_rate(rates, "fp32", 1), 2e13);
  EXPECT_FALSE(nearest_rate(rates, "fp16", 1).has_value());
  EXPECT_THROW(product_rates(parse_json("{}", "x"), "x"), Error);
}

TEST(WhatIf, OfAPipeline) {
  test::PipelineShape shape{.stages = 4, .micro_batches = 16, .dp_ranks = 2};
  shape.seconds = [](const logs::WorkerOperation& row) { return row.stage == 1 && row.dp_rank == 0 ? 2.0 : 1.0; };
  const PipelineReplay pipeline = make_pipeline_replay(test::make_pipeline(shape), "test");
  const std::vector<WhatIf> changes{parse_what_if("products=2x"), parse_what_if("slowest-rank=median")};
  const WhatIfReport report = answer_what_if(pipeline, changes);
  EXPECT_DOUBLE_EQ(report.replay_error, 0);
  EXPECT_DOUBLE_EQ(report.answers[0].step_seconds, 2 * report.measured_seconds);
  EXPECT_LT(report.answers[1].step_seconds, 0.65 * report.measured_seconds);
  EXPECT_EQ(report.answers[1].note, "slowest: stage 1 of replica 0");
  EXPECT_NE(render_what_if(report).find("products=2x"), std::string::npos);
}

// The replay of recorded steps, with typical delays, comes out where they did.
TEST(WhatIf, ReplaysRecordedSteps) {
  const std::string folder = TPRIMAT_SHARED_DATA "/trace_pairs/";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  for (const char* name : {"kineto_resnet50_workers/workers0", "tracelens_qwen05b/h100", "tracelens_vit_nsfw/mi300x",
                           "single/deepseek_v3_train_ep64_rank0"}) {
    std::vector<logs::Trace> ranks;
    ranks.push_back(
        logs::read_trace(std::filesystem::path(folder + name + ".json.gz"), logs::TraceContent::everything));
    logs::find_phases(ranks[0]);
    const TraceReplay replayed = make_trace_replay(ranks);
    EXPECT_NEAR(replay_step(replayed, replayed.durations) / replayed.measured_seconds, 1, 0.03) << name;
  }
}

}  // namespace
}  // namespace tprimat::results
