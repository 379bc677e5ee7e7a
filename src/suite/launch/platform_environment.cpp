#include "launch/platform_environment.h"

#include <fmt/format.h>

namespace tprimat::suite {
namespace {

using Variables = std::map<std::string, std::string>;

template <class Value>
void put_stated(Variables& variables, const std::string& name, const std::optional<Value>& value) {
  if (value) variables[name] = fmt::format("{}", *value);
}

void put_stated(Variables& variables, const std::string& name, const std::optional<bool>& value) {
  if (value) variables[name] = *value ? "1" : "0";
}

void add_nvidia(Variables& variables, const PlatformSettings& settings) {
  put_stated(variables, "CUDA_VISIBLE_DEVICES", settings.visible_devices);
  put_stated(variables, "PYTORCH_CUDA_ALLOC_CONF", settings.cuda_alloc_conf);
}

void add_amd(Variables& variables, const PlatformSettings& settings) {
  put_stated(variables, "HIP_VISIBLE_DEVICES", settings.visible_devices);
  put_stated(variables, "PYTORCH_HIP_ALLOC_CONF", settings.cuda_alloc_conf);
  put_stated(variables, "HSA_NO_SCRATCH_RECLAIM", settings.hsa_no_scratch_reclaim);
  put_stated(variables, "HSA_ENABLE_SDMA", settings.hsa_enable_sdma);
}

void add_gpu(Variables& variables, const PlatformSettings& settings) {
  variables["NCCL_DEBUG"] = settings.nccl_debug.value_or("WARN");  // says why a collective failed, and no more
  put_stated(variables, "CUDA_DEVICE_MAX_CONNECTIONS", settings.cuda_device_max_connections);
  put_stated(variables, "NVTE_FLASH_ATTN", settings.flash_attention);  // Transformer Engine
}

}  // namespace

Variables platform_environment(const LaunchRequest& request) {
  Variables variables;
  if (request.platform == Platform::cpu)
    variables = {{"CUDA_VISIBLE_DEVICES", ""}, {"HIP_VISIBLE_DEVICES", ""}};
  else
    add_gpu(variables, request.settings);
  if (request.platform == Platform::nvd) add_nvidia(variables, request.settings);
  if (request.platform == Platform::amd) add_amd(variables, request.settings);
  for (const auto& [name, value] : request.settings.environment) variables[name] = value;
  return variables;
}

}  // namespace tprimat::suite
