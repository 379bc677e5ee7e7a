#include "launch/launchers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "launch/container.h"
#include "launch/frameworks.h"
#include "launch/launch_plan.h"
#include "unit/launch/launcher_case.h"
#include "unit/launch/temporary_variable.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

TEST(Launchers, EveryOneIsListedOnce) {
  for (const auto& [launcher, name] : EnumNames<Launcher>::values)
    EXPECT_EQ(std::count_if(launcher_modules().begin(), launcher_modules().end(),
                            [id = launcher](const LauncherModule& each) { return each.id == id; }),
              1)
        << name;
}

// What each launcher makes of an MPI program and of one of torchrun: tests/golden/launch, rewritten with
// TPRIMAT_UPDATE_GOLDEN=1. The files of the frameworks themselves are left out.
class GoldenLaunch : public LauncherTest, public ::testing::WithParamInterface<std::tuple<Launcher, Framework>> {};

TEST_P(GoldenLaunch, IsAsWritten) {
  const auto [launcher, framework] = GetParam();
  request_.launch.launcher = launcher;
  if (launcher == Launcher::mpi || launcher == Launcher::slurm) request_.launch.nodes = 2;
  if (framework == Framework::native) request_.platform = Platform::cpu;
  request_.spec.threads = framework == Framework::native ? 3 : 0;
  request_.launch.mpi.hosts = {"node1", "node2:8"};
  request_.launch.slurm.partition = "gpu";
  request_.launch.slurm.time = "01:30:00";
  LaunchPlan launch = plan(framework);
  std::erase_if(launch.files, [](const GeneratedFile& file) { return !file.path.ends_with(".sh"); });
  const std::string name = std::string(enum_name(launcher)) + "_" + std::string(enum_name(framework)) + ".sh";
  expect_golden(name, render_shell(launch));
}
INSTANTIATE_TEST_SUITE_P(Launch, GoldenLaunch,
                         ::testing::Combine(::testing::Values(Launcher::local, Launcher::mpi, Launcher::slurm,
                                                              Launcher::docker),
                                            ::testing::Values(Framework::native, Framework::fsdp)),
                         [](const auto& each) {
                           return std::string(enum_name(std::get<0>(each.param))) + "_" +
                                  std::string(enum_name(std::get<1>(each.param)));
                         });

TEST_F(LauncherTest, RanksMustSpreadEvenly) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 3;
  EXPECT_NE(refusal(Framework::fsdp).find("8 ranks cannot be spread evenly over 3 nodes"), std::string::npos);
  request_.launch.nodes = 4;
  EXPECT_EQ(refusal(Framework::fsdp), "");
}

TEST_F(LauncherTest, AMissingOneSaysWhatBringsIt) {
  const TemporaryVariable nothing("PATH", "/nowhere");
  for (const auto& [launcher, hint] : {std::pair{Launcher::mpi, "openmpi-bin"},
                                       {Launcher::slurm, "sbatch"},
                                       {Launcher::docker, "apptainer"},
                                       {Launcher::kubernetes, "kubernetes.io/docs/tasks/tools"}}) {
    LauncherSettings settings;
    settings.launcher = launcher;
    try {
      require_launcher(settings);
      ADD_FAILURE() << enum_name(launcher) << " was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::missing_component);
      EXPECT_NE(std::string(error.what()).find(hint), std::string::npos) << error.what();
    }
  }
  require_launcher({});
}

TEST_F(LauncherTest, AProgramPerNodeIsToldItsNode) {
  EXPECT_EQ(place_per_node().environment.at("GPUS_PER_NODE"), "8");
  EXPECT_EQ(place_per_node().environment.at("MASTER_ADDR"), "localhost");
  EXPECT_EQ(place_per_node().command, (Arguments{"run.sh", "a b"}));
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 2;
  const LaunchPlan plan = place_per_node();
  EXPECT_EQ(plan.environment.count("GPUS_PER_NODE"), 0u);
  const std::string script = file_of(plan, "start_node.sh");
  EXPECT_NE(script.find("export NNODES=2 NODE_RANK=\"$SLURM_NODEID\" GPUS_PER_NODE=4\n"), std::string::npos) << script;
  EXPECT_TRUE(script.ends_with("exec \"$@\"\n"));
  EXPECT_NE(file_of(plan, "job.sh").find("start_node.sh run.sh 'a b'\n"), std::string::npos);
}

