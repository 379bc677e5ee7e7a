#include "model_files/hugging_face.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/model_files/expect_error.h"
#include "unit/model_files/sample_models.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

using test::TemporaryFolder;

void write_sample(const SafetensorsOutput& output, const ModelSpec& model) {
  write_hugging_face(output, model, [&](const std::string& name) { return test::sample_weight(model, name); });
}

// The stored tensors of a sample model, for tests that write them otherwise.
std::vector<TensorShape> stored_tensors(const ModelSpec& model) {
  std::vector<TensorShape> tensors;
  for (const NamedShape& weight : whole_weights(model))
    for (const TensorPart& part : tensor_parts(model, find_hugging_face_family(model), weight))
      tensors.push_back({part.name, part.stored_shape()});
  return tensors;
}

std::vector<float> zeros(const TensorShape& tensor) { return std::vector<float>(static_cast<size_t>(tensor.count())); }

TEST(WholeWeights, CountsAsTheModelDoes) {
  for (ModelSpec model : test::tiny_models()) {
    for (const bool tied : {false, true}) {
      model.tied_embeddings = tied;
      int64_t count = 0;
      for (const NamedShape& shape : whole_weights(model)) count += shape.count();
      EXPECT_EQ(count, count_parameters(model).total()) << model.name;
    }
  }
}

TEST(HuggingFace, EveryFamilyComesBackWhole) {
  const TemporaryFolder folder;
  for (const ModelSpec& model : test::tiny_models()) {
    for (const int64_t max_bytes : {int64_t{1} << 40, int64_t{9000}}) {
      const std::string place = folder / (model.name + std::to_string(max_bytes));
      write_sample({place, NumberFormat::f32, max_bytes}, model);
      const ModelSpec read = read_hugging_face_config(place).spec;
      const HuggingFaceWeights weights(place, read);
      for (const NamedShape& shape : whole_weights(model))
        EXPECT_EQ(weights.read_whole(shape.name), test::sample_values(shape)) << model.name << " " << shape.name;
    }
  }
}

TEST(HuggingFace, StoresGpt2InputsFirstAndLlamaOutputsFirst) {
  const TemporaryFolder folder;
  const ModelSpec gpt2 = test::tiny_gpt2(), llama = test::tiny_llama();
  write_sample({folder / "gpt2"}, gpt2);
  write_sample({folder / "llama"}, llama);
  const SafetensorsFolder stored_gpt2(folder / "gpt2"), stored_llama(folder / "llama");
  EXPECT_EQ(stored_gpt2.find("transformer.h.1.mlp.c_fc.weight")->shape, (std::vector<int64_t>{24, 40}));
  EXPECT_EQ(stored_llama.find("model.layers.1.mlp.up_proj.weight")->shape, (std::vector<int64_t>{40, 24}));
  const auto up = test::sample_weight(gpt2, "layers.1.mlp.up.weight");
  EXPECT_EQ(stored_gpt2.read("transformer.h.1.mlp.c_fc.weight")[5 * 40 + 7], up[7 * 24 + 5]);
  const auto gate_up = test::sample_weight(llama, "layers.1.mlp.gate_up.weight");
  EXPECT_EQ(stored_llama.read("model.layers.1.mlp.up_proj.weight")[3], gate_up[40 * 24 + 3]);
  const auto qkv = test::sample_weight(llama, "layers.0.attention.qkv.weight");
  EXPECT_EQ(stored_llama.read("model.layers.0.self_attn.v_proj.weight")[0], qkv[(24 + 12) * 24]);
}

TEST(HuggingFace, ReadsNamesWithoutPrefixAndPassesOverConstants) {
  const TemporaryFolder folder;
  const ModelSpec model = test::tiny_gpt2();
  std::vector<TensorShape> tensors = stored_tensors(model);
  for (TensorShape& tensor : tensors) tensor.name = without_prefix(tensor.name);
  tensors.push_back({"h.0.attn.bias", {1, 1, 8, 8}});
  tensors.push_back({"h.1.attn.masked_bias", {}});
  write_safetensors_folder({folder / "m"}, tensors, zeros);
  const HuggingFaceWeights weights(folder / "m", model);
  EXPECT_EQ(weights.read_whole("layers.0.attention.qkv.bias").size(), 72u);
}

TEST(HuggingFace, RefusesANameWithAndWithoutPrefix) {
  const TemporaryFolder folder;
  const ModelSpec model = test::tiny_llama();
  std::vector<TensorShape> tensors = stored_tensors(model);
  tensors.push_back({"norm.weight", {24}});
  write_safetensors_folder({folder / "m"}, tensors, zeros);
  EXPECT_ERROR_WITH("'norm.weight' with and without", HuggingFaceWeights(folder / "m", model));
}

TEST(HuggingFace, ATiedHeadMayBeStoredAsLongAsItIsTheEmbedding) {
  const TemporaryFolder folder;
  const ModelSpec model = test::tiny_qwen2();
  std::vector<TensorShape> tensors = stored_tensors(model);
  tensors.push_back({"lm_head.weight", {31, 24}});
  const auto with_head = [&](float head) {
    return [head](const TensorShape& tensor) {
      std::vector<float> values = zeros(tensor);
      if (tensor.name == "lm_head.weight") values[100] = head;
      return values;
    };
  };
  write_safetensors_folder({folder / "same"}, tensors, with_head(0.0f));
  EXPECT_EQ(HuggingFaceWeights(folder / "same", model).read_whole("embedding.weight").size(), 31u * 24);
  write_safetensors_folder({folder / "other"}, tensors, with_head(1.0f));
  EXPECT_ERROR_WITH("differs from the embedding", HuggingFaceWeights(folder / "other", model));
}

TEST(HuggingFace, NamesAllThatDoesNotFit) {
  const TemporaryFolder folder;
  const ModelSpec model = test::tiny_llama();
  std::vector<TensorShape> tensors = stored_tensors(model);
  std::erase_if(tensors, [](const TensorShape& t) { return t.name == "model.norm.weight"; });
  tensors.push_back({"model.layers.7.mlp.up_proj.weight", {2}});
  for (TensorShape& tensor : tensors)
    if (tensor.name == "lm_head.weight") tensor.shape = {24, 31};
  write_safetensors_folder({folder / "m"}, tensors, zeros);
  EXPECT_ERROR_WITH("no tensor 'model.norm.weight'", HuggingFaceWeights(folder / "m", model));
  EXPECT_ERROR_WITH("'model.layers.7.mlp.up_proj.weight' matches no weight", HuggingFaceWeights(folder / "m", model));
  EXPECT_ERROR_WITH("'lm_head.weight' has the shape [24, 31], but the model needs [31, 24]",
                    HuggingFaceWeights(folder / "m", model));
}

TEST(HuggingFace, AModelOfAnotherFamilyIsSaidShortly) {
  const TemporaryFolder folder;
  write_sample({folder / "m"}, test::tiny_gpt2());
  try {
    HuggingFaceWeights(folder / "m", test::tiny_llama());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems().size(), 21u);
    EXPECT_NE(error.problems().back().what.find("more tensors"), std::string::npos);
  }
}

}  // namespace
}  // namespace tprimat::engine
