#pragma once

#include <string>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat::suite {

// A model that the built-in default may train on a GPU.
struct GpuModel {
  ModelSpec spec;    // by the name that configurations give it
  std::string yaml;  // its entry under `models:`, in flow style
};

// Two families, the key of each under `models:`.
struct GpuModelFamily {
  std::string key;
  std::vector<GpuModel> models;  // largest first
};

// Shapes of Llama and Qwen: the public ones of the model catalogue, and below them smaller ones of the same kind.
const std::vector<GpuModelFamily>& gpu_model_families();

}  // namespace tprimat::suite
