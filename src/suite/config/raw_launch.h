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
    return field_list(field("hostfile", &M::hostfile, "file of hosts, as mpirun reads it"),
                      field("hosts", &M::hosts, "the nodes by name, where there is no hostfile"),
                      field("arguments", &M::arguments, "further words for mpirun"));
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
  TextList container_mounts, container_env;
  Flag container_mount_home;
  TextList arguments;
  static constexpr auto fields() {
    using S = SlurmLaunch;
    return field_list(
        field("start", &S::start, "by which command; auto: srun inside an allocation, else sbatch"),
        field("mpi", &S::mpi, "what numbers the ranks of an MPI program: srun --mpi=..., or mpirun inside the job"),
        field("gpus", &S::gpus, "how GPUs are asked for: --gres=gpu:N, --gpus-per-node=N, or not at all"),
        field("partition", &S::partition, "--partition"), field("account", &S::account, "--account"),
        field("qos", &S::qos, "--qos"), field("time", &S::time, "--time: the job's time limit, such as 01:30:00"),
        field("nodelist", &S::nodelist, "--nodelist: these nodes"),
        field("cpus_per_task", &S::cpus_per_task,
              "--cpus-per-task; on a CPU the threads of a task when absent, else Slurm's own default"),
        field("exclusive", &S::exclusive, "--exclusive: no other job on the nodes"),
        field("container_image", &S::container_image, "--container-image, with pyxis; absent: no container"),
        field("container_mounts", &S::container_mounts,
              "further --container-mounts, FROM:TO; the run's own folders are always mounted"),
        field("container_env", &S::container_env,
              "further --container-env: names of variables that win over the image's"),
        field("container_mount_home", &S::container_mount_home, "false: --no-container-mount-home"),
        field("arguments", &S::arguments, "further words for the command that asks for the nodes"));
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
        field("program", &D::program, "docker where it is in PATH, else podman, when absent"),
        field("image", &D::image, "image; tprimat:<platform>, as tprimat docker build makes it, when absent"),
        field("shm_size", &D::shm_size, "--shm-size, such as 64g; the host's shared memory when absent"),
        field("volumes", &D::volumes, "further --volume, FROM:TO; the run's own folders are always there"),
        field("environment", &D::environment, "names of further variables of yours that the container gets"),
        field("arguments", &D::arguments, "further words for docker run"));
  }
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
  static constexpr auto fields() {
    using L = Launch;
    return field_list(field("launcher", &L::launcher, "what starts the ranks"),
                      field("nodes", &L::nodes, "nodes of one training, with equally many ranks on each"),
                      field("master_address", &L::master_address, "host of rank 0; found out when absent"),
                      field("master_port", &L::master_port, "port on which the ranks of PyTorch meet"),
                      field("program_inside", &L::program_inside, "this program in a container's image"),
                      field("python_inside", &L::python_inside, "the Python of the frameworks in a container's image"),
                      field("mpi", &L::mpi, "of the launcher mpi"), field("slurm", &L::slurm, "of the launcher slurm"),
                      field("docker", &L::docker, "of the launcher docker"));
  }
  static constexpr KeyRange ranges[] = {{"nodes", 1, 65536}, {"master_port", 1, 65535}};
};

}  // namespace tprimat::suite::raw
