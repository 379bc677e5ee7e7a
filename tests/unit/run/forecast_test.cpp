#include "run/forecast.h"

#include "planner/memory.h"
#include "result/result_file.h"
#include "run/nearest_layout.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

class ForecastTest : public SuiteTest {
 protected:
  void give_memory(double bytes) { experiment_.platforms[Platform::cpu].memory_per_device_gb = bytes * 1e-9; }
  PlannedRun first_run() { return plan_suite(experiment_, request_, machine_).runs.front(); }
  Forecast known() { return forecast(first_run(), machine_, planner_); }
  planner::PlannerSettings planner_;
};

TEST_F(ForecastTest, OwnTrainersMemoryIsCounted) {
  const Forecast one = known();
  EXPECT_EQ(one.missing, "");
  EXPECT_EQ(one.memory->total(), planner::plan_native_memory(one.workload).total());
  EXPECT_FALSE(one.device);
  EXPECT_TRUE(one.fits());
}

TEST_F(ForecastTest, RanksShareTheMachinesMemoryWithinItsLimit) {
  machine_.memory_bytes = 64e9;
  machine_.memory_limit_bytes = 8e9;
  EXPECT_EQ(known().device->bytes, 8e9);
  EXPECT_EQ(known().device->source, "this machine's memory");
  give_memory(1e9);
  EXPECT_EQ(known().device->bytes, 1e9);
  EXPECT_EQ(known().device->source, "hardware.platforms.cpu.memory_per_gpu_gb");
}

TEST_F(ForecastTest, WhatDoesNotFitIsNamedWithALayoutThatDoes) {
  experiment_.sequence_length = 128, experiment_.models[0].spec.vocab_size = 50000;
  const double needed = known().memory->total();
  give_memory(needed);
  const SuitePlan fitting = plan_suite(experiment_, request_, machine_);
  EXPECT_TRUE(find_misfits(fitting, machine_, planner_).empty());
  give_memory(needed - 1e6);
  experiment_.runs = 3;
  const std::vector<Problem> problems = find_misfits(plan_suite(experiment_, request_, machine_), machine_, planner_);
  ASSERT_EQ(problems.size(), 1u) << "once for all repetitions";
  EXPECT_NE(problems[0].what.find("native gpt on cpu, strategy single does not fit: the heaviest rank needs"),
            std::string::npos)
      << problems[0].what;
  EXPECT_NE(problems[0].hint.find("{TP: 1, PP: 1, DP: 1, GA: 4}, MBS 1"), std::string::npos) << problems[0].hint;
  EXPECT_NE(problems[0].hint.find("--force"), std::string::npos);
}

TEST_F(ForecastTest, NoLayoutFitsANutshell) {
  give_memory(1e5);
  const auto problems = find_misfits(plan_suite(experiment_, request_, machine_), machine_, planner_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].hint.find("no layout on this many devices fits"), std::string::npos);
}

TEST_F(ForecastTest, OtherProgramsOnAProcessorAreNotPredicted) {
  PlannedRun run = first_run();
  run.framework = Framework::tran;
  const Forecast one = forecast(run, machine_, planner_);
  EXPECT_FALSE(one.memory);
  EXPECT_EQ(one.missing, "Hugging Face Transformers on a CPU");
  run.framework = Framework::deep;
  EXPECT_NE(forecast(run, machine_, planner_).missing, "");
}

TEST_F(ForecastTest, AGpuIsFoundByItsNameAndMemory) {
  EXPECT_EQ(planner::machine_of_device("NVIDIA H100 80GB HBM3", 85.5)->id, "H100-SXM-80GB");
  EXPECT_EQ(planner::machine_of_device("NVIDIA A100-SXM4-40GB", 42.4)->id, "A100-SXM-40GB");
  EXPECT_FALSE(planner::machine_of_device("NVIDIA H100 PCIe", 85.0));
  EXPECT_FALSE(planner::machine_of_device("NVIDIA H100", 30.0)) << "a part of one";
  EXPECT_FALSE(planner::machine_of_device("GeForce GTX 1080", 8.0));
}

TEST_F(ForecastTest, OnAGpuTimeAndMemoryArePredicted) {
  PlannedRun run = first_run();
  run.platform = Platform::nvd, run.framework = Framework::mega, run.setup.device_model = "H100";
  const auto prediction = predict(run, machine_, planner_, std::nullopt);
  EXPECT_EQ(prediction->family, "megatron_core");
  EXPECT_EQ(prediction->machine, "H100-SXM-80GB");
  EXPECT_GT(*prediction->step_time_seconds, 0);
  EXPECT_GT(*prediction->memory_gb, 3);  // contexts and buffers
  run.setup.device_model = "GTX";
  EXPECT_FALSE(predict(run, machine_, planner_, std::nullopt)->step_time_seconds) << "never invented";
  EXPECT_EQ(predict(run, machine_, planner_, std::nullopt)->not_predicted, "the step time: the GPU is not in its list");
}

