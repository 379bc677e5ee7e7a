#include "planner/own_results.h"
#include "planner/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "own_samples.h"
#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

double own_seconds(const Workload& w, int64_t cores = 2, const ParameterSet& p = built_in_parameters()) {
  ProcessorFacts facts = two_cores();
  const double scale = static_cast<double>(cores) / 2;
  facts.threads = cores;
  facts.peak_16 *= scale, facts.peak_32 *= scale, facts.memory_bandwidth *= scale;
  return predict_seconds(p, processor_machine(facts), w);
}

TEST(OwnTrainersTime, GrowsWithTheWork) {
  Workload w = own_workload();
  const double one = own_seconds(w);
  EXPECT_GT(one, 0);
  w.global_batch *= 2;
  EXPECT_NEAR(own_seconds(w) / one, 2, 0.1);
  w.layout.recompute = Recompute::full;
  EXPECT_GT(own_seconds(w), 2.2 * one);
}

TEST(OwnTrainersTime, RanksBeyondTheCoresGainNothing) {
  Workload w = own_workload();
  w.layout.data = 2;
  const double two = own_seconds(w);
  w.layout.data = 8;
  EXPECT_GT(own_seconds(w), two) << "eight ranks on two cores do the same work";
  EXPECT_LT(own_seconds(w, 8), own_seconds(w, 2)) << "on eight cores they are faster";
}

TEST(OwnTrainersTime, APipelinesBubbleCostsNothingWhereRanksTakeTurns) {
  Workload w = own_workload();
  w.layout.micro_batch = 1, w.global_batch = 8;
  w.layout.pipeline = 8;
  const Machine two = processor_machine(two_cores());
  const StepTime crowded = time_native_step(w, two, resolve_native_rates(built_in_parameters(), two, w));
  EXPECT_LT(crowded.total(), 2 * own_seconds([&] {
                               Workload alone = w;
                               alone.layout.pipeline = 1;
                               return alone;
                             }()));
}

// Where nothing takes time but one thing, a step's seconds count it.
StepTime own_counts(const Workload& w, double NativeRates::*rate, int64_t cores = 2) {
  NativeRates rates;
  rates.product = rates.attention = std::numeric_limits<double>::infinity();
  rates.*rate = 1;
  ProcessorFacts facts = two_cores();
  facts.threads = cores;
  return time_native_step(w, processor_machine(facts), rates);
}

TEST(OwnTrainersTime, CountsTheMessagesOfTensorParallelLayers) {
  Workload w = own_workload();
  w.layout.tensor = 2, w.global_batch = w.layout.micro_batch;
  const auto per_layer = [&] { return own_counts(w, &NativeRates::message).tensor / 8; };
  EXPECT_EQ(per_layer(), 8) << "two sums each way, each a scatter and a gather";
  w.layout.recompute = Recompute::full;
  EXPECT_EQ(per_layer(), 12);
  w.layout.sequence_parallel = true;
  EXPECT_EQ(per_layer(), 14) << "forward two regions are entered and left; backward the input and the gradient enter";
  w.layout.recompute = Recompute::none;
  EXPECT_EQ(per_layer(), 10);
  w.shape.hidden_size = 8, w.layout.sequence_parallel = false;
  w.sequence_length = 128;
  EXPECT_EQ(per_layer(), 4) << "everybody sends a small sum to all";
}

TEST(OwnTrainersTime, CountsTheMessagesOfContextParallelLayers) {
  Workload w = own_workload();
  w.layout.context = 2, w.global_batch = w.layout.micro_batch;
  EXPECT_EQ(own_counts(w, &NativeRates::message).context / 8, 3) << "keys and values each way, and their gradients";
  w.layout.recompute = Recompute::full;
  EXPECT_EQ(own_counts(w, &NativeRates::message).context / 8, 4);
}

