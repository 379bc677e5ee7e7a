#pragma once

#include <filesystem>

#include "model_files/safetensors_folder.h"
#include "text/json.h"

namespace tprimat::engine {

// The key of a checkpoint's state that holds the training's specification (train_spec_to_json).
constexpr const char* k_state_spec = "spec";

// Writes the weights of one checkpoint (the folder of a step) as a model in Hugging Face's format; whatever the layout
// of ranks, one whole weight is held at a time. Throws Error: the checkpoint is damaged, is of another model than its
// specification says, or no family of Hugging Face computes that model.
void export_checkpoint_to_hugging_face(const std::filesystem::path& checkpoint_folder, const SafetensorsOutput& output);

}  // namespace tprimat::engine
