#include "run/environment.h"

#include <fmt/ranges.h>

#include "base/build_info.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr const char* k_variables[] = {"TPRIMAT_FLASH_ATTENTION",
                                       "OMP_NUM_THREADS",
                                       "OMP_PROC_BIND",
                                       "OMP_PLACES",
                                       "OMP_WAIT_POLICY",
                                       "OMP_DYNAMIC",
                                       "GOMP_CPU_AFFINITY",
                                       "GOMP_SPINCOUNT",
                                       "KMP_AFFINITY",
                                       "KMP_BLOCKTIME",
                                       "MKL_NUM_THREADS",
                                       "OPENBLAS_NUM_THREADS",
                                       "ONEDNN_MAX_CPU_ISA",
                                       "DNNL_MAX_CPU_ISA",
                                       "ONEDNN_DEFAULT_FPMATH_MODE",
                                       "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
                                       "MALLOC_ARENA_MAX",
                                       "MALLOC_TOP_PAD_",
                                       "GLIBC_TUNABLES",
                                       "LD_PRELOAD",
                                       "CUDA_VISIBLE_DEVICES",
                                       "CUDA_DEVICE_MAX_CONNECTIONS",
                                       "CUDA_LAUNCH_BLOCKING",
                                       "PYTORCH_ALLOC_CONF",
                                       "PYTORCH_CUDA_ALLOC_CONF",
                                       "PYTORCH_HIP_ALLOC_CONF",
                                       "HIP_VISIBLE_DEVICES",
                                       "ROCR_VISIBLE_DEVICES",
                                       "HSA_ENABLE_SDMA",
                                       "HSA_FORCE_FINE_GRAIN_PCIE",
                                       "HSA_KERNARG_POOL_SIZE",
                                       "HSA_NO_SCRATCH_RECLAIM",
                                       "HSA_OVERRIDE_GFX_VERSION",
                                       "GPU_MAX_HW_QUEUES",
                                       "HIP_FORCE_DEV_KERNARG",
                                       "NCCL_ALGO",
                                       "NCCL_DEBUG",
                                       "NCCL_PROTO",
                                       "NCCL_IB_DISABLE",
                                       "NCCL_P2P_DISABLE",
                                       "NCCL_SOCKET_IFNAME",
                                       "NCCL_NVLS_ENABLE",
                                       "NVTE_FLASH_ATTN",
                                       "NVTE_FUSED_ATTN",
                                       "NVTE_UNFUSED_ATTN",
                                       "SLURM_JOB_ID",
                                       "SLURM_NNODES",
                                       "TORCH_NCCL_AVOID_RECORD_STREAMS",
                                       "TORCH_NCCL_HIGH_PRIORITY"};

using Environment = std::map<std::string, std::string>;

void put(Environment& environment, const std::string& key, const std::optional<std::string>& value) {
  if (value && !value->empty()) environment[key] = *value;
}

void put(Environment& environment, const std::string& key, const std::optional<int64_t>& value) {
  if (value) environment[key] = std::to_string(*value);
}

void describe_cpu(Environment& environment, const CpuFacts& cpu) {
  environment["cpu"] = cpu.model_name;
  environment["cpu_threads_usable"] = std::to_string(cpu.usable_threads);
  environment["cpu_instruction_sets"] = join(cpu.instruction_sets, " ");
  put(environment, "cpu_sockets", cpu.sockets);
  put(environment, "cpu_cores", cpu.cores);
  put(environment, "cpu_governor", cpu.governor);
}

void describe_system(Environment& environment, const MachineFacts& machine) {
  environment["kernel"] = machine.kernel;
  environment["architecture"] = machine.architecture;
  put(environment, "distribution", machine.distribution);
  put(environment, "container", machine.container);
  put(environment, "virtual_machine", machine.virtual_machine);
  put(environment, "transparent_huge_pages", machine.transparent_huge_pages);
  put(environment, "numa_nodes", machine.numa_nodes);
  for (const auto& [library, version] : machine.drivers) environment["driver_" + library] = version;
  for (const auto& [stack, version] : machine.stacks) environment[stack] = version;
}

void describe_build(Environment& environment, const BuildInfo& build) {
  environment["tprimat"] = build.version;
  environment["build"] = build.type;
  environment["compiler"] = build.compiler;
  if (!build.revision.empty()) environment["git_revision"] = build.revision;
}

}  // namespace

Environment describe_environment(const MachineFacts& machine, const Environment& libraries,
                                 const EnvironmentReader& variable) {
  Environment environment;
  describe_cpu(environment, machine.cpu);
  describe_system(environment, machine);
  describe_build(environment, build_info());
  for (const auto& [library, version] : libraries) environment[library] = version;
  for (const std::string name : k_variables)
    if (const auto value = variable(name)) environment["env." + name] = *value;
  return environment;
}

}  // namespace tprimat::suite
