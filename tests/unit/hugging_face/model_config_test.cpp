#include "hugging_face/model_config.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "unit/model_files/expect_error.h"
#include "unit/model_files/sample_models.h"
#include "unit/temporary_folder.h"

namespace tprimat {
namespace {

const Json k_llama =
    parse_json(R"({"model_type": "llama", "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-05})",
               "");

const Json k_nothing = Json::object();

HuggingFaceModel parse(const Json& changes, Json config = k_llama) {
  config.update(changes);
  return parse_hugging_face_config(config, "config.json");
}

TEST(HuggingFaceConfig, EveryFamilyComesBack) {
  for (ModelSpec model : test::tiny_models()) {
    const HuggingFaceModel back = parse_hugging_face_config(make_hugging_face_config(model, NumberFormat::bf16), "x");
    model.full_name = model.name;
    EXPECT_EQ(back.spec, model) << model.name;
    EXPECT_TRUE(back.notes.empty());
  }
}

TEST(HuggingFaceConfig, SwitchesWithinAFamilyComeBack) {
  const auto comes_back = [](ModelSpec model, const std::string& family) {
    const HuggingFaceModel back = parse_hugging_face_config(make_hugging_face_config(model, NumberFormat::f32), "x");
    EXPECT_EQ(enum_name(find_hugging_face_family(model)), family);
    model.name = model.full_name = family;
    EXPECT_EQ(back.spec, model) << family;
  };
  ModelSpec biased = test::tiny_llama();
  biased.linear_bias = true;
  comes_back(biased, "llama");
  ModelSpec windowed = test::tiny_qwen2();
  windowed.sliding_window = 9;
  comes_back(windowed, "qwen2");
  windowed = test::tiny_qwen3();
  windowed.sliding_window = 9;
  comes_back(windowed, "qwen3");
  ModelSpec odd = test::tiny_llama();
  odd.num_attention_heads = 5;
  odd.num_key_value_heads = 5;
  comes_back(odd, "mistral");
  ModelSpec untied = test::tiny_gpt2();
  untied.tied_embeddings = false;
  comes_back(untied, "gpt2");
  for (const RopeScalingKind kind : {RopeScalingKind::linear, RopeScalingKind::llama3, RopeScalingKind::yarn}) {
    ModelSpec stretched = test::tiny_llama();
    stretched.rope_scaling = RopeScaling{.type = kind};
    if (kind == RopeScalingKind::yarn) stretched.rope_scaling->beta_fast = 16;
    comes_back(stretched, "llama");
  }
}

TEST(HuggingFaceConfig, RefusesShapesOfNoFamily) {
  const auto refusal = [](ModelSpec model, auto change) {
    change(model);
    return test::error_of([&] { find_hugging_face_family(model); });
  };
  const ModelSpec llama = test::tiny_llama(), gpt2 = test::tiny_gpt2();
  EXPECT_NE(refusal(llama, [](ModelSpec& m) { m.qk_norm = m.qkv_bias = true; }).find("qk_norm together"),
            std::string::npos);
  EXPECT_NE(refusal(llama, [](ModelSpec& m) { m.norm = NormKind::layer; }).find("norm layer"), std::string::npos);
  EXPECT_NE(refusal(gpt2, [](ModelSpec& m) { m.num_key_value_heads = 2; }).find("2 key/value"), std::string::npos);
  EXPECT_NE(refusal(gpt2, [](ModelSpec& m) { m.linear_bias = false; }).find("linear_bias false"), std::string::npos);
  EXPECT_NE(refusal(llama, [](ModelSpec& m) { m.latent_attention = LatentAttention{}; }).find("latent_attention"),
            std::string::npos);
}

TEST(HuggingFaceConfig, ReadsBothSpellingsOfRotaryScaling) {
  const Json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 8192}};
  Json with_theta = llama3;
  with_theta["rope_theta"] = 500000.0;
  const ModelSpec four = parse({{"rope_theta", 500000.0}, {"rope_scaling", llama3}}).spec;
  const ModelSpec five = parse({{"rope_parameters", with_theta}}).spec;
  EXPECT_EQ(four, five);
  EXPECT_EQ(four.rope_scaling, RopeScaling{});
  EXPECT_EQ(four.rope_theta, 500000.0);
  EXPECT_EQ(parse({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}).spec.rope_scaling->type,
            RopeScalingKind::linear);
  EXPECT_FALSE(parse({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 7.0}}}}).spec.rope_scaling);
  const ModelSpec yarn = parse({{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}}).spec;
  EXPECT_EQ(yarn.rope_scaling->original_max_position_embeddings, 2048);  // of the file, here Llama's default
}