// The first host out of Slurm's list, without scontrol as in a container.
TEST_F(LauncherTest, TheNodeScriptFindsTheFirstHost) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 2;
  const LaunchPlan plan = place_per_node();
  const fs::path script = folder_ / "start_node.sh";
  write_file_atomically(script, file_of(plan, "start_node.sh"));
  for (const auto& [list, host] :
       {std::pair{"node[01-04,07]", "node01"}, {"gpu-7", "gpu-7"}, {"a1,b[2-3]", "a1"}, {"n[3,5]", "n3"}}) {
    const std::string command =
        std::string("SLURM_NODEID=1 SLURM_STEP_NODELIST='") + list + "' /bin/sh '" + script.string() +
        "' /bin/sh -c 'echo $MASTER_ADDR:$MASTER_PORT $NODE_RANK/$NNODES' > '" + (folder_ / "said").string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read_file(folder_ / "said"), std::string(host) + ":29500 1/2\n");
  }
  request_.launch.master_address = "10.0.0.1";
  EXPECT_NE(file_of(place_per_node(), "start_node.sh").find("MASTER_ADDR=10.0.0.1 "), std::string::npos);
}

TEST_F(LauncherTest, MpirunNeedsToKnowItsNodes) {
  request_.launch.launcher = Launcher::mpi;
  request_.launch.nodes = 2;
  EXPECT_NE(refusal(Framework::fsdp).find("no host names are given for the 2 nodes"), std::string::npos);
  request_.launch.mpi.hostfile = (folder_ / "hosts").string();
  EXPECT_NE(refusal(Framework::fsdp).find("hosts"), std::string::npos);
  write_file_atomically(folder_ / "hosts", "# rack 3\n\n node7 slots=8\nnode8 slots=8\n");
  EXPECT_NE(file_of(plan(Framework::fsdp), "start_node.sh").find("MASTER_ADDR=node7 "), std::string::npos);
  write_file_atomically(folder_ / "hosts", "# nothing\n");
  EXPECT_NE(refusal(Framework::fsdp).find("contains no host"), std::string::npos);
  request_.launch.mpi.hostfile.clear();
  const TemporaryVariable job("SLURM_JOB_ID", "7");
  EXPECT_EQ(refusal(Framework::fsdp), "");
}

TEST_F(LauncherTest, MpirunOnThisMachineNeedsNoScript) {
  request_.launch.launcher = Launcher::mpi;
  request_.launch.mpi.arguments = {"--report-bindings"};
  const LaunchPlan fsdp = plan(Framework::fsdp);
  EXPECT_EQ(file_of(fsdp, "start_node.sh"), "");
  EXPECT_TRUE(holds(fsdp.command, "--standalone"));
  EXPECT_TRUE(holds(fsdp.command, "--report-bindings"));
  EXPECT_TRUE(holds(fsdp.command, "TPRIMAT_STEPS"));
  EXPECT_EQ(fsdp.place, Whereabouts::children);
}

TEST_F(LauncherTest, SlurmStartsAStepInAnAllocationAndAJobOutside) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.slurm.partition = "gpu";
  EXPECT_EQ(plan(Framework::fsdp).command.front(), "sh");
  request_.launch.slurm.start = SlurmStart::srun;
  EXPECT_TRUE(holds(plan(Framework::fsdp).command, "--partition=gpu"));
  EXPECT_TRUE(holds(plan(Framework::fsdp).command, "--gres=gpu:8"));
  request_.launch.slurm.start = SlurmStart::automatic;
  const TemporaryVariable job("SLURM_JOB_ID", "7");
  const LaunchPlan step = plan(Framework::fsdp);
  EXPECT_EQ(step.command.front(), "srun");
  EXPECT_FALSE(holds(step.command, "--partition=gpu"));
  EXPECT_EQ(step.place, Whereabouts::elsewhere);
  EXPECT_EQ(step.cleanup_command, (Arguments{"sh", "/out/runs/train_tiny/cancel.sh"}));
  const TemporaryVariable node("SLURMD_NODENAME", "n1"), count("SLURM_JOB_NUM_NODES", "1");
  EXPECT_EQ(plan(Framework::fsdp).place, Whereabouts::this_machine);
}

TEST_F(LauncherTest, SlurmSaysEverySetting) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.nodes = 2;
  SlurmSettings& slurm = request_.launch.slurm;
  slurm.account = "team one";
  slurm.qos = "high";
  slurm.nodelist = "n[1-2]";
  slurm.gpus = SlurmGpus::gpus_per_node;
  slurm.cpus_per_task = 96;
  slurm.exclusive = true;
  slurm.container_image = "image.sqsh";
  request_.launch.program_inside = "/usr/bin/tprimat";
  slurm.container_mounts = {"/data:/data:ro"};
  slurm.container_env = {"HF_TOKEN"};
  slurm.arguments = {"--constraint=h100"};
  const std::string job = file_of(plan(Framework::fsdp), "job.sh");
  for (const char* line :
       {"#SBATCH '--account=team one'\n", "#SBATCH --qos=high\n", "#SBATCH '--nodelist=n[1-2]'\n",
        "#SBATCH --nodes=2\n", "#SBATCH --gpus-per-node=4\n", "#SBATCH --cpus-per-task=96\n", "#SBATCH --exclusive\n",
        "#SBATCH --ntasks=2\n", "#SBATCH --constraint=h100\n", " --container-image=image.sqsh ",
        " --no-container-mount-home ",
        "--container-mounts=/out/runs/train_tiny:/out/runs/train_tiny,/work dir:/work dir,/data:/data:ro",
        " --container-env=HF_TOKEN,", " --ntasks-per-node=1 ", " --cpus-per-task=96 "})
    EXPECT_NE(job.find(line), std::string::npos) << line << "\n" << job;
  slurm.container_mount_home = true;
  EXPECT_EQ(file_of(plan(Framework::fsdp), "job.sh").find("mount-home"), std::string::npos);
}

