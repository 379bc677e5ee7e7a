#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "model_files/checkpoint_folder.h"
#include "model_files/checkpoint_reader.h"
#include "model_files/hugging_face.h"
#include "spec/train_spec.h"
#include "unit/model_files/expect_error.h"
#include "unit/model_files/sample_checkpoint.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

using test::Layout;
using test::TemporaryFolder;

// Heads, widths and vocabulary that four ranks can share.
ModelSpec divisible_model() {
  ModelSpec model = test::tiny_llama();
  model.num_layers = 1;
  model.num_key_value_heads = 4;
  model.vocab_size = 32;
  return model;
}

void expect_layout(const CheckpointReader& checkpoint, const ModelSpec& model, const Layout& layout) {
  for (const NamedShape& whole : whole_weights(model))
    for (const StateKind kind : test::k_all_kinds)
      for (int64_t rank = 0; rank < layout.tensor; ++rank) {
        const Parameter parameter = test::tensor_part(model, whole, rank, layout.tensor);
        const std::vector<float> wanted = test::part_of(test::state_values(whole, kind), parameter);
        EXPECT_EQ(checkpoint.read<float>(kind, parameter), wanted) << whole.name;
        const int64_t share = parameter.count() / layout.data;
        std::vector<float> last(static_cast<size_t>(share));
        checkpoint.read<float>(kind, parameter, parameter.count() - share, last);
        EXPECT_TRUE(std::equal(last.begin(), last.end(), wanted.end() - share)) << whole.name;
      }
}

TEST(Checkpoint, AnyLayoutReadsWhatAnyOtherWrote) {
  const TemporaryFolder folder;
  const ModelSpec model = divisible_model();
  const Layout layouts[] = {{1, 1}, {2, 1}, {4, 1}, {1, 3}, {2, 2}, {4, 2}};
  int64_t step = 0;
  for (const Layout& writing : layouts) {
    ++step;
    test::write_sample_checkpoint({folder.path(), step}, model, writing, Json{{"step", step}});
    const CheckpointReader checkpoint(step_folder(folder.path(), step));
    EXPECT_EQ(checkpoint.step(), step);
    EXPECT_EQ(checkpoint.state().at("step"), step);
    EXPECT_TRUE(checkpoint.verify().empty());
    for (const Layout& reading : layouts) expect_layout(checkpoint, model, reading);
  }
}

TEST(Checkpoint, LearnedPositionsAndBiasesToo) {
  const TemporaryFolder folder;
  ModelSpec model = test::tiny_gpt2();
  model.vocab_size = 32;
  test::write_sample_checkpoint({folder.path(), 7}, model, {4, 1}, Json::object());
  const CheckpointReader checkpoint(step_folder(folder.path(), 7));
  expect_layout(checkpoint, model, {2, 2});
  for (const NamedShape& whole : whole_weights(model))
    EXPECT_EQ(checkpoint.read_whole(StateKind::weights, whole.name), test::sample_values(whole));
  EXPECT_EQ(checkpoint.weights(StateKind::second_moment).size(), whole_weights(model).size());
}

TEST(Checkpoint, KeepsEveryBitOfFloatsAndDoubles) {
  const TemporaryFolder folder;
  const std::vector<float> floats = {-0.0f, std::bit_cast<float>(0x7fa00001u), 1e-45f, INFINITY, 0.1f};
  const std::vector<double> doubles = {-0.0, std::bit_cast<double>(0x7ff4000000000001u), 5e-324, 0.1, 1e300};
  const Parameter parameter = test::small_parameter();
  CheckpointWriter writer({folder.path(), 1});
  writer.add(StateKind::weights, parameter, 0, 5, floats.data());
  writer.add(StateKind::first_moment, parameter, 0, 5, doubles.data());
  writer.start(Json{{"learning_rate", 0.1}, {"seed", 18446744073709551615u}});
  writer.wait();
  const CheckpointReader checkpoint(step_folder(folder.path(), 1));
  const auto read_floats = checkpoint.read<float>(StateKind::weights, parameter);
  const auto read_doubles = checkpoint.read<double>(StateKind::first_moment, parameter);
  EXPECT_EQ(std::memcmp(read_floats.data(), floats.data(), sizeof(float) * 5), 0);
  EXPECT_EQ(std::memcmp(read_doubles.data(), doubles.data(), sizeof(double) * 5), 0);
  EXPECT_EQ(checkpoint.read<double>(StateKind::weights, parameter)[4], static_cast<double>(0.1f));
  EXPECT_EQ(checkpoint.read<float>(StateKind::first_moment, parameter)[3], 0.1f);
  EXPECT_EQ(checkpoint.state().at("learning_rate"), 0.1);
  EXPECT_EQ(checkpoint.state().at("seed"), 18446744073709551615u);
}