const std::pair<const char*, const char*> k_not_computed[] = {
    {R"({"model_type": "gemma2"})", "'gemma2'"},
    {R"({"hidden_act": "gelu"})", "hidden_act is \"gelu\""},
    {R"({"attention_bias": true})", "attention_bias is true and mlp_bias is false"},
    {R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})", "'dynamic'"},
    {R"({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "mscale": 0.7}})", "mscale"},
    {R"({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "truncate": false}})", "truncate"},
    {R"({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "attention_factor": 1.5}})", "attention_factor"},
    {R"({"rope_scaling": {"rope_type": "linear"}})", "no factor"},
    {R"({"rope_scaling": {"rope_type": "llama3", "factor": 2.0}})", "no low_freq_factor"},
    {R"({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default"}})", "agree"},
    {R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})", "one object for all layers"},
    {R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor is 0.5"},
    {R"({"quantization_config": {"bits": 4}})", "quantization_config"},
    {R"({"hidden_size": null})", "has no hidden_size"},
    {R"({"hidden_size": -4})", "hidden_size must be a size"},
    {R"({"hidden_size": 66})", "not a multiple"},
    {R"({"num_key_value_heads": 3})", "not a multiple"},
    {R"({"rms_norm_eps": "small"})", "rms_norm_eps must be a number"},
    {R"({"tie_word_embeddings": 1})", "tie_word_embeddings must be true or false"},
    {R"({"model_type": "qwen3", "attention_bias": true})", "attention_bias is true"},
    {R"({"model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 1})", "max_window_layers is 1"},
    {R"({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]})", "layer_types"},
    {R"({"model_type": "qwen2", "layer_types": ["full_attention"]})", "layer_types"},
    {R"({"model_type": "gpt2", "activation_function": "gelu"})", "activation_function is \"gelu\""},
    {R"({"model_type": "gpt2", "scale_attn_weights": false})", "scale_attn_weights is false"},
    {R"({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true})", "scale_attn_by_inverse_layer_idx"},
    {R"({"model_type": "gpt2", "add_cross_attention": true})", "add_cross_attention"},
    {R"({"model_type": "gpt2", "n_head": 5})", "768 is not a multiple of 5"}};

TEST(HuggingFaceConfig, RefusesWhatIsNotComputedByItsName) {
  for (const auto& [changes, words] : k_not_computed) {
    const std::string said = test::error_of([&, text = changes] { parse(parse_json(text, "")); });
    EXPECT_NE(said.find(words), std::string::npos) << changes << "\nsays: " << said;
  }
}

TEST(HuggingFaceConfig, KnowsWhatSilenceMeans) {
  EXPECT_EQ(parse(k_nothing).spec.max_position_embeddings, 2048);
  EXPECT_EQ(parse(k_nothing).spec.head_dim, 16);
  EXPECT_FALSE(parse(k_nothing).spec.tied_embeddings);
  EXPECT_EQ(parse({{"model_type", "mistral"}}).spec.sliding_window, 4096);
  EXPECT_FALSE(parse({{"model_type", "mistral"}, {"sliding_window", nullptr}}).spec.sliding_window);
  EXPECT_FALSE(parse({{"model_type", "qwen2"}, {"sliding_window", 4096}}).spec.sliding_window);
  EXPECT_FALSE(parse({{"model_type", "qwen2"}, {"use_sliding_window", true}}).spec.sliding_window);  // from layer 28
  EXPECT_EQ(
      parse({{"model_type", "qwen2"}, {"use_sliding_window", true}, {"max_window_layers", 0}}).spec.sliding_window,
      4096);
  EXPECT_EQ(parse({{"model_type", "qwen3"}}).spec.head_dim, 128);
  EXPECT_EQ(parse({{"num_key_value_heads", nullptr}}).spec.num_key_value_heads, 4);
  const ModelSpec gpt2 = parse(k_nothing, {{"model_type", "gpt2"}}).spec;
  EXPECT_EQ(count_parameters(gpt2).total(), 124439808);  // GPT-2 124M
  EXPECT_TRUE(gpt2.tied_embeddings);
}

TEST(HuggingFaceConfig, SaysThatThereIsNoDropout) {
  const HuggingFaceModel model = parse({{"attn_pdrop", 0.1}, {"embd_pdrop", 0.0}}, {{"model_type", "gpt2"}});
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_EQ(model.notes[0], "attn_pdrop is 0.1; training is without dropout");
}

TEST(HuggingFaceConfig, ReadsTheFileOfAFolder) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "my-model/config.json", print_json(k_llama));
  EXPECT_EQ(read_hugging_face_config(folder / "my-model").spec.full_name, "my-model");
  write_file_atomically(folder / "my-model/config.json", R"({"model_type": "llama", "model_type": "gpt2"})");
  EXPECT_ERROR_WITH("'model_type' twice", read_hugging_face_config(folder / "my-model"));
  EXPECT_ERROR_WITH("config.json", read_hugging_face_config(folder / "none"));
}

}  // namespace
}  // namespace tprimat
