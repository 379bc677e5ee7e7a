// Trains as a specification says and writes down all that another implementation needs to repeat it.
//   dump_training SPEC.json FOLDER [double]     double: the reference engine instead of the specification's precision
//
// FOLDER/training.json  the specification, the weights' names and shapes in order, each step's loss, norm and rate
// FOLDER/initial.f64    all weights before step 1, one after the other, row by row; final.f64: after the last step
// FOLDER/tokens.i32     the samples in the order in which the engine read them, SL+1 tokens each
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "text/json.h"
#include "train/engine.h"

namespace tprimat {
namespace {

using std::filesystem::path;

template <class T>
void append_bytes(std::string& bytes, std::span<const T> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Hands samples on and keeps a copy of each.
class RecordedTokens final : public engine::TokenSource {
 public:
  explicit RecordedTokens(const engine::TokenSource& source) : source_(source) {}
  void read_sample(int64_t index, std::span<int32_t> tokens) const override {
    source_.read_sample(index, tokens);
    append_bytes(record_, std::span<const int32_t>(tokens));
  }
  const std::string& record() const { return record_; }

 private:
  const engine::TokenSource& source_;
  mutable std::string record_;
};

std::string weight_bytes(engine::Engine& engine) {
  std::string bytes;
  engine.visit_state([&](const engine::StatePiece& piece) {
    if (piece.kind != engine::StateKind::weights) return;
    std::visit(
        [&](const auto& values) {
          const std::vector<double> wide(values.begin(), values.end());
          append_bytes(bytes, std::span<const double>(wide));
        },
        piece.values);
  });
  return bytes;
}

Json describe_weights(engine::Engine& engine) {
  Json weights = Json::array();
  engine.visit_state([&](const engine::StatePiece& piece) {
    const engine::Parameter& p = piece.parameter;
    if (piece.kind == engine::StateKind::weights)
      weights.push_back(
          {{"name", p.name}, {"rows", p.shard.row_count()}, {"cols", p.shard.cols}, {"decays", p.decays}});
  });
  return weights;
}

Json train(const TrainSpec& spec, engine::Engine& engine, const engine::TokenSource& tokens) {
  Json steps = Json::array();
  for (int64_t step = 1; step <= spec.steps; ++step) {
    const engine::UpdateReport report = engine.run_step(step, tokens);
    steps.push_back({{"loss", report.loss}, {"grad_norm", report.grad_norm}, {"learning_rate", report.learning_rate}});
  }
  return steps;
}

void dump(const TrainSpec& spec, engine::Engine& engine, const path& folder) {
  const auto source = engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  const RecordedTokens tokens(*source);
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "initial.f64", weight_bytes(engine));
  const Json record{{"spec", train_spec_to_json(spec)},
                    {"weights", describe_weights(engine)},
                    {"steps", train(spec, engine, tokens)}};
  write_file_atomically(folder / "final.f64", weight_bytes(engine));
  write_file_atomically(folder / "tokens.i32", tokens.record());
  write_file_atomically(folder / "training.json", print_json(record));
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  using namespace tprimat;
  const bool reference = argc == 4 && std::string_view(argv[3]) == "double";
  if (argc != 3 && !reference) return fmt::print(stderr, "usage: dump_training SPEC.json FOLDER [double]\n"), 2;
  try {
    const TrainSpec spec = train_spec_from_json(parse_json(read_file(argv[1]), argv[1]), argv[1]);
    dump(spec, *(reference ? engine::make_reference_engine(spec) : engine::make_engine(spec)), argv[2]);
    return 0;
  } catch (const Error& error) {
    return fmt::print(stderr, "{}\n", error.what()), 1;
  }
}