TEST(OwnTrainersTime, CountsTheMessagesOfDataParallelUnits) {
  Workload w = own_workload();
  w.layout.data = 2, w.global_batch = 3 * 2 * w.layout.micro_batch;
  const auto messages = [&](Sharding sharding) {
    w.layout.sharding = sharding;
    return own_counts(w, &NativeRates::message).data - 1;  // the loss and the norm are summed anyway
  };
  constexpr double k_units = 10;  // embedding, eight layers, head
  EXPECT_EQ(messages(Sharding::none), 2 * k_units);
  EXPECT_EQ(messages(Sharding::optimizer), 2 * k_units);
  EXPECT_EQ(messages(Sharding::gradients), 3 * k_units + k_units) << "each micro-batch's gradients are scattered";
  EXPECT_EQ(messages(Sharding::weights), 3 * k_units + k_units + 5 * (k_units - 3))
      << "three gathered units stay from one of the six passes to the next";
}

TEST(OwnTrainersTime, RanksWaitForTurnsBeyondTheCoresAlone) {
  Workload w = own_workload();
  w.layout.data = 2, w.global_batch = 2 * w.layout.micro_batch;
  EXPECT_EQ(own_counts(w, &NativeRates::turn).total(), 0);
  EXPECT_EQ(own_counts(w, &NativeRates::turn, 1).total(), 2 * 10 + 1) << "one rank beyond the only core";
}

TEST(OwnTrainersTime, AttentionIsOfWholeTiles) {
  Workload w = own_workload();
  w.global_batch = w.layout.micro_batch = 1;
  const auto scores = [&](int64_t length, int64_t context) {
    w.sequence_length = length, w.layout.context = context;
    constexpr double k_layers_heads_passes = 8 * 4 * 2.5;  // backward half as much more
    return own_counts(w, &NativeRates::softmax_seconds).attention / k_layers_heads_passes * (context == 1 ? 2 : 1);
  };
  EXPECT_EQ(scores(64, 1), 64 * 64);
  EXPECT_EQ(scores(128, 1), 64 * 64 + 64 * 128);
  EXPECT_EQ(scores(256, 2), 64 * 64 + 64 * 256) << "the first and the last quarter";
  w.shape.sliding_window = 64;
  EXPECT_EQ(scores(256, 1), 64 * 64 + 3 * 64 * 128) << "a window reaches into the tile before";
}

TEST(OwnTrainersTime, ThreadsShareTheWork) {
  Workload w = own_workload();
  w.global_batch = w.layout.micro_batch;
  EXPECT_EQ(own_counts(w, &NativeRates::element_seconds, 1).elementwise,
            2 * own_counts(w, &NativeRates::element_seconds, 2).elementwise);
  EXPECT_EQ(own_counts(w, &NativeRates::call, 1).total(), own_counts(w, &NativeRates::call, 2).total());
  EXPECT_EQ(own_counts(w, &NativeRates::thread_call, 1).total(), 0);
  EXPECT_GT(own_counts(w, &NativeRates::thread_call, 2).total(), 0);
}

TEST(OwnTrainersTime, CachedStatesTakeLess) {
  Workload w = own_workload();
  NativeRates rates;
  rates.product = rates.attention = std::numeric_limits<double>::infinity();
  rates.update_seconds = 1;
  const Machine two = processor_machine(two_cores());
  const double far = time_native_step(w, two, rates).optimizer;
  rates.cached_bytes = 1e12;
  EXPECT_NEAR(time_native_step(w, two, rates).optimizer, 0.4 * far, 1e-9 * far);
}

TEST(OwnTrainersTime, IsSearchedLikeThatOfOthers) {
  PlanRequest request;
  request.shape = own_workload().shape;
  request.sequence_length = 256, request.global_batch = 16, request.gpus = 4;
  request.machine = processor_machine(two_cores());
  request.family = find_family("native");
  const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 5);
  ASSERT_FALSE(outcome.ranked.empty());
  EXPECT_EQ(outcome.ranked.front().memory.total(), plan_native_memory(outcome.ranked.front().workload).total());
}

TEST(OwnTrainersTime, WidenedProductsTakeThoseOfFp32) {
  const Workload narrow = own_workload();
  Workload wide = narrow;
  wide.precision = PlanPrecision::fp32;
  const PeakInfo peak{"measured:cpu:fp32", 300e9, "", 20e9, {}};
  const auto product_rate = [&](const Workload& w, Precision precision) {
    const Machine machine = processor_machine(*facts_of_peak(peak, precision, 2, 1));
    return resolve_native_rates(built_in_parameters(), machine, w).product;
  };
  EXPECT_GT(product_rate(narrow, Precision::bf16), 0);
  EXPECT_EQ(product_rate(narrow, Precision::bf16), product_rate(wide, Precision::fp32));
}

