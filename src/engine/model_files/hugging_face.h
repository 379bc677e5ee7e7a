#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model_files/hugging_face_tensors.h"
#include "model_files/safetensors.h"
#include "model_files/whole_weights.h"
#include "text/json.h"

namespace tprimat::engine {

// The weights of a Hugging Face folder under our names (whole_weights.h). Our weights join theirs by rows: q, k and v;
// gate and up. GPT-2's are transposed. Names may lack "model." or "transformer.".
class HuggingFaceWeights {
 public:
  // Throws Error that names all tensors that are missing, unexpected or of another shape than the model's. A tied head
  // may be stored or not, but must not differ from the embedding.
  HuggingFaceWeights(const std::filesystem::path& folder, const ModelSpec& model);

  // The values of one weight, row by row: rows·cols. Throws Error for a name that the model does not have.
  std::vector<float> read_whole(const std::string& our_name) const;

 private:
  struct JoinedWeight {
    NamedShape shape;
    std::vector<TensorPart> parts;  // with the names of the files
  };
  void find_stored_names();
  void match_parts(JoinedWeight& weight, std::vector<Problem>& problems);
  void check_tied_head(std::vector<Problem>& problems);
  void check_unexpected(std::vector<Problem>& problems) const;

  SafetensorsFolder files_;
  std::map<std::string, std::string> unmatched_;  // name without prefix: name in the file; of tensors not yet asked for
  std::map<std::string, JoinedWeight> weights_;
};

using WholeWeightSource = std::function<std::vector<float>(const std::string& our_name)>;

// Writes config.json and the safetensors files of a model: see write_safetensors_folder. `weights` is asked for one
// weight after the other, in the order of whole_weights. Throws Error, also where no family fits the model.
void write_hugging_face(const SafetensorsOutput& output, const ModelSpec& model, const WholeWeightSource& weights);

// The key of a checkpoint's state that holds the training's specification (train_spec_to_json).
constexpr const char* k_state_spec = "spec";

// Writes the weights of one checkpoint (the folder of a step) as a model in Hugging Face's format; whatever the layout
// of ranks, one whole weight is held at a time. Throws Error: the checkpoint is damaged, is of another model than its
// specification says, or no family of Hugging Face computes that model.
void export_checkpoint_to_hugging_face(const std::filesystem::path& checkpoint_folder, const SafetensorsOutput& output);

}  // namespace tprimat::engine
