#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "launch/argument_list.h"
#include "launch/frameworks.h"
#include "launch/launch_plan.h"
#include "launch/launchers.h"
#include "unit/launch/temporary_variable.h"

namespace tprimat::suite {

// A training of eight GPUs, on a machine that has every launcher and is no part of a job.
class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() {
    std::filesystem::create_directories(folder_);
    for (const char* program : {"mpirun", "srun", "sbatch", "docker"}) add_program(program);
    request_.spec.model.name = "tiny";
    request_.spec.steps = 7;
    request_.spec.precision = Precision::fp32;
    ModelSpec& model = request_.spec.model;
    model.num_layers = 2;
    model.hidden_size = model.ffn_hidden_size = 64;
    model.num_attention_heads = model.num_key_value_heads = 4;
    model.head_dim = 16;
    model.vocab_size = 256;
    model.max_position_embeddings = 128;
    request_.spec.parallel.data = 8;
    request_.platform = Platform::nvd;
    request_.paths = {"/out/runs/train_tiny", "/out/training_tiny.log", "/out/train_tiny.json", "/work dir"};
    request_.own_program = "/opt/tprimat";
  }
  ~LauncherTest() override { std::filesystem::remove_all(folder_); }

  void add_program(const std::string& name) const {
    write_file_atomically(folder_ / name, "#!/bin/sh\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  LaunchPlan plan(Framework framework) const { return plan_launch(*find_framework(framework), request_); }
  LaunchPlan place(const TrainProgram& program) const {
    LaunchPlan placed;
    placed.environment = program.environment;
    placed.working_directory = request_.paths.working_directory;
    place_ranks(program, request_, placed);
    return placed;
  }
  // One process per node, which starts the ranks there itself.
  LaunchPlan place_per_node() const {
    TrainProgram program;
    program.arguments = {"run.sh", "a b"};
    program.start = RankStart::per_node;
    return place(program);
  }
  std::string refusal(Framework framework) const {
    try {
      plan(framework);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::string file_of(const LaunchPlan& plan, const std::string& name) {
    for (const GeneratedFile& file : plan.files)
      if (std::filesystem::path(file.path).filename() == name) return file.content;
    return "";
  }
  // The text is the file's in tests/golden/launch, or becomes it with TPRIMAT_UPDATE_GOLDEN=1.
  static void expect_golden(const std::string& name, const std::string& text) {
    const std::filesystem::path golden = std::filesystem::path(TPRIMAT_SOURCE_DIR) / "tests/golden/launch" / name;
    if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(golden, text);
    EXPECT_EQ(text, read_file(golden));
  }
  static bool holds(const Arguments& arguments, const std::string& word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("launchers " + std::to_string(::getpid()));
  TemporaryVariable path_{"PATH", "/nowhere:" + folder_.string() + ":/usr/bin:/bin"};
  TemporaryVariable job_{"SLURM_JOB_ID", std::nullopt}, pbs_{"PBS_NODEFILE", std::nullopt};
  TemporaryVariable node_{"SLURMD_NODENAME", std::nullopt}, count_{"SLURM_JOB_NUM_NODES", std::nullopt};
  TemporaryVariable frameworks_{"TPRIMAT_FRAMEWORKS", "/env"};
  LaunchRequest request_;
};

}  // namespace tprimat::suite
