#include "run/gpu_default.h"

#include <gtest/gtest.h>

#include <fstream>

#include "config/load.h"
#include "launch/torch_build.h"
#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "unit/temporary_folder.h"

namespace tprimat::suite {
namespace {

using ::testing::Test;

const PeerFramework k_torch{"PyTorch 2.13.0, CUDA 13.0", ""}, k_no_torch{"", "PyTorch is not installed"};

MachineFacts machine_with(const std::vector<std::pair<std::string, double>>& gpus, Platform platform = Platform::nvd) {
  MachineFacts machine;
  machine.platform = platform;
  for (const auto& [name, gb] : gpus) {
    GpuFacts& gpu = machine.gpus.emplace_back();
    gpu.platform = platform, gpu.index = static_cast<int64_t>(machine.gpus.size()) - 1, gpu.name = name;
    if (gb > 0) gpu.memory_bytes = gb * 1e9;
  }
  return machine;
}

EnvironmentReader no_variables() {
  return [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
}

DefaultGpus gpus_of(const MachineFacts& machine) { return *find_default_gpus(machine, no_variables()); }

struct Chosen {
  GpuDefault made;
  LoadedExperiment loaded;
  const ModelSpec& model(size_t i) const { return loaded.experiment.models.at(i).spec; }
};

Chosen choose(const DefaultGpus& gpus, const PeerFramework& peer = k_no_torch) {
  GpuDefault made = choose_gpu_default(gpus, peer, planner::built_in_parameters());
  LoadedExperiment loaded = load_experiment_text(made.yaml, "default", {});
  return {std::move(made), std::move(loaded)};
}

SuitePlan plan_of(const Experiment& experiment, const MachineFacts& machine) {
  SuiteRequest request;
  request.own_program = "tprimat";
  request.presence = Presence::any;
  return plan_suite(experiment, request, machine);
}

int64_t parameters_of(const ModelSpec& model) { return count_parameters(model).total(); }

// What the choice promises: each training fits, one size up at least one does not or the time is up.
TEST(GpuDefault, EveryTrainingFitsOnCardsOfAnySize) {
  int64_t before = 0;
  for (const double gb : {4.0, 8.0, 12.0, 16.0, 24.0, 40.0, 80.0, 141.0, 192.0}) {
    const DefaultGpus gpus = gpus_of(machine_with({{"NVIDIA Unknown", gb}}));
    const Chosen chosen = choose(gpus, k_torch);
    const SuitePlan suite = plan_of(chosen.loaded.experiment, machine_with({{"NVIDIA Unknown", gb}}));
    ASSERT_EQ(suite.runs.size(), gb < 5 ? 2u : 4u) << "PyTorch alone takes more than 4 GB";
    for (const PlannedRun& run : suite.runs) {
      const auto workload = planner::workload_of(run.spec, run.framework, run.platform).workload;
      EXPECT_LE(planner::estimate_memory(workload, planner::built_in_parameters()).total(), 0.94 * gb * 1e9) << gb;
    }
    const int64_t size = parameters_of(chosen.model(0)) + parameters_of(chosen.model(1));
    EXPECT_GE(size, before) << "more memory never trains smaller models";
    before = size;
  }
  EXPECT_GT(before, 7'000'000'000) << "192 GB hold the largest";
}

TEST(GpuDefault, TwoMinutesAreEstimatedFromThePeakAndSaidToBe) {
  for (const auto& [name, gb] :
       {std::pair{"NVIDIA H100 80GB HBM3", 85.5}, {"NVIDIA H200", 150.0}, {"NVIDIA B200", 191.5}})
    for (const PeerFramework& peer : {k_torch, k_no_torch}) {
      const MachineFacts machine = machine_with({{name, gb}});
      const DefaultGpus gpus = gpus_of(machine);
      const Chosen chosen = choose(gpus, peer);
      const SuitePlan suite = plan_of(chosen.loaded.experiment, machine);
      double seconds = 0;
      for (const PlannedRun& run : suite.runs)
        seconds += static_cast<double>(run.spec.steps * run.spec.tokens_per_step()) *
                   flops_per_token(run.spec.model, run.spec.sequence_length, FlopFormula::causal) /
                   (0.4 * *gpus.peak_flops);
      EXPECT_LE(seconds, 121) << name;
      EXPECT_GE(chosen.loaded.experiment.steps, 20);
      EXPECT_TRUE(seconds > 90 || chosen.loaded.experiment.steps == 200) << name << ": " << seconds << " s";
      const std::string said = describe_expected(suite, gpus, planner::built_in_parameters());
      EXPECT_NE(said.find("an estimate at 40 % of "), std::string::npos) << said;
    }
}

TEST(GpuDefault, AnUnknownCardHasNoTime) {
  const MachineFacts machine = machine_with({{"NVIDIA GeForce of tomorrow", 16}});
  const Chosen chosen = choose(gpus_of(machine));
  const std::string said =
      describe_expected(plan_of(chosen.loaded.experiment, machine), gpus_of(machine), planner::built_in_parameters());
  EXPECT_NE(said.find("time unknown: the hardware catalogue has no bf16 peak for NVIDIA GeForce of tomorrow"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("estimate"), std::string::npos) << said;
  EXPECT_FALSE(gpus_of(machine_with({{"NVIDIA H100 80GB HBM3", 20}})).peak_flops) << "a slice of one";
}

TEST(GpuDefault, AllGpusAreDataParallelAndTheSameWorkGoesToBothFrameworks) {
  const MachineFacts machine =
      machine_with(std::vector(8, std::pair<std::string, double>{"NVIDIA H100 80GB HBM3", 85.5}));
  const Chosen chosen = choose(gpus_of(machine), k_torch);
  const SuitePlan suite = plan_of(chosen.loaded.experiment, machine);
  ASSERT_EQ(suite.runs.size(), 4u);
  for (const PlannedRun& run : suite.runs) {
    EXPECT_EQ(run.spec.parallel.data, 8);
    EXPECT_EQ(run.spec.parallel.zero_stage, 3);
    EXPECT_EQ(run.spec.global_batch_size, 64);
  }
  EXPECT_EQ(suite.runs[0].framework, Framework::native);
  EXPECT_EQ(suite.runs[1].framework, Framework::fsdp);
  EXPECT_EQ(suite.runs[0].spec, suite.runs[1].spec);
  const DefaultGpus one = gpus_of(machine_with({{"NVIDIA H100 80GB HBM3", 85.5}}));
  EXPECT_GE(parameters_of(chosen.model(0)), parameters_of(choose(one, k_torch).model(0)));
}

TEST(GpuDefault, OnAmdToo) {
  const MachineFacts machine = machine_with({{"AMD Instinct MI300X", 206.1}}, Platform::amd);
  const Chosen chosen = choose(gpus_of(machine));
  EXPECT_TRUE(chosen.loaded.experiment.platforms.contains(Platform::amd));
  EXPECT_EQ(chosen.model(0).full_name, "Llama 3.1 8B");
  EXPECT_NE(chosen.made.reasons.at(0).find("1 x AMD Instinct MI300X trains Llama 3.1 8B and "), std::string::npos)
      << chosen.made.reasons.at(0);
}

TEST(GpuDefault, APartWithoutBf16TrainsInFp16) {
  const DefaultGpus gpus = gpus_of(machine_with({{"Tesla V100-SXM2-16GB", 17.2}}));
  EXPECT_EQ(gpus.precision, Precision::fp16);
  EXPECT_EQ(gpus.peak_flops, 125e12);
  const Chosen chosen = choose(gpus);
  EXPECT_EQ(chosen.loaded.experiment.platforms.at(Platform::nvd).precision, Precision::fp16);
  EXPECT_EQ(chosen.made.reasons.back(),
            "it trains in fp16: Tesla V100-SXM2-16GB has no bf16, according to the hardware catalogue");
  EXPECT_EQ(gpus_of(machine_with({{"NVIDIA Unknown", 16}})).precision, Precision::bf16);
}

TEST(GpuDefault, UnlikeGpusTrainOnOne) {
  const DefaultGpus gpus = gpus_of(machine_with({{"NVIDIA H100 80GB HBM3", 80}, {"NVIDIA L4", 24}}));
  EXPECT_EQ(gpus.count, 1);
  EXPECT_EQ(gpus.memory_bytes, 24e9) << "whichever of them is the first";
  EXPECT_FALSE(gpus.peak_flops);
  EXPECT_NE(choose(gpus).made.reasons.back().find("of different kinds"), std::string::npos);
}

TEST(GpuDefault, VisibleGpusCount) {
  const MachineFacts machine = machine_with({{"NVIDIA H100 80GB HBM3", 80}, {"NVIDIA L4", 24}});
  const auto seen = [&](const std::string& list) {
    return find_default_gpus(machine, [&](const std::string& name) {
      return name == "CUDA_VISIBLE_DEVICES" ? std::optional(list) : std::nullopt;
    });
  };
  EXPECT_EQ(seen("1")->name, "NVIDIA L4");
  EXPECT_FALSE(seen(""));
  EXPECT_FALSE(find_default_gpus(MachineFacts{}, no_variables()));
}

TEST(GpuDefault, WhatDoesNotFitOrIsUnknownIsTheSmallestAndSaysSo) {
  const Chosen tiny = choose(gpus_of(machine_with({{"NVIDIA Tiny", 0.5}})));
  EXPECT_EQ(tiny.model(0).full_name, "Llama-shaped 10M");
  EXPECT_NE(tiny.made.reasons[0].find("its smallest shapes, which exceed"), std::string::npos) << tiny.made.reasons[0];
  const Chosen unknown = choose(gpus_of(machine_with({{"NVIDIA Mute", 0}})));
  EXPECT_EQ(unknown.model(1).full_name, "Qwen-shaped 10M");
  EXPECT_NE(unknown.made.reasons[0].find("memory is unknown"), std::string::npos) << unknown.made.reasons[0];
}

TEST(GpuDefault, ANameOfADriverCannotBreakTheConfiguration) {
  for (const std::string name :
       {"NVIDIA \"quoted\": {x}", "# no comment", "a\nmodels: {}", "''", "\xc3\xa9t\xc3\xa9"}) {
    const Chosen chosen = choose(gpus_of(machine_with({{name, 24}})));
    EXPECT_EQ(chosen.loaded.experiment.platforms.at(Platform::nvd).device_model, name);
    EXPECT_EQ(chosen.loaded.experiment.models.size(), 2u);
  }
}

TEST(GpuDefault, NamesOfSmallShapesStateTheirSize) {
  for (const GpuModelFamily& family : gpu_model_families()) {
    int64_t before = std::numeric_limits<int64_t>::max();
    for (const GpuModel& model : family.models) {
      EXPECT_TRUE(check_model(model.spec, family.key).empty());
      EXPECT_LT(parameters_of(model.spec), before) << "largest first";
      before = parameters_of(model.spec);
      const size_t shaped = model.spec.full_name.find("-shaped ");
      if (shaped == std::string::npos) continue;
      const double millions = std::stod(model.spec.full_name.substr(shaped + 8));
      EXPECT_NEAR(static_cast<double>(before) / 1e6, millions, 0.6) << model.spec.full_name;
    }
  }
}

class TorchBuildTest : public Test {
 protected:
  void write(const std::string& text) {
    const auto folder = folder_.path() / "lib/python3.12/dist-packages/torch";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "version.py") << text;
  }
  TorchBuild found() const { return find_torch_build(folder_.path()); }
  test::TemporaryFolder folder_;
};

TEST_F(TorchBuildTest, TheVersionFileStatesWhichGpusItServes) {
  EXPECT_EQ(found().cuda, "");
  write("__version__ = '2.13.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n");
  EXPECT_EQ(found().cuda, "13.0");
  EXPECT_EQ(found().stack_of(Platform::amd), "");
  write("cuda = None\nhip = \"7.0.51831\"\n");
  EXPECT_EQ(found().stack_of(Platform::amd), "7.0.51831");
  EXPECT_EQ(found().stack_of(Platform::nvd), "");
  for (const std::string text : {"", "cuda", "cuda =", "cuda = '13", "cudart = '1'\nhipcc='2'\n", "\xff\xfe\0\n"}) {
    write(text);
    EXPECT_EQ(found().cuda + found().rocm, "") << text;
  }
}

}  // namespace
}  // namespace tprimat::suite