TEST(OwnResults, AResultIsAnObservation) {
  const auto seen = observe_results({own_result(own_workload(), 0.5)}, {});
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_TRUE(seen[0].observed) << seen[0].missing;
  EXPECT_EQ(seen[0].observed->seconds, 0.5);
  EXPECT_EQ(seen[0].observed->machine.cores, 2);
  EXPECT_EQ(seen[0].observed->machine.peak_16, 800e9);
  EXPECT_EQ(seen[0].observed->workload.global_batch, 16);
  const OwnResultsReport report = report_own_results(seen, built_in_parameters());
  EXPECT_NEAR(*report.rows[0].memory_error, 0, 1e-9);
  EXPECT_EQ(report.rows[0].result, "a.json");
}

TEST(OwnResults, AProcessorIsWhatWasMeasuredBeforeItsRun) {
  NamedResult disturbed = own_result(own_workload(), 0.5);
  disturbed.result.derived.peak->flops_per_second /= 4;
  disturbed.result.environment["cpu_threads_used"] = "1";
  ProcessorFacts probe = two_cores();
  probe.peak_16 = 900e9;
  auto seen = observe_results({disturbed, own_result(own_workload(), 0.5)}, {{"Sample CPU", probe}});
  EXPECT_EQ(seen[0].observed->machine.peak_16, 200e9);
  EXPECT_EQ(seen[0].observed->machine.cores, 1);
  EXPECT_EQ(seen[1].observed->machine.cores, 2);
  disturbed.result.derived.peak->id = "config:auto:bf16";
  EXPECT_EQ(observe_results({disturbed}, {{"Sample CPU", probe}})[0].missing, "a machine unknown to the planner")
      << "a probe of two threads says nothing of one";
  disturbed.result.environment["cpu_threads_used"] = "2";
  EXPECT_EQ(observe_results({disturbed}, {{"Sample CPU", probe}})[0].observed->machine.peak_16, 900e9);
  EXPECT_EQ(observe_results({disturbed}, {})[0].missing, "a machine unknown to the planner");
}

TEST(OwnResults, WhatAResultDoesNotSayIsNotInvented) {
  const auto missing = [](auto change) {
    NamedResult named = own_result(own_workload(), 0.5);
    change(named.result);
    return observe_results({named}, {})[0].missing;
  };
  EXPECT_EQ(missing([](RunResult& r) { r.status = RunStatus::failed; }), "a run with status failed");
  EXPECT_EQ(missing([](RunResult& r) { r.model_info.shape.reset(); }), "no model shape");
  EXPECT_EQ(missing([](RunResult& r) { r.training_config.global_batch_size.reset(); }), "no global batch size");
  EXPECT_EQ(missing([](RunResult& r) { r.precision.reset(); }), "no precision");
  EXPECT_EQ(missing([](RunResult& r) { r.parallelism_config.data_parallel_size = 7; }), "an inconsistent layout");
  EXPECT_EQ(missing([](RunResult& r) { r.statistics.reset(); }), "no step time");
  EXPECT_EQ(missing([](RunResult& r) { r.platform = Platform::nvd, r.gpu_info.device_name = "NVIDIA H100 80GB HBM3"; }),
            "the native trainer on a GPU");
  EXPECT_EQ(missing([](RunResult& r) { r.statistics->median = 0; }), "no step time");
  EXPECT_EQ(missing([](RunResult& r) { r.precision = Precision::fp8; }), "no known fp8 peak");
  EXPECT_EQ(missing([](RunResult& r) { r.framework = Framework::tran; }), "this framework on a CPU");
}

