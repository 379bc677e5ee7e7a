#pragma once

#include <filesystem>
#include <string>

#include "spec/names.h"

namespace tprimat::suite {

// The GPUs that an installed PyTorch computes on: the version of CUDA or ROCm that it was built for; empty: none.
struct TorchBuild {
  std::string cuda, rocm;
  const std::string& stack_of(Platform platform) const { return platform == Platform::amd ? rocm : cuda; }
};

// Of the PyTorch below a Python's prefix, by its torch/version.py, without starting Python. Both are empty where there
// is none.
TorchBuild find_torch_build(const std::filesystem::path& prefix);

}  // namespace tprimat::suite