TEST_F(LauncherTest, MpirunInsideAJobNeedsTheJob) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.slurm.mpi = SlurmMpi::mpirun;
  request_.launch.slurm.start = SlurmStart::srun;
  request_.platform = Platform::cpu;
  EXPECT_NE(refusal(Framework::native).find("launch.slurm.start: sbatch"), std::string::npos);
  request_.launch.slurm.start = SlurmStart::sbatch;
  EXPECT_NE(file_of(plan(Framework::native), "job.sh").find("exec mpirun "), std::string::npos);
}

// The image has its own program and Python; folders are where they are outside.
TEST_F(LauncherTest, AContainerHasNamesAndFoldersOfItsOwn) {
  request_.launch.launcher = Launcher::docker;
  request_.spec.data.dataset = "/data/sets/wiki";
  request_.checkout.installation = "/out/runs/train_tiny/inside";
  request_.launch.docker.volumes = {"/models:/models:ro"};
  request_.launch.docker.environment = {"HF_TOKEN"};
  request_.launch.docker.shm_size = "64g";
  const LaunchPlan fsdp = plan(Framework::fsdp);
  EXPECT_TRUE(holds(fsdp.command, "python3"));
  EXPECT_FALSE(holds(fsdp.command, "/env/fsdp/bin/python"));
  EXPECT_EQ(fsdp.environment.at("TPRIMAT_PROGRAM"), "tprimat");
  Arguments volumes;
  for (size_t i = 0; i + 1 < fsdp.command.size(); ++i)
    if (fsdp.command[i] == "--volume") volumes.push_back(fsdp.command[i + 1]);
  EXPECT_EQ(volumes, (Arguments{"/data/sets:/data/sets", "/out/runs/train_tiny:/out/runs/train_tiny",
                                "/work dir:/work dir", "/models:/models:ro"}));
  EXPECT_TRUE(holds(fsdp.command, "HF_TOKEN"));
  EXPECT_TRUE(holds(fsdp.command, "--shm-size"));
  EXPECT_FALSE(holds(fsdp.command, "--ipc=host"));
  EXPECT_EQ(fsdp.place, Whereabouts::this_machine);
  request_.platform = Platform::cpu;
  EXPECT_TRUE(holds(plan(Framework::native).command, "tprimat"));
}

// An image that the configuration names has no tprimat, unless launch.program_inside says so.
TEST_F(LauncherTest, AnImageWithoutTheProgramGetsIt) {
  request_.launch.launcher = Launcher::docker;
  request_.launch.docker.image = "vendor/pytorch:25.06";
  request_.launch.docker.volumes = {"/models:/models:ro"};
  request_.program_files = {
      "/opt/tprimat-train", "/lib/ld-linux.so.2", {"/opt/libtprimat_nvd.so"}, {"/lib", "/usr/lib"}};
  const std::string script = "/out/runs/train_tiny/program/tprimat";
  const LaunchPlan fsdp = plan(Framework::fsdp);
  EXPECT_EQ(fsdp.environment.at("TPRIMAT_PROGRAM"), script);
  EXPECT_EQ(fsdp.mounts,
            (Arguments{"/out/runs/train_tiny:/out/runs/train_tiny", "/work dir:/work dir",
                       "/opt/tprimat:/opt/tprimat-mounted/bin/tprimat:ro",
                       "/opt/tprimat-train:/opt/tprimat-mounted/bin/tprimat-train:ro",
                       "/opt/libtprimat_nvd.so:/opt/tprimat-mounted/bin/libtprimat_nvd.so:ro",
                       "/lib/ld-linux.so.2:/opt/tprimat-mounted/bin/ld.so:ro", "/lib:/opt/tprimat-mounted/lib:ro",
                       "/usr/lib:/opt/tprimat-mounted/lib2:ro", "/models:/models:ro"}));
  for (const std::string& mount : fsdp.mounts) EXPECT_TRUE(holds(fsdp.command, mount)) << mount;
  EXPECT_TRUE(has_start_script(fsdp));
  EXPECT_EQ(fsdp.files.back().path, script);
  EXPECT_TRUE(fsdp.files.back().executable);
  EXPECT_NE(fsdp.files.back().content.find("libraries=/opt/tprimat-mounted/lib:/opt/tprimat-mounted/lib2$"),
            std::string::npos)
      << fsdp.files.back().content;
  request_.launch.program_inside = "/usr/local/bin/tprimat";  // the image has one
  EXPECT_EQ(plan(Framework::fsdp).environment.at("TPRIMAT_PROGRAM"), "/usr/local/bin/tprimat");
  EXPECT_EQ(plan(Framework::fsdp).mounts.size(), 3u);
  EXPECT_FALSE(has_start_script(plan(Framework::fsdp)));
}

