#include "spec/model_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "example_data.h"
#include "unit/spec/published_tables.h"

namespace tprimat {
namespace {

int64_t parameters_of(std::string_view name) {
  const auto model = find_model(name);
  return model ? count_parameters(*model).total() : -1;
}

TEST(ModelCatalogue, EveryShapeIsSoundAndCountsExactly) {
  ASSERT_GE(model_catalogue().size(), 18u);
  for (const KnownModel& known : model_catalogue()) {
    EXPECT_TRUE(check_model(known.spec, "").empty()) << known.spec.name;
    const ParameterCount count = count_parameters(known.spec);
    EXPECT_EQ(count.total() - count.prediction, known.published_parameters) << known.spec.name;
    EXPECT_FALSE(known.source.empty()) << known.spec.name;
  }
}

TEST(ModelCatalogue, PublishedCountsAreMetToTheUnit) {
  EXPECT_EQ(parameters_of("Llama 3.1 8B"), 8030261248);
  EXPECT_EQ(parameters_of("Llama 2 7B"), 6738415616);
  EXPECT_EQ(parameters_of("Qwen 2.5 7B"), 7615616512);
  EXPECT_EQ(parameters_of("Qwen3 8B"), 8190735360);
  EXPECT_EQ(parameters_of("Mistral 7B v0.1"), 7241732096);
  EXPECT_EQ(parameters_of("Mixtral 8x7B"), 46702792704);
  EXPECT_EQ(parameters_of("GPT-2 124M"), 124439808);
}

TEST(FindModel, AcceptsUsualSpellings) {
  const std::pair<const char*, const char*> cases[] = {{"llama3.1_8b", "llama3.1_8b"},
                                                       {"Llama 3.1 8B", "llama3.1_8b"},
                                                       {"meta-llama/Llama-3.1-8B", "llama3.1_8b"},
                                                       {"llama", "llama3.1_8b"},
                                                       {"meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1_8b"},
                                                       {"meta-llama/Llama-2-7b-chat-hf", "llama2_7b"},
                                                       {"qwen2.5_7b", "qwen2.5_7b"},
                                                       {"Qwen/Qwen2.5-7B", "qwen2.5_7b"},
                                                       {"Qwen/Qwen3-8B", "qwen3_8b"},
                                                       {"gpt2", "gpt2"},
                                                       {"openai-community/gpt2-xl", "gpt2_xl"},
                                                       {"mistral-7b", "mistral_7b"},
                                                       {"mistralai/Mistral-7B-v0.1", "mistral_7b"},
                                                       {"mistralai/Mistral-7B-v0.3", "mistral_7b_v0.3"},
                                                       {"mistralai/Mixtral-8x7B-v0.1", "mixtral_8x7b"}};
  for (const auto& [spelling, key] : cases) {
    const auto model = find_model(spelling);
    ASSERT_TRUE(model) << spelling;
    EXPECT_EQ(model->name, key) << spelling;
  }
}

TEST(FindModel, KnowsNothingOfOthers) {
  for (const char* name : {"", "/", "llama3.1_9b", "7b", "instruct", "meta-llama/", "bert"})
    EXPECT_FALSE(find_model(name)) << name;
}

TEST(FindModel, KeepsTheTraitsOfAFamily) {
  EXPECT_EQ(find_model("mistral_7b")->sliding_window, 4096);
  EXPECT_FALSE(find_model("mistral_7b_v0.3")->sliding_window);
  EXPECT_TRUE(find_model("qwen2.5_0.5b")->tied_embeddings);
  EXPECT_TRUE(find_model("qwen2.5_7b")->qkv_bias);
  EXPECT_TRUE(find_model("qwen3_8b")->qk_norm);
  EXPECT_EQ(find_model("gpt2")->position, PositionKind::learned);
  EXPECT_EQ(find_model("mixtral")->experts->per_token, 2);
  EXPECT_EQ(find_model("llama")->rope_theta, 500000);
}

void expect_model(const test::Row& row) {
  const auto model = find_model(row.at("model"));
  ASSERT_TRUE(model) << row.at("model");
  const auto figure = [&](const char* column) { return std::stod(row.at(column)); };
  EXPECT_EQ(count_parameters(*model).total(), std::stoll(row.at("params_exact"))) << row.at("model");
  EXPECT_EQ(model->num_layers, figure("layers"));
  EXPECT_EQ(model->hidden_size, figure("hidden"));
  EXPECT_EQ(model->ffn_hidden_size, figure("ffn"));
  EXPECT_EQ(model->num_attention_heads, figure("heads"));
  EXPECT_EQ(model->num_key_value_heads, figure("kv_heads"));
  EXPECT_EQ(model->head_dim, figure("head_dim"));
  EXPECT_EQ(model->vocab_size, figure("vocab"));
  EXPECT_EQ(model->tied_embeddings, row.at("tied_embeddings") == "yes");
  EXPECT_EQ(model->norm_eps, figure("norm_eps"));
  EXPECT_EQ(model->max_position_embeddings, figure("max_position"));
  EXPECT_EQ(model->qkv_bias || model->linear_bias, row.at("qkv_bias") == "yes");
  if (!row.at("rope_theta").empty()) {
    EXPECT_EQ(model->rope_theta, figure("rope_theta"));
  }
  EXPECT_EQ(model->sliding_window.value_or(0), row.at("sliding_window").empty() ? 0 : figure("sliding_window"));
  EXPECT_EQ(model->experts.value_or(Experts()).count, row.at("experts").empty() ? 0 : figure("experts"));
  EXPECT_EQ(model->experts.value_or(Experts()).per_token, row.at("top_k").empty() ? 0 : figure("top_k"));
}

TEST(ModelCatalogue, AgreesWithThePublishedTable) {
  SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/published/models.tsv");
  const auto rows = test::load_table(TPRIMAT_SHARED_DATA "/published/models.tsv");
  ASSERT_FALSE(rows.empty());
  for (const test::Row& row : rows) expect_model(row);
}

}  // namespace
}  // namespace tprimat
