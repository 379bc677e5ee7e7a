#include "launch/apptainer.h"

#include <gtest/gtest.h>

#include "unit/launch/launcher_case.h"

namespace tprimat::suite {
namespace {

class ApptainerTest : public LauncherTest {
 protected:
  ApptainerTest() {
    request_.launch.launcher = Launcher::docker;
    request_.launch.docker.program = ContainerProgram::apptainer;
    request_.launch.docker.image = "nvcr.io/nvidia/pytorch:25.06-py3";
    request_.program_files.trainer = "/opt/tprimat-train";
  }
  std::string script(Framework framework) const {
    LaunchPlan launch = plan(framework);
    std::erase_if(launch.files, [](const GeneratedFile& file) { return !file.path.ends_with(".sh"); });
    return render_shell(launch);
  }
};

TEST_F(ApptainerTest, TheCommandIsAsWritten) {
  expect_golden("apptainer_fsdp.sh", script(Framework::fsdp));
  request_.launch.docker.program = ContainerProgram::singularity;
  request_.launch.docker.image = "/images/rocm.sif";
  request_.platform = Platform::amd;
  expect_golden("singularity_fsdp.sh", script(Framework::fsdp));
}

TEST_F(ApptainerTest, SlurmStartsItOnEachNode) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 2;
  request_.launch.slurm.container_program = SlurmContainer::apptainer;
  request_.launch.slurm.container_image = "/images/pytorch.sif";
  expect_golden("slurm_apptainer_fsdp.sh", script(Framework::fsdp));
  request_.launch.slurm.container_mount_home = true;
  EXPECT_EQ(file_of(plan(Framework::fsdp), "job.sh").find("--home"), std::string::npos);
}

TEST_F(ApptainerTest, MpirunInTheJobStartsNoImage) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.program_inside = "tprimat";
  request_.launch.slurm.container_image = "image.sif";
  request_.launch.slurm.mpi = SlurmMpi::mpirun;
  request_.platform = Platform::cpu;
  EXPECT_NE(refusal(Framework::native).find("mpirun inside the job starts no container"), std::string::npos);
}

// The ranks are children of this program, so nothing is left to be ended elsewhere.
TEST_F(ApptainerTest, RanksAreChildProcesses) {
  const LaunchPlan launch = plan(Framework::fsdp);
  EXPECT_EQ(launch.place, Whereabouts::children);
  EXPECT_TRUE(launch.cleanup_command.empty());
}

TEST_F(ApptainerTest, ItIsTakenWhereNothingElseIs) {
  request_.launch.docker.program.reset();
  EXPECT_EQ(plan(Framework::fsdp).command.front(), "docker");
  std::filesystem::remove(folder_ / "docker");
  add_program("singularity");
  const TemporaryVariable path("PATH", folder_.string());
  EXPECT_EQ(plan(Framework::fsdp).command.front(), "singularity");
  add_program("apptainer");
  EXPECT_EQ(plan(Framework::fsdp).command.front(), "apptainer");
}

TEST_F(ApptainerTest, WhatItCannotDoIsRefused) {
  request_.launch.docker.shm_size = "64g";
  EXPECT_NE(refusal(Framework::fsdp).find("apptainer shares the machine's /dev/shm"), std::string::npos);
  request_.launch.docker.shm_size = "";
  request_.settings.environment = {{"ODD", "a\"b"}};
  EXPECT_NE(refusal(Framework::fsdp).find("cannot pass on the value of ODD"), std::string::npos);
  request_.settings.environment = {};
  request_.paths.folder = "/out,1/runs/train_tiny";
  EXPECT_NE(refusal(Framework::fsdp).find("cannot be mounted into a container"), std::string::npos);
  request_.paths.folder = "/out/runs/train_tiny";
  request_.launch.docker.image = "";
  EXPECT_NE(refusal(Framework::fsdp).find("Apptainer cannot build one from a Dockerfile"), std::string::npos);
}

// pflag reads a word with one = as it is, and one with several as a line of CSV.
TEST_F(ApptainerTest, ValuesWithCommasStayWhole) {
  ApptainerRun run{"apptainer", Platform::cpu, "a.sif", "", {}, {{"A", "1,2"}, {"B", "x=1,y=2"}, {"C", "x=1"}}, "", {}};
  EXPECT_EQ(apptainer_arguments(run),
            (Arguments{"apptainer", "exec", "--env", "A=1,2", "--env", "\"B=x=1,y=2\"", "--env", "C=x=1", "a.sif"}));
}

// All users of a machine see the words of a command.
TEST_F(ApptainerTest, TheCommandShowsNoSecrets) {
  request_.settings.environment = {{"HF_TOKEN", "hf_\"abc"}};
  LaunchPlan launch = plan(Framework::fsdp);
  for (const std::string& word : launch.command) EXPECT_EQ(word.find("HF_TOKEN"), std::string::npos) << word;
  EXPECT_EQ(launch.environment.at("APPTAINERENV_HF_TOKEN"), "hf_\"abc");
  request_.launch.docker.program = ContainerProgram::singularity;
  EXPECT_EQ(plan(Framework::fsdp).environment.at("SINGULARITYENV_HF_TOKEN"), "hf_\"abc");
}

TEST_F(ApptainerTest, TheCommandOfAJobShowsNoSecrets) {
  request_.settings.environment = {{"HF_TOKEN", "hf_abc"}};
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 2;
  request_.launch.slurm.container_program = SlurmContainer::apptainer;
  request_.launch.slurm.container_image = "/images/pytorch.sif";
  const std::string job = file_of(plan(Framework::fsdp), "job.sh");
  EXPECT_EQ(job.find("--env HF_TOKEN"), std::string::npos) << job;
  EXPECT_NE(job.find("export APPTAINERENV_HF_TOKEN=hf_abc"), std::string::npos) << job;
}

}  // namespace
}  // namespace tprimat::suite