// Its libraries are not those of the image's MPI, so its ranks meet over TCP.
TEST_F(LauncherTest, RanksOfTheMountedTrainerStartByTorchrun) {
  request_.launch.launcher = Launcher::docker;
  request_.launch.docker.image = "vendor/pytorch:25.06";
  request_.platform = Platform::cpu;
  request_.spec.threads = 3;
  const LaunchPlan native = plan(Framework::native);
  const auto python = std::find(native.command.begin(), native.command.end(), "python3");
  EXPECT_EQ(
      Arguments(python, native.command.end()),
      (Arguments{"python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "8", "--no-python",
                 "/out/runs/train_tiny/program/tprimat", "train", "--spec", "/out/runs/train_tiny/train_spec.json"}));
  EXPECT_EQ(native.environment.at("OMP_NUM_THREADS"), "3");
  EXPECT_TRUE(holds(native.command, "OMP_NUM_THREADS"));
  request_.spec.parallel.data = 1;
  EXPECT_FALSE(holds(plan(Framework::native).command, "torch.distributed.run"));
}

// Megatron-LM never calls it.
TEST_F(LauncherTest, NothingIsMountedForAProgramThatNeedsNothing) {
  request_.launch.launcher = Launcher::docker;
  request_.launch.docker.image = "vendor/pytorch:25.06";
  request_.program_files.trainer = "/opt/tprimat-train";
  EXPECT_FALSE(has_start_script(plan(Framework::mega)));
  EXPECT_EQ(plan(Framework::mega).mounts.size(), 2u);
}

TEST_F(LauncherTest, ContainersOfSlurmGetTheProgramToo) {
  request_.launch.launcher = Launcher::slurm;
  request_.launch.slurm.container_image = "image.sqsh";
  request_.launch.slurm.start = SlurmStart::srun;
  request_.program_files.trainer = "/opt/tprimat-train";
  const LaunchPlan step = plan(Framework::fsdp);
  EXPECT_TRUE(holds(step.command,
                    "--container-mounts=/out/runs/train_tiny:/out/runs/train_tiny,/work dir:/work dir,"
                    "/opt/tprimat:/opt/tprimat-mounted/bin/tprimat:ro,"
                    "/opt/tprimat-train:/opt/tprimat-mounted/bin/tprimat-train:ro"));
  request_.own_program = "/a,b/tprimat";
  EXPECT_NE(refusal(Framework::fsdp).find("launch.program_inside"), std::string::npos);
}

// Of this process: a loader and the folder of its C library at least.
TEST(ProgramFiles, AreThoseOfThisProcess) {
  const ProgramFiles files = find_program_files();
  EXPECT_TRUE(fs::is_regular_file(files.loader)) << files.loader;
  const auto has_libc = [](const std::string& folder) { return fs::exists(fs::path(folder) / "libc.so.6"); };
  EXPECT_TRUE(std::any_of(files.library_folders.begin(), files.library_folders.end(), has_libc));
}

TEST_F(LauncherTest, GpusReachAContainerByTheOptionsOfEach) {
  ContainerRun run;
  run.platform = Platform::nvd;
  EXPECT_TRUE(holds(container_arguments(run), "--gpus"));
  run.program = ContainerProgram::podman;
  EXPECT_TRUE(holds(container_arguments(run), "nvidia.com/gpu=all"));
  run.platform = Platform::amd;
  EXPECT_TRUE(holds(container_arguments(run), "/dev/kfd"));
  run.platform = Platform::cpu;
  EXPECT_FALSE(holds(container_arguments(run), "--device"));
  EXPECT_EQ(find_container_program(), ContainerProgram::docker);
}

TEST_F(LauncherTest, TwoRunsHaveTwoNames) {
  request_.launch.launcher = Launcher::docker;
  const Arguments first = plan(Framework::fsdp).cleanup_command;
  EXPECT_EQ(first, plan(Framework::fsdp).cleanup_command);
  request_.paths.folder = "/other/runs/train_tiny";
  EXPECT_NE(first, plan(Framework::fsdp).cleanup_command);
}

}  // namespace
}  // namespace tprimat::suite
