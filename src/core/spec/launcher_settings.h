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
enum class Launcher { local, mpi, slurm, docker, kubernetes };

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

enum class ContainerProgram { docker, podman, apptainer, singularity };

// What runs a job's image: srun's plugin pyxis, or a program that srun starts.
enum class SlurmContainer { pyxis, apptainer, singularity };

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
  SlurmContainer container_program = SlurmContainer::pyxis;
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
        field("container_image", &S::container_image, "image of the ranks"),
        field("container_program", &S::container_program, "pyxis, apptainer or singularity"),
        field("container_mounts", &S::container_mounts, "--container-mounts"),
        field("container_env", &S::container_env, "--container-env"),
        field("container_mount_home", &S::container_mount_home, "false: --no-container-mount-home"),
        field("arguments", &S::arguments, "further words for sbatch and srun"));
  }
  bool operator==(const SlurmSettings&) const = default;
};

struct DockerSettings {
  std::optional<ContainerProgram> program;  // nothing: the first of them that this machine has
  std::string image;                        // empty: that of the platform, tprimat:nvd
  std::string shm_size;                     // empty: the host's
  std::vector<std::string> volumes, environment, arguments;
  static constexpr auto fields() {
    using D = DockerSettings;
    return field_list(field("program", &D::program, "docker, podman, apptainer or singularity"),
                      field("image", &D::image, "image"), field("shm_size", &D::shm_size, "--shm-size"),
                      field("volumes", &D::volumes, "further --volume"),
                      field("environment", &D::environment, "names of variables passed on"),
                      field("arguments", &D::arguments, "further words for docker run"));
  }
  bool operator==(const DockerSettings&) const = default;
};

struct KubernetesSettings {
  std::string namespace_name, context;  // empty: those of kubectl
  std::string image;
  std::string pull_policy;                       // empty: the cluster's
  std::vector<std::string> pull_secrets;         // names
  std::vector<std::string> volumes;              // claim:NAME:PATH, host:FOLDER:PATH
  std::string shm_size;                          // empty: as much as the pod's memory
  std::optional<int64_t> cpus;                   // of a pod
  std::string memory;                            // of a pod; empty: not requested
  std::string gpu_resource;                      // empty: that of the vendor
  std::map<std::string, std::string> resources;  // further ones: "rdma/ib" -> "8"
  std::map<std::string, std::string> node_selector, labels;
  std::vector<std::string> tolerations;        // KEY=VALUE:EFFECT, KEY:EFFECT
  std::map<std::string, std::string> secrets;  // "HF_TOKEN" -> "NAME/KEY"
  std::vector<std::string> capabilities;       // IPC_LOCK
  std::string service_account;
  bool host_network = false;
  int64_t pending_seconds = 600;  // how long pods may be unschedulable; 0: without limit
  static constexpr auto fields() {
    using K = KubernetesSettings;
    return field_list(
        field("namespace", &K::namespace_name, "namespace"), field("context", &K::context, "kubectl's context"),
        field("image", &K::image, "image"), field("pull_policy", &K::pull_policy, "imagePullPolicy"),
        field("pull_secrets", &K::pull_secrets, "imagePullSecrets"), field("volumes", &K::volumes, "volumes"),
        field("shm_size", &K::shm_size, "limit of /dev/shm"), field("cpus", &K::cpus, "CPUs of a pod"),
        field("memory", &K::memory, "memory of a pod"), field("gpu_resource", &K::gpu_resource, "name of the GPUs"),
        field("resources", &K::resources, "further resources of a pod"),
        field("node_selector", &K::node_selector, "labels of the nodes"), field("labels", &K::labels, "labels"),
        field("tolerations", &K::tolerations, "tolerated taints"), field("secrets", &K::secrets, "secret variables"),
        field("capabilities", &K::capabilities, "Linux capabilities"),
        field("service_account", &K::service_account, "serviceAccountName"),
        field("host_network", &K::host_network, "network of the node"),
        field("pending_seconds", &K::pending_seconds, "limit for unschedulable pods"));
  }
  bool operator==(const KubernetesSettings&) const = default;
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
  KubernetesSettings kubernetes;
  static constexpr auto fields() {
    using L = LauncherSettings;
    return field_list(field("launcher", &L::launcher, "local, mpi, slurm, docker or kubernetes"),
                      field("nodes", &L::nodes, "nodes of one training"),
                      field("master_address", &L::master_address, "host of rank 0"),
                      field("master_port", &L::master_port, "port on which the ranks meet"),
                      field("program_inside", &L::program_inside, "this program in a container"),
                      field("python_inside", &L::python_inside, "Python in a container"),
                      field("mpi", &L::mpi, "of the launcher mpi"), field("slurm", &L::slurm, "of the launcher slurm"),
                      field("docker", &L::docker, "of the launcher docker"),
                      field("kubernetes", &L::kubernetes, "of the launcher kubernetes"));
  }
  bool operator==(const LauncherSettings&) const = default;

  // The ranks run inside an image, which brings the frameworks with it.
  bool in_container() const {
    return launcher == Launcher::docker || launcher == Launcher::kubernetes ||
           (launcher == Launcher::slurm && !slurm.container_image.empty());
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
