#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat {

// The program that starts the ranks of a training.
enum class Launcher { local, mpi, slurm, docker };

// How a job is submitted to Slurm; automatic: srun inside an allocation, else sbatch.
enum class SlurmStart { automatic, srun, sbatch };
constexpr auto enum_table(SlurmStart) {
  return std::to_array<std::pair<SlurmStart, std::string_view>>(
      {{SlurmStart::automatic, "auto"}, {SlurmStart::srun, "srun"}, {SlurmStart::sbatch, "sbatch"}});
}

// How the ranks of an MPI program get their numbers under Slurm.
enum class SlurmMpi { pmix, pmi2, mpirun };

// The option that requests GPUs from Slurm.
enum class SlurmGpus { gres, gpus_per_node, none };
constexpr auto enum_table(SlurmGpus) {
  return std::to_array<std::pair<SlurmGpus, std::string_view>>(
      {{SlurmGpus::gres, "gres"}, {SlurmGpus::gpus_per_node, "gpus-per-node"}, {SlurmGpus::none, "none"}});
}

enum class ContainerProgram { docker, podman };

struct MpiSettings {
  std::string hostfile;
  std::vector<std::string> hosts, arguments;
  static constexpr auto fields() {
    using M = MpiSettings;
    return field_list(field("hostfile", &M::hostfile, "file of hosts, as mpirun reads it"),
                      field("hosts", &M::hosts, "the nodes"),
                      field("arguments", &M::arguments, "further words for mpirun"));
  }
  bool operator==(const MpiSettings&) const = default;
};

struct SlurmSettings {
  SlurmStart start = SlurmStart::automatic;
  SlurmMpi mpi = SlurmMpi::pmix;
  SlurmGpus gpus = SlurmGpus::gres;
  std::optional<std::string> partition, account, qos, time, nodelist;
  std::optional<int64_t> cpus_per_task;
  bool exclusive = false;
  std::string container_image;
  std::vector<std::string> container_mounts, container_env;
  bool container_mount_home = false;
  std::vector<std::string> arguments;
  static constexpr auto fields() {
    using S = SlurmSettings;
    return field_list(
        field("start", &S::start, "auto, srun or sbatch"), field("mpi", &S::mpi, "pmix, pmi2 or mpirun"),
        field("gpus", &S::gpus, "gres, gpus-per-node or none"), field("partition", &S::partition, "--partition"),
        field("account", &S::account, "--account"), field("qos", &S::qos, "--qos"), field("time", &S::time, "--time"),
        field("nodelist", &S::nodelist, "--nodelist"), field("cpus_per_task", &S::cpus_per_task, "--cpus-per-task"),
        field("exclusive", &S::exclusive, "--exclusive"),
        field("container_image", &S::container_image, "--container-image, of pyxis"),
        field("container_mounts", &S::container_mounts, "--container-mounts"),
        field("container_env", &S::container_env, "--container-env"),
        field("container_mount_home", &S::container_mount_home, "false: --no-container-mount-home"),
        field("arguments", &S::arguments, "further words for sbatch and srun"));
  }
  bool operator==(const SlurmSettings&) const = default;
};

struct DockerSettings {
  std::optional<ContainerProgram> program;  // nothing: docker where it is, else podman
  std::string image;                        // empty: that of the platform, tprimat:nvd
  std::string shm_size;                     // empty: the host's
  std::vector<std::string> volumes, environment, arguments;
  static constexpr auto fields() {
    using D = DockerSettings;
    return field_list(field("program", &D::program, "docker or podman"), field("image", &D::image, "image"),
                      field("shm_size", &D::shm_size, "--shm-size"), field("volumes", &D::volumes, "further --volume"),
                      field("environment", &D::environment, "names of variables passed on"),
                      field("arguments", &D::arguments, "further words for docker run"));
  }
  bool operator==(const DockerSettings&) const = default;
};

// How the ranks of every training are started.
struct LauncherSettings {
  Launcher launcher = Launcher::local;
  int64_t nodes = 1;
  std::string master_address;  // empty: detected
  int64_t master_port = 29500;
  std::string program_inside;             // of a container's image; empty: mounted, but our own images have one
  std::string python_inside = "python3";  // of a container's image
  MpiSettings mpi;
  SlurmSettings slurm;
  DockerSettings docker;
  static constexpr auto fields() {
    using L = LauncherSettings;
    return field_list(field("launcher", &L::launcher, "local, mpi, slurm or docker"),
                      field("nodes", &L::nodes, "nodes of one training"),
                      field("master_address", &L::master_address, "host of rank 0"),
                      field("master_port", &L::master_port, "port on which the ranks meet"),
                      field("program_inside", &L::program_inside, "this program in a container"),
                      field("python_inside", &L::python_inside, "Python in a container"),
                      field("mpi", &L::mpi, "of the launcher mpi"), field("slurm", &L::slurm, "of the launcher slurm"),
                      field("docker", &L::docker, "of the launcher docker"));
  }
  bool operator==(const LauncherSettings&) const = default;

  // The ranks run inside an image, which brings the frameworks with it.
  bool in_container() const {
    return launcher == Launcher::docker || (launcher == Launcher::slurm && !slurm.container_image.empty());
  }
};

// Settings that tune one platform and change the training's results by rounding only. For an absent setting the
// framework uses its own default.
struct PlatformSettings {
  std::optional<bool> fp8_hybrid, fp8_param, flash_attention;
  std::optional<std::string> visible_devices, cuda_alloc_conf, nccl_debug;
  std::optional<int64_t> cuda_device_max_connections;
  std::optional<bool> hsa_no_scratch_reclaim, hsa_enable_sdma;
  std::map<std::string, std::string> environment;

  static constexpr auto fields() {
    using P = PlatformSettings;
    return field_list(
        field("fp8_hybrid", &P::fp8_hybrid, "with fp8: E4M3 forward, E5M2 for gradients"),
        field("fp8_param", &P::fp8_param, "with fp8: the weights are kept in fp8 too"),
        field("flash_attention", &P::flash_attention, "fused attention; false: step by step"),
        field("visible_devices", &P::visible_devices, "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES"),
        field("cuda_alloc_conf", &P::cuda_alloc_conf, "PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF"),
        field("nccl_debug", &P::nccl_debug, "NCCL_DEBUG, of RCCL too"),
        field("cuda_device_max_connections", &P::cuda_device_max_connections, "CUDA_DEVICE_MAX_CONNECTIONS"),
        field("hsa_no_scratch_reclaim", &P::hsa_no_scratch_reclaim, "HSA_NO_SCRATCH_RECLAIM"),
        field("hsa_enable_sdma", &P::hsa_enable_sdma, "HSA_ENABLE_SDMA"),
        field("environment", &P::environment, "further environment variables of every rank"));
  }
  bool operator==(const PlatformSettings&) const = default;
};

}  // namespace tprimat
