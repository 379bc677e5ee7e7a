#pragma once

#include <string>
#include <vector>

#include "device/gpu/find_library.h"
#include "result/trainer_libraries.h"

namespace tprimat::engine::gpu {

// The vendors' libraries that a training on GPUs loads, each when it is first needed.
const WantedLibrary& product_library();    // cuBLASLt, hipBLASLt
const WantedLibrary& rank_library();       // NCCL, RCCL
const WantedLibrary& attention_library();  // cuDNN; NVIDIA's alone, as the next two
const WantedLibrary& compiler_library();   // NVRTC, with which cuDNN compiles most of its kernels for attention
const WantedLibrary& runtime_library();    // CUDA's runtime, which cudnn-frontend loads

// Loads each library with its dependencies.
std::vector<LibraryReport> report_libraries();

}  // namespace tprimat::engine::gpu
