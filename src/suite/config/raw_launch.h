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
        field("container_image", &S::container_image, "--container-image, with pyxis; absent: no container"),
        field("container_mounts", &S::container_mounts,
              "additional --container-mounts, FROM:TO; the run's own folders are always mounted"),
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
        field("program", &D::program, "when absent, docker if it is in PATH, else podman"),
        field("image", &D::image, "image; when absent, tprimat:<platform>, built by tprimat docker build"),
        field("shm_size", &D::shm_size, "--shm-size, such as 64g; the host's shared memory when absent"),
        field("volumes", &D::volumes, "additional --volume, FROM:TO; the run's own folders are always mounted"),
        field("environment", &D::environment, "names of additional environment variables passed to the container"),
        field("arguments", &D::arguments, "additional arguments for docker run"));
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
    return field_list(
        field("launcher", &L::launcher, "launcher that starts the ranks"),
        field("nodes", &L::nodes, "nodes per training, with the same number of ranks on each"),
        field("master_address", &L::master_address, "host of rank 0; detected when absent"),
        field("master_port", &L::master_port, "port of PyTorch's rendezvous"),
        field("program_inside", &L::program_inside,
              "path of tprimat in the container image; when absent, an image that you name gets this machine's"),
        field("python_inside", &L::python_inside, "path of the frameworks' Python in the container image"),
        field("mpi", &L::mpi, "of the launcher mpi"), field("slurm", &L::slurm, "of the launcher slurm"),
        field("docker", &L::docker, "of the launcher docker"));
  }
  static constexpr KeyRange ranges[] = {{"nodes", 1, 65536}, {"master_port", 1, 65535}};
};

}  // namespace tprimat::suite::raw
