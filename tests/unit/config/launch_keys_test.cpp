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

TEST(LaunchKeys, EverySettingOfKubernetesArrives) {
  const LauncherSettings launch = launch_of(R"(launch:
  launcher: kubernetes
  nodes: 2
  kubernetes: {namespace: ml, context: prod, image: "reg/x:1", pull_policy: Always, pull_secrets: [a],
               volumes: ["claim:shared:/shared"], shm_size: 64Gi, cpus: 12, memory: 1.5Ti, gpu_resource: amd.com/gpu_mi300x,
               resources: [rdma/ib=8], node_selector: [zone=b], labels: [queue=c], tolerations: ["gpu:NoSchedule"],
               secrets: {HF_TOKEN: hf/token}, capabilities: [IPC_LOCK], service_account: d, host_network: true,
               pending_seconds: 0}
)");
  KubernetesSettings expected;
  expected.namespace_name = "ml", expected.context = "prod", expected.image = "reg/x:1";
  expected.pull_policy = "Always", expected.pull_secrets = {"a"}, expected.volumes = {"claim:shared:/shared"};
  expected.shm_size = "64Gi", expected.cpus = 12, expected.memory = "1.5Ti";
  expected.gpu_resource = "amd.com/gpu_mi300x", expected.resources = {{"rdma/ib", "8"}};
  expected.node_selector = {{"zone", "b"}}, expected.labels = {{"queue", "c"}};
  expected.tolerations = {"gpu:NoSchedule"}, expected.secrets = {{"HF_TOKEN", "hf/token"}};
  expected.capabilities = {"IPC_LOCK"}, expected.service_account = "d";
  expected.host_network = true, expected.pending_seconds = 0;
  EXPECT_EQ(launch.kubernetes, expected);
  EXPECT_EQ(launch.nodes, 2);
  EXPECT_TRUE(launch.in_container());
}

TEST(LaunchKeys, MistakesOfKubernetesAreNamed) {
  const auto errors = [](const std::string& section) {
    return ConfigCase{"launch: {kubernetes: {" + section + "}}"}.errors();
  };
  for (const char* volume : {"shared:/shared", "claim:shared", "claim:Shared:/a", "claim:shared:a", "nfs:x:/a", "",
                             "claim::/a", "claim:shared:/", "host:data:/a", "host:/a:/b:/c", "claim:shared:/a:rw"})
    EXPECT_TRUE(mention(errors(std::string("volumes: [\"") + volume + "\"]"), "launch.kubernetes.volumes cannot be"))
        << volume;
  EXPECT_TRUE(mention(errors("volumes: ['claim:a:/x', 'claim:b:/x/']"), "two volumes have the path /x"));
  for (const char* each : {"tolerations: ['a:Sometimes']", "tolerations: ['=x:NoSchedule']", "tolerations: ['']"})
    EXPECT_TRUE(mention(errors(each), "launch.kubernetes.tolerations cannot be")) << each;
  for (const char* each : {"64 GB", "Gi", "1.2.3Gi", "-1", "64GiB", "1."})
    EXPECT_TRUE(mention(errors(std::string("memory: '") + each + "'"), "launch.kubernetes.memory cannot be")) << each;
  EXPECT_TRUE(mention(errors("namespace: My_Team"), "launch.kubernetes.namespace cannot be 'My_Team'"));
  EXPECT_TRUE(mention(errors("image: --privileged"), "launch.kubernetes.image cannot be"));
  EXPECT_TRUE(mention(errors("pull_policy: Sometimes"), "launch.kubernetes.pull_policy cannot be"));
  EXPECT_TRUE(mention(errors("capabilities: [ipc-lock]"), "launch.kubernetes.capabilities cannot be"));
  for (const char* each : {"rdma/ib", "rdma/ib=many", "=8", "rdma/ib=", "a b=8"})
    EXPECT_TRUE(mention(errors(std::string("resources: ['") + each + "']"), "launch.kubernetes.resources cannot be"))
        << each;
  EXPECT_TRUE(mention(errors("node_selector: ['zone: b']"), "launch.kubernetes.node_selector cannot be"));
  EXPECT_TRUE(mention(errors("labels: ['-a=b']"), "launch.kubernetes.labels cannot be"));
  EXPECT_TRUE(mention(errors("secrets: {a-b: hf/token}"), "launch.kubernetes.secrets.a-b cannot be"));
  EXPECT_TRUE(mention(errors("cpus: 0"), "launch.kubernetes.cpus"));
}

// A value in the wrong place may be the secret itself.
TEST(LaunchKeys, AMistakenSecretIsNotRepeated) {
  const auto errors = ConfigCase{"launch: {kubernetes: {secrets: {HF_TOKEN: hf_abcdef}}}"}.errors();
  EXPECT_TRUE(mention(errors, "launch.kubernetes.secrets.HF_TOKEN cannot be this value")) << print(errors);
  EXPECT_EQ(print(errors).find("hf_abcdef"), std::string::npos) << print(errors);
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
