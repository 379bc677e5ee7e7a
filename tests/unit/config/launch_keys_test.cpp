#include <gtest/gtest.h>

#include "config_case.h"

namespace tprimat::suite {
namespace {

LauncherSettings launch_of(const std::string& section) { return ConfigCase{section}.load().experiment.launch; }

TEST(LaunchKeys, WithoutThemRanksStartHere) { EXPECT_EQ(launch_of("experiment: {name: x}"), LauncherSettings{}); }

TEST(LaunchKeys, EverySettingArrives) {
  const LauncherSettings launch = launch_of(R"(launch:
  launcher: slurm
  nodes: 4
  master_port: 1234
  python_inside: /opt/venv/bin/python
  slurm: {start: srun, mpi: pmi2, gpus: gpus-per-node, partition: gpu, time: "01:30:00", cpus_per_task: 8, exclusive: true,
          container_image: a.sqsh, container_mounts: [/a:/a], container_env: [HF_TOKEN], arguments: [--comment=a b]}
  docker: {program: podman, image: "mine:1", shm_size: 64g, volumes: [/data:/data], environment: [HF_TOKEN]}
)");
  EXPECT_EQ(launch.launcher, Launcher::slurm);
  EXPECT_EQ(launch.nodes, 4);
  EXPECT_EQ(launch.master_port, 1234);
  EXPECT_EQ(launch.python_inside, "/opt/venv/bin/python");
  EXPECT_EQ(launch.slurm.start, SlurmStart::srun);
  EXPECT_EQ(launch.slurm.mpi, SlurmMpi::pmi2);
  EXPECT_EQ(launch.slurm.gpus, SlurmGpus::gpus_per_node);
  EXPECT_EQ(launch.slurm.time, "01:30:00");
  EXPECT_EQ(launch.slurm.cpus_per_task, 8);
  EXPECT_EQ(launch.slurm.account, std::nullopt);
  EXPECT_EQ(launch.slurm.arguments, std::vector<std::string>{"--comment=a b"});
  EXPECT_EQ(launch.docker.program, ContainerProgram::podman);
  EXPECT_EQ(launch.docker.environment, std::vector<std::string>{"HF_TOKEN"});
  EXPECT_TRUE(launch.in_container());
}

TEST(LaunchKeys, NodesFollowFromHosts) {
  EXPECT_EQ(launch_of("launch: {launcher: mpi, mpi: {hosts: [a, b, c]}}").nodes, 3);
  EXPECT_EQ(launch_of("launch: {launcher: slurm, mpi: {hosts: [a, b, c]}}").nodes, 1);
  const auto errors = ConfigCase{"launch: {launcher: mpi, nodes: 2, mpi: {hosts: [a, b, c]}}"}.errors();
  EXPECT_TRUE(mention(errors, "launch.nodes is 2, but launch.mpi.hosts names 3")) << print(errors);
}

TEST(LaunchKeys, OneMachineIsOneNode) {
  for (const char* launcher : {"local", "docker"}) {
    const auto errors = ConfigCase{std::string("launch: {nodes: 2, launcher: ") + launcher + "}"}.errors();
    ASSERT_EQ(errors.size(), 1u) << print(errors);
    EXPECT_TRUE(mention(errors, "starts ranks on this machine only")) << print(errors);
  }
}

TEST(LaunchKeys, MistakesAreNamed) {
  const auto errors = [](const std::string& section) { return ConfigCase{"launch: " + section}.errors(); };
  EXPECT_TRUE(mention(errors("{launcher: slrum}"), "local, mpi, slurm, docker"));
  EXPECT_TRUE(mention(errors("{slurm: {partitoin: gpu}}"), "did you mean 'partition'?"));
  EXPECT_TRUE(mention(errors("{slurm: {time: soon}}"), "launch.slurm.time must be minutes"));
  EXPECT_TRUE(mention(errors("{slurm: {account: \"a\\nb\"}}"), "launch.slurm.account contains a line break"));
  EXPECT_TRUE(mention(errors("{nodes: 0}"), "launch.nodes"));
  EXPECT_TRUE(mention(errors("{master_port: 70000}"), "launch.master_port"));
}

}  // namespace
}  // namespace tprimat::suite