TEST_F(ForecastTest, OfTheOwnTrainerOnAGpuMemoryAloneIsPredicted) {
  PlannedRun run = first_run();
  run.platform = Platform::nvd, run.setup.device_model = "H200";
  const auto prediction = predict(run, machine_, planner_, std::nullopt);
  EXPECT_EQ(prediction->memory_gb, forecast(run, machine_, planner_).memory->total() * 1e-9);
  EXPECT_FALSE(prediction->step_time_seconds);
  EXPECT_EQ(prediction->not_predicted, "the step time: the native trainer was not measured on GPUs");
  run.spec.precision = Precision::tf32;
  EXPECT_TRUE(forecast(run, machine_, planner_).memory);
  run.platform = Platform::cpu;
  EXPECT_EQ(forecast(run, machine_, planner_).missing, "tf32 products");
}

TEST_F(ForecastTest, WhatDoesNotFitOntoACardIsNamedWithALayoutThatDoes) {
  PlannedRun run = first_run();
  run.platform = Platform::nvd;
  run.setup.device_model = "H200", run.setup.memory_per_device_gb = 141;
  run.spec.sequence_length = 128;
  EXPECT_EQ(forecast(run, machine_, planner_).device->source, "NVIDIA H200 SXM 141 GB in the hardware catalogue");
  GpuFacts& gpu = machine_.gpus.emplace_back();
  gpu.platform = Platform::nvd, gpu.name = "NVIDIA H200", gpu.memory_bytes = 150.75e9;
  EXPECT_EQ(forecast(run, machine_, planner_).device->bytes, 150.75e9) << "what the GPU says of itself";
  SuitePlan suite;
  suite.runs = {run};
  EXPECT_TRUE(find_misfits(suite, machine_, planner_).empty());
  const double needed = forecast(run, machine_, planner_).memory->total();
  suite.runs[0].setup.memory_per_device_gb = (needed - 1e6) * 1e-9;
  const std::vector<Problem> problems = find_misfits(suite, machine_, planner_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].what.find("native gpt on nvd, strategy single does not fit"), std::string::npos)
      << problems[0].what;
}

TEST_F(ForecastTest, OnAProcessorTimeFollowsFromItsMeasuredPeak) {
  machine_.cpu.usable_threads = 2, machine_.cpu.model_name = "Sample CPU";
  const auto time = [&](std::optional<PeakInfo> peak) {
    return predict(first_run(), machine_, planner_, peak)->step_time_seconds;
  };
  PeakInfo peak{"measured:cpu:bf16", 800e9, "test", 20e9, {}};
  const auto slow = time(peak);
  ASSERT_TRUE(slow);
  peak.flops_per_second *= 10, *peak.memory_bytes_per_second *= 10;
  EXPECT_LT(*time(peak), *slow);
  EXPECT_FALSE(time(std::nullopt)) << "nothing was measured";
  EXPECT_NE(predict(first_run(), machine_, planner_, std::nullopt)->not_predicted.value_or("").find("not measured"),
            std::string::npos);
  EXPECT_EQ(predict(first_run(), machine_, planner_, peak)->calibrated, false) << "fitted to another processor";
  peak.memory_bytes_per_second.reset();
  EXPECT_FALSE(time(peak));
}

TEST_F(ForecastTest, NearestChangesTheMicroBatchFirstThenRecomputationThenSharing) {
  planner::Workload w = known().workload;
  w.shape.num_layers = 8, w.shape.vocab_size = 256;
  w.shape.hidden_size = 512, w.shape.ffn_hidden_size = 2048;
  w.sequence_length = 1024, w.global_batch = 64;
  w.layout.data = 4, w.layout.micro_batch = 4;
  const auto needs = [&](const planner::Layout& layout) {
    planner::Workload other = w;
    other.layout = layout;
    return planner::plan_native_memory(other).total();
  };
  planner::Layout wanted = w.layout, smaller = wanted, recomputed, shared;
  smaller.micro_batch = 1;
  recomputed = smaller, recomputed.recompute = Recompute::selective;
  shared = smaller, shared.recompute = Recompute::full, shared.sharding = planner::Sharding::weights;
  const auto fitting = [&](double bytes, bool accepted = true) {
    return find_fitting_layout(
        w, {bytes, [](const planner::Workload& each) { return planner::plan_native_memory(each).total(); },
            [=](const planner::Layout&) { return accepted; }});
  };
  const auto found = [&](double bytes) { return fitting(bytes)->layout; };
  EXPECT_EQ(found(needs(wanted)).micro_batch, 4);
  EXPECT_EQ(found(needs(smaller)).micro_batch, 1);
  EXPECT_EQ(found(needs(smaller)).recompute, Recompute::none);
  ASSERT_LT(needs(recomputed), needs(smaller));
  EXPECT_EQ(found(needs(recomputed)).recompute, Recompute::selective);
  EXPECT_EQ(found(needs(shared)).tensor, 1);
  EXPECT_FALSE(fitting(1000));
  EXPECT_FALSE(fitting(1e15, false)) << "the program takes none";
  w.layout.sharding = planner::Sharding::weights;
  const auto refused = [](const planner::Layout& each) { return each.sharding == planner::Sharding::none; };
  const auto lower = find_fitting_layout(w, {1e15, [](const planner::Workload&) { return 1.0; }, refused});
  EXPECT_EQ(lower->layout.sharding, planner::Sharding::none) << "less of ZeRO where nothing else is taken";
}

