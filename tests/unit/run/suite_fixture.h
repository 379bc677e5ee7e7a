#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/experiment.h"
#include "process/process.h"
#include "run/reporters.h"
#include "run/run.h"

namespace tprimat::suite {

inline ModelSpec tiny_model(const std::string& name) {
  ModelSpec model;
  model.name = name;
  model.full_name = "Tiny " + name;
  model.num_layers = 2;
  model.hidden_size = 64;
  model.ffn_hidden_size = 128;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 4;
  model.head_dim = 16;
  model.vocab_size = 256;
  model.max_position_embeddings = 128;
  return model;
}

inline Experiment tiny_experiment(const std::filesystem::path& output) {
  Experiment experiment;
  experiment.methodology = "single";
  ModelEntry entry;
  entry.spec = tiny_model("gpt");
  experiment.models = {entry};
  experiment.platforms[Platform::cpu] = PlatformSetup{};
  experiment.micro_batch_size = 2;
  experiment.global_batch_size = 4;
  experiment.sequence_length = 32;
  experiment.steps = 20;
  experiment.optimizer.learning_rate = 1e-3;  // what the fake trainer says
  experiment.optimizer.schedule = ScheduleKind::constant;
  experiment.output_directory = output.string();
  return experiment;
}

// A folder for output, a suite of runs of the fake trainer, and a user who may interrupt.
class SuiteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    output_ = std::filesystem::temp_directory_path() / ("tprimat_suite_" + std::to_string(::getpid()));
    experiment_ = tiny_experiment(output_);
    options_.grace_seconds = 0.3;
  }
  void TearDown() override { std::filesystem::remove_all(output_); }

  // The planned suite with every command replaced by the fake trainer: 20 steps of 5 ms, and `events`.
  SuitePlan plan(const std::vector<std::string>& events) {
    SuitePlan suite = plan_suite(experiment_, request_, machine_);
    for (PlannedRun& run : suite.runs) {
      run.plan.command = {FAKE_TRAINER, std::to_string(run.spec.steps), "5"};
      run.plan.command.insert(run.plan.command.end(), events.begin(), events.end());
    }
    return suite;
  }

  // The experiment is of one NVIDIA GPU, which this machine needs not have.
  void put_gpu() {
    machine_.platform = Platform::nvd;
    GpuFacts& gpu = machine_.gpus.emplace_back();
    gpu.platform = Platform::nvd, gpu.name = "NVIDIA H200", gpu.memory_bytes = 150e9;
    experiment_.platforms = {{Platform::nvd, PlatformSetup{}}};
    experiment_.platforms[Platform::nvd].device_model = "H200";
    request_.presence = Presence::any;
    request_.own_program = "tprimat";
  }

  SuiteContext around() {
    return {runner_,
            machine_,
            {},
            [](Precision, int64_t) {
              return MeasuredPeak{{"measured:cpu:bf16", 1e12, "test"}, {}};
            },
            [this] { return interrupts_; },
            {}};
  }

  SuiteReport run(const SuitePlan& suite) {
    SilentReporter reporter;
    return run_suite(suite, options_, around(), reporter);
  }
  SuiteReport run(const std::vector<std::string>& events) { return run(plan(events)); }

  std::filesystem::path output_;
  Experiment experiment_;
  SuiteRequest request_;
  MachineFacts machine_;
  SuiteOptions options_;
  LocalRunner runner_;
  int interrupts_ = 0;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tprimat::suite
