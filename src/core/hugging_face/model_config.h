#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hugging_face/number_format.h"
#include "spec/model_spec.h"
#include "text/enum_names.h"
#include "text/json.h"

namespace tprimat {

// The model families of Hugging Face's transformers that a ModelSpec can be: the `model_type` of config.json. gpt_oss
// can be read, not written: a ModelSpec does not state all that it computes.
enum class HuggingFaceFamily {
  llama,
  qwen2,
  qwen3,
  mistral,
  gpt2,
  mixtral,
  qwen2_moe,
  qwen3_moe,
  deepseek_v2,
  deepseek_v3,
  gpt_oss
};

// The family that computes exactly what the model computes. Throws Error that says why where there is none.
HuggingFaceFamily find_hugging_face_family(const ModelSpec& model);

struct HuggingFaceModel {
  ModelSpec spec;  // named after its family; full_name is the folder's name
  std::vector<std::string>
      notes;  // settings of the config that training ignores: dropout; what the spec does not state
};

// Reads config.json as transformers 4 and 5 write it; a key that is absent has the family's default. Every key that
// changes the computation is either read or rejected by name. Throws Error that lists every problem.
HuggingFaceModel read_hugging_face_config(const std::filesystem::path& folder);
HuggingFaceModel parse_hugging_face_config(const Json& config, const std::string& where);

// The config.json of the model with weights in `format`; transformers 4 and 5 read it. Throws Error where no family
// fits.
Json make_hugging_face_config(const ModelSpec& model, NumberFormat format);

}  // namespace tprimat