TEST(OwnResults, AFitFindsTheProcessorThatMadeThem) {
  ParameterSet truth = built_in_parameters();
  for (size_t i = 0; i < truth.all().size(); ++i)
    if (truth.all()[i].name == "product_16@native") truth.set_value(i, truth.all()[i].value / 2);
  std::vector<NamedResult> results;
  for (const int64_t width : {128, 256, 512})
    for (const int64_t data : {1, 2, 4}) {
      Workload w = own_workload();
      w.shape.hidden_size = width, w.shape.ffn_hidden_size = 3 * width, w.layout.data = data;
      results.push_back(own_result(w, predict_seconds(truth, processor_machine(two_cores()), w)));
    }
  const auto seen = observe_results(results, {});
  std::vector<Observation> observations;
  for (const OwnObservation& each : seen) observations.push_back(*each.observed);
  const ParameterSet fitted = calibrate(built_in_parameters(), observations);
  const OwnResultsReport report = report_own_results(seen, fitted, &built_in_parameters());
  const auto worst = [&](const std::string& of) {
    for (const PlanErrors& each : report.errors)
      if (each.of == of) return each.worst;
    return -1.0;
  };
  EXPECT_GT(worst("step time before"), 0.1);
  EXPECT_LT(worst("step time"), 0.05);
  EXPECT_EQ(fitted.at("product_16@hopper"), built_in_parameters().at("product_16@hopper"));
}

TEST(OwnResults, AGpuResultIsOneOfItsFrameworksFamily) {
  const Workload w = sample_workload();
  NamedResult named = own_result(w, 3.0);
  RunResult& r = named.result;
  r.platform = Platform::nvd, r.framework = Framework::mega;
  r.gpu_info.device_name = "NVIDIA H100 80GB HBM3", r.gpu_info.total_memory_gb = 85.5;
  r.memory_metrics.peak_memory_reserved_gb = 60;
  const auto seen = observe_results({named}, {});
  ASSERT_TRUE(seen[0].observed) << seen[0].missing;
  EXPECT_EQ(seen[0].observed->machine.id, "H100-SXM-80GB");
  EXPECT_EQ(seen[0].observed->workload.family->id, "megatron_core");
  EXPECT_EQ(*seen[0].observed->memory_bytes, 60e9);
}

TEST(OwnResults, MeasurementsStandBehindWhatWasFitted) {
  const Machine never = *find_machine("MI250X-GCD"), own = processor_machine(two_cores());
  const Family &megatron = *find_family("megatron_core"), &native = *find_family("native");
  EXPECT_TRUE(rests_on_measurements(built_in_parameters(), *find_machine("H100"), megatron));
  EXPECT_FALSE(rests_on_measurements(built_in_parameters(), never, megatron));
  EXPECT_FALSE(rests_on_measurements(built_in_parameters(), own, native)) << "fitted to another processor";
  const auto refined = [](const NamedResult& named) {
    return refine(built_in_parameters(), {*observe_results({named}, {})[0].observed}).parameters;
  };
  EXPECT_TRUE(rests_on_measurements(refined(sample_gpu_result("MI250X-GCD", 60)), never, megatron));
  EXPECT_TRUE(rests_on_measurements(refined(own_result(own_workload(), 5)), own, native));
}

TEST(OwnResults, AMemoryOfNothingIsNotKnown) {
  for (const double gb : {0.0, -1.0, 1e308}) {
    NamedResult named = own_result(own_workload(), 0.5);
    named.result.memory_metrics.peak_memory_allocated_gb = gb;
    const auto seen = observe_results({named}, {});
    ASSERT_TRUE(seen[0].observed) << seen[0].missing;
    EXPECT_FALSE(seen[0].observed->memory_bytes) << gb;
  }
}

TEST(OwnResults, OurFsdpScriptRepeatsTheAttentionCoreAlone) {
  TrainSpec spec;
  spec.model = sample_workload().shape;
  spec.parallel.data = 8, spec.sequence_length = 8192;
  spec.micro_batch_size = 1, spec.global_batch_size = 8;
  const auto activations = [&](Recompute recompute) {
    spec.recompute = recompute;
    return estimate_memory(workload_of(spec, Framework::fsdp, Platform::nvd).workload, built_in_parameters())
        .activations;
  };
  EXPECT_EQ(activations(Recompute::selective), activations(Recompute::none));
  EXPECT_LT(activations(Recompute::full), activations(Recompute::none));
}

}  // namespace
}  // namespace tprimat::planner
