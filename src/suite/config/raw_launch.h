#pragma once

#include "config/raw_types.h"
#include "spec/launcher_settings.h"
#include "text/fields.h"

// launch, as written.
namespace tprimat::suite::raw {

struct MpiLaunch {
  Text hostfile;
  TextList hosts, arguments;
  static constexpr auto fields() {
    using M = MpiLaunch;
    return field_list(field("hostfile", &M::hostfile, "host file in mpirun's format"),
                      field("hosts", &M::hosts, "node names, if there is no hostfile"),
                      field("arguments", &M::arguments, "additional arguments for mpirun"));
  }
};

struct SlurmLaunch {
  std::optional<SlurmStart> start;
  std::optional<SlurmMpi> mpi;
  std::optional<SlurmGpus> gpus;
  Text partition, account, qos, time, nodelist;
  Whole cpus_per_task;
  Flag exclusive;
  Text container_image;
  std::optional<SlurmContainer> container_program;
  TextList container_mounts, container_env;
  Flag container_mount_home;
  TextList arguments;
  static constexpr auto fields() {
    using S = SlurmLaunch;
    return field_list(
        field("start", &S::start, "start command; auto: srun inside an allocation, else sbatch"),
        field("mpi", &S::mpi, "how MPI ranks start: srun --mpi=..., or mpirun inside the job"),
        field("gpus", &S::gpus, "GPU request: --gres=gpu:N, --gpus-per-node=N, or none"),
        field("partition", &S::partition, "--partition"), field("account", &S::account, "--account"),
        field("qos", &S::qos, "--qos"), field("time", &S::time, "--time: the job's time limit, such as 01:30:00"),
        field("nodelist", &S::nodelist, "--nodelist: these nodes"),
        field("cpus_per_task", &S::cpus_per_task,
              "--cpus-per-task; when absent, the threads per task on a CPU, else Slurm's default"),
        field("exclusive", &S::exclusive, "--exclusive: no other job on the nodes"),
        field("container_image", &S::container_image, "image in which the ranks run; absent: no container"),
        field("container_program", &S::container_program,
              "runs the image: pyxis (--container-image) when absent, or the program that srun starts"),
        field("container_mounts", &S::container_mounts,
              "additional folders in the container, FROM:TO; the run's own are always mounted"),
        field("container_env", &S::container_env,
              "additional --container-env: names of variables that override the image's"),
        field("container_mount_home", &S::container_mount_home, "false: --no-container-mount-home"),
        field("arguments", &S::arguments, "additional arguments for the command that requests the nodes"));
  }
  static constexpr KeyRange ranges[] = {{"cpus_per_task", 1, 65536}};
};

struct DockerLaunch {
  std::optional<ContainerProgram> program;
  Text image, shm_size;
  TextList volumes, environment, arguments;
  static constexpr auto fields() {
    using D = DockerLaunch;
    return field_list(
        field("program", &D::program, "container program; when absent, the first of them in PATH"),
        field("image", &D::image,
              "image; when absent, tprimat:<platform>, built by tprimat docker build; Apptainer needs one"),
        field("shm_size", &D::shm_size, "--shm-size, such as 64g; the host's shared memory when absent"),
        field("volumes", &D::volumes, "additional --volume, FROM:TO; the run's own folders are always mounted"),
        field("environment", &D::environment, "names of additional environment variables passed to the container"),
        field("arguments", &D::arguments, "additional arguments for docker run or apptainer exec"));
  }
};

struct KubernetesLaunch {
  Text namespace_name, context, image, pull_policy;
  TextList pull_secrets, volumes;
  Text shm_size;
  Whole cpus;
  Text memory, gpu_resource;
  TextList resources, node_selector, labels, tolerations;
  Named<Text> secrets;
  TextList capabilities;
  Text service_account;
  Flag host_network;
  Whole pending_seconds;
  static constexpr auto fields() {
    using K = KubernetesLaunch;
    return field_list(
        field("namespace", &K::namespace_name, "namespace of the JobSet; when absent, that of kubectl's context"),
        field("context", &K::context, "context of kubectl; when absent, its current one"),
        field("image", &K::image, "image of the pods, with the framework and tprimat; required"),
        field("pull_policy", &K::pull_policy, "imagePullPolicy: Always, IfNotPresent or Never"),
        field("pull_secrets", &K::pull_secrets, "names of imagePullSecrets"),
        field("volumes", &K::volumes, "claim:NAME:PATH or host:FOLDER:PATH, for data, output and checkpoints"),
        field("shm_size", &K::shm_size, "limit of /dev/shm, such as 64Gi; when absent, the pod's memory limits it"),
        field("cpus", &K::cpus, "processors of each pod; when absent, one per thread on a CPU"),
        field("memory", &K::memory, "memory of each pod, such as 64Gi; when absent, none is requested"),
        field("gpu_resource", &K::gpu_resource, "GPU resource; when absent, nvidia.com/gpu or amd.com/gpu"),
        field("resources", &K::resources,
              "further resources of each pod, NAME=AMOUNT, such as RDMA devices: rdma/ib=8"),
        field("node_selector", &K::node_selector, "labels that the nodes must have, NAME=VALUE"),
        field("labels", &K::labels, "labels of the JobSet, NAME=VALUE, such as the queue of Kueue"),
        field("tolerations", &K::tolerations, "taints that are tolerated: KEY:EFFECT or KEY=VALUE:EFFECT"),
        field("secrets", &K::secrets, "variables with values from secrets: {HF_TOKEN: NAME/KEY}"),
        field("capabilities", &K::capabilities, "additional Linux capabilities, such as IPC_LOCK for RDMA"),
        field("service_account", &K::service_account, "serviceAccountName of the pods"),
        field("host_network", &K::host_network, "true: the pods use the network of their node"),
        field("pending_seconds", &K::pending_seconds,
              "seconds for which the pods may be unschedulable; 600 when absent, 0: no limit"));
  }
  static constexpr KeyRange ranges[] = {{"cpus", 1, 65536}, {"pending_seconds", 0, 604800}};
};

struct Launch {
  std::optional<Launcher> launcher;
  Whole nodes;
  Text master_address;
  Whole master_port;
  Text program_inside, python_inside;
  MpiLaunch mpi;
  SlurmLaunch slurm;
  DockerLaunch docker;
  KubernetesLaunch kubernetes;
  static constexpr auto fields() {
    using L = Launch;
    return field_list(
        field("launcher", &L::launcher, "launcher that starts the ranks"),
        field("nodes", &L::nodes, "nodes per training, with the same number of ranks on each"),
        field("master_address", &L::master_address, "host of rank 0; detected when absent"),
        field("master_port", &L::master_port, "port of PyTorch's rendezvous"),
        field("program_inside", &L::program_inside,
              "path of tprimat in the container image; when absent, an image that you name gets this machine's"),
        field("python_inside", &L::python_inside, "path of the frameworks' Python in the container image"),
        field("mpi", &L::mpi, "of the launcher mpi"), field("slurm", &L::slurm, "of the launcher slurm"),
        field("docker", &L::docker, "of the launcher docker"),
        field("kubernetes", &L::kubernetes, "of the launcher kubernetes"));
  }
  static constexpr KeyRange ranges[] = {{"nodes", 1, 65536}, {"master_port", 1, 65535}};
};

}  // namespace tprimat::suite::raw