TEST(Checkpoint, TakesCopiesSoThatTrainingGoesOn) {
  const TemporaryFolder folder;
  CheckpointWriter writer({folder.path(), 1});
  std::vector<float> values(5, 1.0f);
  writer.add(StateKind::weights, test::small_parameter(), 0, 5, values.data());
  std::fill(values.begin(), values.end(), 2.0f);
  writer.start(Json::object());
  writer.wait();
  const CheckpointReader checkpoint(step_folder(folder.path(), 1));
  EXPECT_EQ(checkpoint.read<float>(StateKind::weights, test::small_parameter())[0], 1.0f);
}

TEST(Checkpoint, SaysWhatIsNotThere) {
  const TemporaryFolder folder;
  Parameter half = test::small_parameter(), whole = half, other = half, unknown = half;
  half.shard.rows = {{0, 3}};
  other.shard = Shard::whole(6, 1);
  unknown.name = "head.weight";
  const std::vector<float> values(5, 1.0f);
  CheckpointWriter writer({folder.path(), 1});
  writer.add(StateKind::weights, half, 0, 3, values.data());
  writer.add(StateKind::weights, half, 2, 2, values.data());
  writer.start(Json::object());
  writer.wait();
  const CheckpointReader checkpoint(step_folder(folder.path(), 1));
  EXPECT_EQ(checkpoint.read<float>(StateKind::weights, half).size(), 3u);
  EXPECT_ERROR_WITH("row 3, column 0", checkpoint.read<float>(StateKind::weights, whole));
  EXPECT_ERROR_WITH("5x1 in the checkpoint and 6x1", checkpoint.read<float>(StateKind::weights, other));
  EXPECT_ERROR_WITH("holds no weights of head.weight", checkpoint.read<float>(StateKind::weights, unknown));
  EXPECT_ERROR_WITH("holds no first_moment", checkpoint.read<float>(StateKind::first_moment, whole));
  EXPECT_ERROR_WITH("3 values are stored", checkpoint.read_whole(StateKind::weights, whole.name));
}

TEST(Checkpoint, BecomesAModelOfHuggingFace) {
  const TemporaryFolder folder;
  TrainSpec spec;
  spec.model = divisible_model();
  test::write_sample_checkpoint({folder / "run", 3}, spec.model, {4, 2},
                                Json{{k_state_spec, train_spec_to_json(spec)}});
  export_checkpoint_to_hugging_face(step_folder(folder / "run", 3), {folder / "model", NumberFormat::f32, 5000});
  const HuggingFaceWeights weights(folder / "model", read_hugging_face_config(folder / "model").spec);
  for (const NamedShape& shape : whole_weights(spec.model))
    EXPECT_EQ(weights.read_whole(shape.name), test::sample_values(shape)) << shape.name;
}

TEST(Checkpoint, ExportRefusesAStateThatDoesNotFit) {
  const TemporaryFolder folder;
  const auto exported = [&](const Json& state) {
    test::write_sample_checkpoint({folder.path(), 3}, divisible_model(), {1, 1}, state);
    export_checkpoint_to_hugging_face(step_folder(folder.path(), 3), {folder / "model"});
  };
  EXPECT_ERROR_WITH("does not name its model", exported(Json::object()));
  TrainSpec spec;
  spec.model = test::tiny_llama();
  EXPECT_ERROR_WITH("holds no weight", exported(Json{{k_state_spec, train_spec_to_json(spec)}}));
}

}  // namespace
}  // namespace tprimat::engine
