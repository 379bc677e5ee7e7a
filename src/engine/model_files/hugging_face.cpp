#include "model_files/hugging_face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "model_files/checkpoint_reader.h"
#include "spec/train_spec.h"
#include "text/format.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;

constexpr size_t k_max_problems = 20;

// Keeps the first of many: a model of another shape has as many problems as tensors.
void shorten(std::vector<Problem>& problems) {
  if (problems.size() <= k_max_problems) return;
  const size_t more = problems.size() - k_max_problems;
  problems.resize(k_max_problems);
  problems.push_back({fmt::format("{} more tensors do not fit", more), problems.front().where, ""});
}

ModelSpec model_of(const CheckpointReader& checkpoint, const std::string& where) {
  const Json state = checkpoint.state();
  if (!state.is_object() || !state.contains(k_state_spec))
    throw Error(Problem{"does not name its model", where, "give a checkpoint of the native trainer"});
  const ModelSpec model = train_spec_from_json(state.at(k_state_spec), where + ": " + k_state_spec).model;
  if (const std::vector<Problem> problems = check_model(model, where); !problems.empty()) throw Error(problems);
  return model;
}

void check_shapes(const CheckpointReader& checkpoint, const ModelSpec& model, const std::string& where) {
  const std::vector<NamedShape> stored = checkpoint.weights(StateKind::weights);
  for (const NamedShape& wanted : whole_weights(model))
    if (std::find(stored.begin(), stored.end(), wanted) == stored.end())
      throw Error(Problem{
          fmt::format("holds no weight {} of {}x{}, which its model needs", wanted.name, wanted.rows, wanted.cols),
          where, ""});
}

}  // namespace

HuggingFaceWeights::HuggingFaceWeights(const fs::path& folder, const ModelSpec& model) : files_(folder) {
  find_stored_names();
  const HuggingFaceFamily family = find_hugging_face_family(model);
  std::vector<Problem> problems;
  for (const NamedShape& shape : whole_weights(model)) {
    JoinedWeight weight{shape, tensor_parts(model, family, shape)};
    match_parts(weight, problems);
    weights_.emplace(shape.name, std::move(weight));
  }
  if (model.tied_embeddings && problems.empty()) check_tied_head(problems);
  check_unexpected(problems);
  shorten(problems);
  if (!problems.empty()) throw Error(problems);
}

void HuggingFaceWeights::find_stored_names() {
  for (const std::string& name : files_.names()) {
    const std::string_view bare = without_prefix(name);
    if (is_stored_constant(bare)) continue;
    if (!unmatched_.emplace(bare, name).second)
      throw Error(Problem{fmt::format("holds tensor '{}' with and without its prefix", printable(bare)), files_.path(),
                          "keep one of the two"});
  }
}

void HuggingFaceWeights::match_parts(JoinedWeight& weight, std::vector<Problem>& problems) {
  for (TensorPart& part : weight.parts) {
    const auto found = unmatched_.find(std::string(without_prefix(part.name)));
    if (found == unmatched_.end()) {
      problems.push_back({fmt::format("holds no tensor '{}'", part.name), files_.path(),
                          "check that config.json and the weights belong to one model"});
      continue;
    }
    part.name = found->second;
    unmatched_.erase(found);
    const std::vector<int64_t>& shape = files_.find(part.name)->shape;
    if (shape != part.stored_shape())
      problems.push_back({fmt::format("tensor '{}' has the shape [{}], but the model needs [{}]", part.name,
                                      fmt::join(shape, ", "), fmt::join(part.stored_shape(), ", ")),
                          files_.file_of(part.name), ""});
  }
}

void HuggingFaceWeights::check_tied_head(std::vector<Problem>& problems) {
  const auto head = unmatched_.find("lm_head.weight");
  if (head == unmatched_.end()) return;
  const std::string name = head->second;
  unmatched_.erase(head);
  const std::vector<float> stored = files_.read(name), embedding = read_whole("embedding.weight");
  if (stored.size() != embedding.size() ||
      std::memcmp(stored.data(), embedding.data(), stored.size() * sizeof(float)) != 0)
    problems.push_back({fmt::format("tensor '{}' differs from the embedding, but the model ties the two", name),
                        files_.file_of(name), "set tie_word_embeddings to false to train them apart"});
}

void HuggingFaceWeights::check_unexpected(std::vector<Problem>& problems) const {
  for (const auto& [bare, name] : unmatched_)
    problems.push_back({fmt::format("tensor '{}' matches no weight of the model", printable(name)),
                        files_.file_of(name), "check that config.json and the weights belong to one model"});
}

std::vector<float> HuggingFaceWeights::read_whole(const std::string& our_name) const {
  const auto found = weights_.find(our_name);
  if (found == weights_.end())
    throw Error(Problem{fmt::format("the model has no weight '{}'", our_name), files_.path(), ""});
  const JoinedWeight& weight = found->second;
  const TensorPart& first = weight.parts.front();
  if (weight.parts.size() == 1 && !first.transposed) return files_.read(first.name);
  std::vector<float> values(static_cast<size_t>(weight.shape.count()));
  size_t at = 0;
  for (const TensorPart& part : weight.parts) {
    const std::vector<float> stored = files_.read(part.name);
    const auto target = std::span(values).subspan(at, stored.size());
    if (part.transposed)
      transpose_matrix(stored, part.cols, part.rows, target);
    else
      std::copy(stored.begin(), stored.end(), target.begin());
    at += stored.size();
  }
  return values;
}

void export_checkpoint_to_hugging_face(const std::filesystem::path& checkpoint_folder,
                                       const SafetensorsOutput& output) {
  const CheckpointReader checkpoint(checkpoint_folder);
  const std::string where = checkpoint_folder.string();
  const ModelSpec model = model_of(checkpoint, where);
  find_hugging_face_family(model);  // before whole_weights, which takes dense models alone
  check_shapes(checkpoint, model, where);
  write_hugging_face(output, model,
                     [&](const std::string& name) { return checkpoint.read_whole(StateKind::weights, name); });
}

}  // namespace tprimat::engine
