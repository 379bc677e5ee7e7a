#include "model_files/export_checkpoint.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model_files/checkpoint_reader.h"
#include "model_files/hugging_face.h"
#include "spec/train_spec.h"

namespace tprimat::engine {
namespace {

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
