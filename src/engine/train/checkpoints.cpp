#include "train/checkpoints.h"

#include <fmt/format.h>

#include <filesystem>
#include <random>
#include <set>
#include <system_error>
#include <type_traits>

#include "base/error.h"
#include "hugging_face/model_config.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/checkpoint_reader.h"
#include "model_files/hugging_face.h"
#include "ops/elementwise.h"
#include "text/json_fields.h"

namespace tprimat::engine {
namespace {

// What must be the same for a training to go on: everything that decides its course but not how ranks share it.
struct Course {
  int64_t sequence_length = 0, global_batch_size = 0, seed = 0;
  std::string dataset;
  static constexpr auto fields() {
    using C = Course;
    return field_list(field("sequence_length", &C::sequence_length, "SL"),
                      field("global_batch_size", &C::global_batch_size, "GBS"), field("seed", &C::seed, "seed"),
                      field("dataset", &C::dataset, "token source"));
  }
};

Course course_of(const TrainSpec& spec) {
  return {spec.sequence_length, spec.global_batch_size, spec.seed, spec.data.dataset};
}

Json state_of(int64_t step, const TrainSpec& spec, const EngineProgress& progress) {
  return {{"step", step},
          {"samples", step * spec.global_batch_size},
          {"progress", to_json(progress)},
          {"course", to_json(course_of(spec))},
          {k_state_spec, train_spec_to_json(spec)}};
}

// Keys of two models that decide what is computed; names do not.
std::vector<Problem> model_differences(const Json& saved, const ModelSpec& model, const std::string& what,
                                       const std::string& where) {
  std::vector<Problem> problems;
  const Json wanted = to_json(model);
  std::set<std::string> keys;
  for (const Json* each : {&saved, &wanted})
    for (const auto& [key, value] : each->items()) keys.insert(key);
  for (const std::string& key : keys) {
    if (key == "name" || key == "full_name") continue;
    const Json theirs = saved.value(key, Json()), ours = wanted.value(key, Json());
    if (theirs != ours)
      problems.push_back({fmt::format("the {} has {} {}, this training has {}", what, key, print_json_line(theirs),
                                      print_json_line(ours)),
                          where, "train the same model, or choose another folder"});
  }
  return problems;
}

void require_same_course(const Json& state, const TrainSpec& spec, const std::string& folder) {
  const Json saved = state.value("course", Json::object()), wanted = to_json(course_of(spec));
  std::vector<Problem> problems;
  for (const auto& [key, value] : wanted.items())
    if (saved.value(key, Json()) != value)
      problems.push_back({fmt::format("the checkpoint was made with {} {}, this training has {}", key,
                                      print_json_line(saved.value(key, Json())), print_json_line(value)),
                          folder, "use the same value, or another checkpoint directory"});
  for (Problem& problem : model_differences(state.value(k_state_spec, Json::object()).value("model", Json::object()),
                                            spec.model, "checkpoint", folder))
    problems.push_back(std::move(problem));
  if (!problems.empty()) throw Error(std::move(problems));
}

// The element type of a span in a StatePiece.
template <class Span>
using SpanElement = typename std::decay_t<Span>::element_type;

}  // namespace

Checkpoints::Checkpoints(const TrainSpec& spec, Engine& engine, Note note)
    : spec_(spec), engine_(engine), note_(std::move(note)) {
  if (engine_.ranks().world->rank() == 0) run_ = static_cast<int64_t>(std::random_device()());
  engine_.ranks().world->broadcast(comm_buffer(&run_, 1), 0);
}

// A training that begins anew would leave its checkpoints among later ones of another.
void Checkpoints::refuse_used_directory() const {
  const std::string& directory = spec_.checkpoint.directory;
  if (directory.empty() || spec_.checkpoint.resume || list_step_folders(directory).empty()) return;
  std::error_code other;
  if (std::filesystem::equivalent(spec_.checkpoint.load.value_or(""), directory, other)) return;
  throw Error(Problem{"the directory holds checkpoints, but this training does not resume", directory,
                      "resume from them, remove them, or save into another directory"});
}

Checkpoints::Source Checkpoints::find_loaded() const {
  const CheckpointSpec& wanted = spec_.checkpoint;
  Source source{true, wanted.load_step.value_or(-1)};
  if (!wanted.load_step) {
    const FoundCheckpoint found = find_newest_checkpoint(*wanted.load);
    for (const std::string& each : found.notes) note_(each);
    if (!found.folder)
      throw Error(Problem{"holds no sound checkpoint", *wanted.load,
                          "give the folder that a training saved into: it has folders such as step_00001000"});
    source.step = found.step;
  }
  if (source.step < spec_.steps) return source;
  throw Error(
      Problem{fmt::format("the checkpoint is of step {}, and the training ends at step {}", source.step, spec_.steps),
              *wanted.load, fmt::format("train more than {} steps", source.step)});
}

// Its own directory comes first: there it was interrupted.
Checkpoints::Source Checkpoints::find_source() const {
  const CheckpointSpec& wanted = spec_.checkpoint;
  if (!wanted.directory.empty() && wanted.resume) {
    const FoundCheckpoint found = find_newest_checkpoint(wanted.directory);
    for (const std::string& each : found.notes) note_(each);
    if (found.folder) return {false, found.step};
  }
  return wanted.load ? find_loaded() : Source();
}

int64_t Checkpoints::restore() {
  refuse_used_directory();
  const CheckpointSpec& wanted = spec_.checkpoint;
  Communicator& world = *engine_.ranks().world;
  int64_t found[] = {0, -1};
  if (world.rank() == 0) {
    const Source source = find_source();
    found[0] = source.is_other ? 1 : 0, found[1] = source.step;
  }
  world.broadcast(comm_buffer(found, 2), 0);
  const int64_t step = found[1];
  if (step < 0) {
    if (!wanted.initial_weights.empty()) load_initial_weights();
    return 1;
  }
  const std::string& directory = found[0] == 1 ? *wanted.load : wanted.directory;
  load(step_folder(directory, step).string());
  last_step_ = found[0] == 1 ? 0 : step;  // what is exported lies in its own directory
  if (world.rank() == 0) note_(fmt::format("resumed after step {} from {}", step, directory));
  return step + 1;
}

void Checkpoints::load(const std::string& folder) {
  const CheckpointReader reader(folder);
  const Json state = reader.state();
  require_same_course(state, spec_, folder);
  engine_.visit_state([&](const StatePiece& piece) {
    std::visit([&](auto values) { reader.read(piece.kind, piece.parameter, piece.begin, values); }, piece.values);
  });
  engine_.adopt_state();
  engine_.restore_progress(from_json<EngineProgress>(state.value("progress", Json::object()), folder + ": progress"));
}

// Longest sequences may differ where positions are computed, not stored.
void Checkpoints::require_same_model(const std::string& folder) const {
  ModelSpec theirs = read_hugging_face_config(folder).spec;
  if (theirs.position == PositionKind::rope)
    theirs.max_position_embeddings = spec_.model.max_position_embeddings;
  else
    theirs.rope_theta = spec_.model.rope_theta;
  std::vector<Problem> problems = model_differences(to_json(theirs), spec_.model, "model", folder + "/config.json");
  if (!problems.empty()) throw Error(std::move(problems));
}

void Checkpoints::load_initial_weights() {
  const std::string& folder = spec_.checkpoint.initial_weights;
  require_same_model(folder);
  const HuggingFaceWeights weights(folder, spec_.model);
  std::string name;
  std::vector<float> whole;
  engine_.visit_state([&](const StatePiece& piece) {
    if (piece.kind != StateKind::weights) return;
    if (piece.parameter.name != name) {
      whole = weights.read_whole(name = piece.parameter.name);
      if (!all_finite(static_cast<int64_t>(whole.size()), whole.data()))
        throw Error(Problem{"the weight " + name + " holds a NaN or an infinite value", folder, ""});
    }
    std::visit(
        [&](auto values) {
          for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<SpanElement<decltype(values)>>(
                whole[static_cast<size_t>(piece.parameter.shard.whole_index(piece.begin + static_cast<int64_t>(i)))]);
        },
        piece.values);
  });
  engine_.adopt_state();
  if (engine_.ranks().world->rank() == 0)
    note_(fmt::format("initial weights from {}", spec_.checkpoint.initial_weights));
}

void Checkpoints::after_step(int64_t step) {
  const CheckpointSpec& wanted = spec_.checkpoint;
  if (wanted.directory.empty()) return;
  const bool due = wanted.save_interval > 0 && step % wanted.save_interval == 0;
  if (due || step == spec_.steps) save(step);
}

void Checkpoints::save(int64_t step) {
  wait();
  const Communicator& world = *engine_.ranks().world;
  CheckpointTarget target;
  target.directory = spec_.checkpoint.directory;
  target.step = step;
  target.rank = static_cast<uint32_t>(world.rank());
  target.ranks = static_cast<uint32_t>(world.size());
  target.run = static_cast<uint64_t>(run_);
  target.keep_last_n = spec_.checkpoint.keep_last_n;
  writer_ = std::make_unique<CheckpointWriter>(target);
  engine_.visit_state([&](const StatePiece& piece) {
    std::visit(
        [&](auto values) {
          const auto end = piece.begin + static_cast<int64_t>(values.size());
          writer_->add(piece.kind, piece.parameter, piece.begin, end, values.data());
        },
        piece.values);
  });
  writer_->start(state_of(step, spec_, engine_.progress()));
  last_step_ = step;
}

void Checkpoints::wait() {
  if (!writer_) return;
  for (const std::string& each : writer_->wait())
    if (engine_.ranks().world->rank() == 0) note_(each);
  writer_.reset();
}

void Checkpoints::finish() { wait(); }

}  // namespace tprimat::engine
