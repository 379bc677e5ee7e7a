// Trains a model that transformers wrote, for a comparison by another program.
//   dump_family SPEC OUT      SPEC: a training specification with checkpoint.initial_weights
// OUT/samples.i32: the step's token sequences, SL + 1 each; OUT/logits.f64: of the first micro batch before training;
// OUT/gradients.f32: of the first step's mean loss, in the order of whole_weights; OUT/steps.json: loss and gradient
// norm.
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "model_files/whole_weights.h"
#include "text/json.h"
#include "train/checkpoints.h"
#include "train/engine.h"

namespace tprimat {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string read_samples(const TrainSpec& spec, const engine::TokenSource& source) {
  std::string bytes;
  std::vector<int32_t> sample(static_cast<size_t>(spec.sequence_length) + 1);
  for (int64_t i = 0; i < spec.steps * spec.global_batch_size; ++i) {
    source.read_sample(i, sample);
    bytes += bytes_of(sample);
  }
  return bytes;
}

std::string gradients_of(const TrainSpec& spec, engine::Engine& engine) {
  std::map<std::string, std::string> gradients;
  engine.visit_gradients([&](const engine::StatePiece& piece) {
    const auto& values = std::get<std::span<float>>(piece.values);
    gradients[piece.parameter.name] += bytes_of(std::vector<float>(values.begin(), values.end()));
  });
  std::string bytes;
  for (const engine::NamedShape& shape : engine::whole_weights(spec.model)) bytes += gradients.at(shape.name);
  return bytes;
}

void dump(const TrainSpec& spec, const std::filesystem::path& out) {
  const auto engine = engine::make_engine(spec);
  engine::Checkpoints(spec, *engine, [](const std::string&) {}).restore();
  const auto source = engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  write_file_atomically(out / "samples.i32", read_samples(spec, *source));
  write_file_atomically(out / "logits.f64", bytes_of(engine->logits(0, *source)));
  Json steps = Json::array();
  for (int64_t step = 1; step <= spec.steps; ++step) {
    const engine::UpdateReport report = engine->run_step(step, *source);
    steps.push_back({{"loss", report.loss}, {"grad_norm", report.grad_norm}, {"learning_rate", report.learning_rate}});
    if (step == 1) write_file_atomically(out / "gradients.f32", gradients_of(spec, *engine));
  }
  write_file_atomically(out / "steps.json", print_json(steps));
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: dump_family SPEC OUT\n"), 2;
  try {
    tprimat::dump(tprimat::train_spec_from_json(tprimat::parse_json(tprimat::read_file(argv[1]), argv[1]), argv[1]),
                  argv[2]);
  } catch (const tprimat::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), static_cast<int>(error.status());
  }
}
