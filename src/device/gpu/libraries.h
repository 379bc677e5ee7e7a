#pragma once

#include <string>
#include <vector>

#include "device/gpu/find_library.h"

namespace tprimat::gpu {

// The vendors' libraries that a training on GPUs loads, each when it is first needed.
const WantedLibrary& product_library();    // cuBLASLt, hipBLASLt
const WantedLibrary& rank_library();       // NCCL, RCCL
const WantedLibrary& attention_library();  // cuDNN; NVIDIA's alone, as the next two
const WantedLibrary& compiler_library();   // NVRTC, with which cuDNN compiles most of its kernels for attention
const WantedLibrary& runtime_library();    // CUDA's runtime, which cudnn-frontend loads

// One of them on this machine.
struct LibraryReport {
  std::string title;          // "cuBLASLt"
  std::string serves;         // "matrix products"
  bool optional = true;       // one GPU trains without it, if slower
  std::string file, version;  // where it was loaded from; version: empty where it tells none
  std::string refusal;        // why it cannot be loaded; empty where it is
  std::string remedy;
};
// Loads each library with its dependencies.
std::vector<LibraryReport> report_libraries();

}  // namespace tprimat::gpu