TEST_F(ForecastTest, TheNearestLayoutIsOneThatTheProgramStarts) {
  experiment_.platforms[Platform::nvd] = PlatformSetup{};
  experiment_.platforms[Platform::nvd].device_model = "H100";
  request_.platform = Platform::nvd, request_.frameworks = {Framework::fsdp}, request_.presence = Presence::any;
  PlannedRun run = plan_suite(experiment_, request_, machine_).runs.front();
  ModelSpec& model = run.spec.model;
  model.num_layers = 32, model.hidden_size = 4096, model.ffn_hidden_size = 14336;
  model.num_attention_heads = 32, model.num_key_value_heads = 8, model.head_dim = 128;
  run.spec.sequence_length = 65536, run.spec.micro_batch_size = 1, run.spec.parallel.data = 8;
  run.spec.global_batch_size = 8;
  const Forecast one = forecast(run, machine_, planner_);
  ASSERT_FALSE(one.fits()) << describe_memory(one);
  const std::string hint = suggest_fitting(run, one, planner_);
  EXPECT_NE(hint.find("TP: 1, PP: 1, DP: 8"), std::string::npos) << hint;
}

TEST_F(ForecastTest, RanksOfAPipelineShareTheHost) {
  PlannedRun run = first_run();
  run.spec.parallel.pipeline = 2, run.spec.model.vocab_size = 50000;
  const double heaviest = forecast(run, machine_, planner_).memory->total();
  machine_.memory_bytes = 2 * heaviest - 1;
  const Forecast one = forecast(run, machine_, planner_);
  EXPECT_EQ(one.needed, planner::plan_native_ranks(one.workload));
  EXPECT_TRUE(one.fits()) << "the other stage needs less than half of the host";
  machine_.memory_bytes = one.needed - 1;
  EXPECT_FALSE(forecast(run, machine_, planner_).fits());
  EXPECT_NE(describe_memory(forecast(run, machine_, planner_)).find("all 2 ranks need"), std::string::npos);
}

TEST_F(ForecastTest, WhatReplicatesIsNotHelpedByMoreDevices) {
  PlannedRun run = first_run();
  run.platform = Platform::nvd, run.framework = Framework::tran, run.setup.device_model = "H100";
  run.setup.memory_per_device_gb = 0.001;
  const std::string hint = suggest_fitting(run, forecast(run, machine_, planner_), planner_);
  EXPECT_EQ(hint.find("use more devices"), std::string::npos) << hint;
  EXPECT_NE(hint.find("use a framework that shards"), std::string::npos) << hint;
}

TEST_F(ForecastTest, ThePartsMemoryComesFromTheCatalogue) {
  PlannedRun run = first_run();
  run.platform = Platform::nvd, run.framework = Framework::mega, run.setup.device_model = "H100-SXM-80GB";
  run.setup.memory_per_device_gb = 80;
  EXPECT_EQ(forecast(run, machine_, planner_).device->source, "NVIDIA H100 SXM 80 GB in the hardware catalogue");
  run.setup.memory_per_device_gb = 79;
  EXPECT_EQ(forecast(run, machine_, planner_).device->source, "hardware.platforms.nvd.memory_per_gpu_gb");
}

TEST_F(ForecastTest, ResultsKeepWhatWasPredicted) {
  run({"memory=0.25"});
  const RunResult result = load_run_result((output_ / "train_cpu_native_gpt.json").string());
  ASSERT_TRUE(result.prediction);
  EXPECT_EQ(result.prediction->family, "native");
  EXPECT_EQ(result.prediction->parameters, "built-in");
  EXPECT_EQ(*result.prediction->memory_gb, known().memory->total() * 1e-9);
}

}  // namespace
}  // namespace tprimat::suite
