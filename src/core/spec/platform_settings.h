#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "text/fields.h"

namespace tprimat {

// What tunes one platform and changes no result of the training but its rounding. What is absent is left to the
// framework's own default, and nothing is said to it.
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
