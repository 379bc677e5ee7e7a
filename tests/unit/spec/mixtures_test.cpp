// Mixtures of experts: catalogue and documentation against published tables.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <variant>

#include "base/files.h"
#include "example_data.h"
#include "spec/model_catalogue.h"
#include "unit/spec/published_tables.h"

namespace tprimat {
namespace {

constexpr const char* k_table = TPRIMAT_SHARED_DATA "/published/models_moe.tsv";

// What our arithmetic says about a published row.
struct Exact {
  const char* key;
};
struct Close {
  const char* key;
  double stated = 0, tolerance = 0;  // parameters, and how far ours may lie from them
  const char* why;
};
struct NotCountable {
  const char* why;
};
using Standing = std::variant<Exact, Close, NotCountable>;

const std::map<std::string, Standing> k_standings = {
    {"DeepSeek-V3", Exact{"deepseek_v3"}},
    {"DeepSeek-V2", Exact{"deepseek_v2"}},
    {"DeepSeek-V2-Lite", Exact{"deepseek_v2_lite"}},
    {"torchtitan deepseek_v3 16B", Exact{"deepseek_v2_lite"}},
    {"Kimi-K2", Exact{"kimi_k2"}},
    {"Moonlight-16B-A3B", Exact{"moonlight_16b_a3b"}},
    {"Qwen3-30B-A3B", Exact{"qwen3_30b_a3b"}},
    {"Qwen3-235B-A22B", Exact{"qwen3_235b_a22b"}},
    {"Mixtral-8x7B", Exact{"mixtral_8x7b"}},
    {"Mixtral-8x22B", Exact{"mixtral_8x22b"}},
    {"gpt-oss-20b", Exact{"gpt_oss_20b"}},
    {"gpt-oss-120b", Exact{"gpt_oss_120b"}},
    {"Llama 4 Scout 17B-16E", Exact{"llama4_scout"}},
    {"Llama 4 Maverick 17B-128E", Exact{"llama4_maverick"}},
    {"Grok-1", Exact{"grok1_314b"}},
    {"Nemotron-3-Nano-30B-A3B", Close{"nemotron3_nano", 31.6e9, 0.05e9, "NVIDIA's model card; the name says 30B"}},
    {"Nemotron-3.5-Lightning",
     Close{"nemotron3.5_lightning", 31.6e9, 0.05e9, "as Nano, the layers that predict apart"}},
    {"Nemotron-3-Super-120B-A12B", Close{"nemotron3_super", 120e9, 1e9, "the total in its name"}},
    {"Nemotron-3-Ultra-550B-A55B", Close{"nemotron3_ultra", 550e9, 1e9, "the total in its name"}},
    {"X-MoE Small 10.1B", Close{"xmoe_small", 10.1, 0.06, "blocks alone, in units of 2^30"}},
    {"X-MoE Medium 55.2B", Close{"xmoe_medium", 55.2, 0.06, "blocks alone, in units of 2^30"}},
    {"X-MoE Large 201.4B", Close{"xmoe_large", 201.4, 0.06, "blocks alone, in units of 2^30"}},
    {"DeepSeek-V4-Flash", NotCountable{"compressed attention with an indexer, hyper-connections"}},
    {"DeepSeek-V4-Pro", NotCountable{"compressed attention with an indexer, hyper-connections"}},
    {"Kimi-K3", NotCountable{"linear attention (KDA) in 69 layers"}},
    {"Kimi-K3 curve proxy", NotCountable{"linear attention (KDA) in 18 layers"}},
    {"Qwen3-Next-80B-A3B", NotCountable{"Gated DeltaNet in 3 of 4 layers"}},
    {"Qwen3.5-35B-A3B / Qwen3.6-35B-A3B", NotCountable{"Gated DeltaNet in 3 of 4 layers"}},
    {"GLM-5 / GLM-5.2", NotCountable{"attention whose keys an indexer chooses; no vocabulary"}},
    {"Grok-2", NotCountable{"a dense MLP beside the experts; no vocabulary"}},
    {"MiniMax-M2.5", NotCountable{"no vocabulary"}},
    {"torchtitan MoE 9.5B", Close{"torchtitan_moe_9.5b", 9.5e9, 0.15e9, "the total in its name"}},
    {"X-MoE Super 545.4B", NotCountable{"no number of layers and no width of an expert"}},
};

// Published totals leave out the layers that predict further tokens, and this table biases and sinks.
ModelSpec without_predictions(ModelSpec model) {
  model.prediction_layers.reset();
  model.shared_prediction.reset();
  return model;
}
ModelSpec weights_alone(ModelSpec model) {
  model = without_predictions(model);
  model.linear_bias = false;
  model.attention_sinks.reset();
  return model;
}

ModelSpec shape_of(const char* key) {
  const auto known = find_counted_model(key);
  EXPECT_TRUE(known) << key;
  return known ? known->spec : ModelSpec();
}

// The sizes that the row prints; empty cells say nothing.
void expect_sizes(const test::Row& row, const ModelSpec& model) {
  const Experts experts = model.experts.value_or(Experts());
  const LatentAttention latent = model.latent_attention.value_or(LatentAttention());
  const std::pair<const char*, int64_t> sizes[] = {{"layers", model.num_layers},
                                                   {"dense_layers", model.dense_layers()},
                                                   {"hidden", model.hidden_size},
                                                   {"dense_ffn", model.ffn_hidden_size},
                                                   {"expert_ffn", experts.ffn_hidden_size},
                                                   {"experts", experts.count},
                                                   {"experts_per_token", experts.per_token},
                                                   {"shared_ffn", experts.shared_ffn_hidden_size},
                                                   {"heads", model.num_attention_heads},
                                                   {"kv_heads", model.num_key_value_heads},
                                                   {"head_dim", model.head_dim},
                                                   {"q_lora", latent.query_rank},
                                                   {"kv_lora", latent.key_value_rank},
                                                   {"qk_nope", model.head_dim},
                                                   {"qk_rope", latent.rope_head_dim},
                                                   {"v_head", latent.value_head_dim},
                                                   {"vocab", model.vocab_size},
                                                   {"mtp_depth", model.prediction_layers.value_or(0)}};
  for (const auto& [column, ours] : sizes)
    if (!row.at(column).empty()) {
      EXPECT_EQ(ours, std::stoll(row.at(column))) << row.at("model") << ' ' << column;
    }
  if (!row.at("tied_embeddings").empty()) {
    EXPECT_EQ(model.tied_embeddings, row.at("tied_embeddings") == "yes") << row.at("model");
  }
}

// A group in the row's notes: "8 groups, 4 chosen", "sigmoid".
void expect_router(const test::Row& row, const ModelSpec& model) {
  const Experts& experts = *model.experts;
  const std::string& notes = row.at("notes");
  const auto says = [&](std::string_view words) { return notes.find(words) != std::string::npos; };
  EXPECT_EQ(experts.groups, says("8 groups") ? 8 : 1) << row.at("model");
  EXPECT_EQ(experts.groups_per_token, says("4 chosen") ? 4 : says("3 chosen") ? 3 : 1) << row.at("model");
  if (says("sigmoid")) {
    EXPECT_EQ(experts.router_score, RouterScore::sigmoid) << row.at("model");
  }
}

void expect_exact(const test::Row& row, const ModelSpec& model) {
  const ParameterCount count = count_parameters(weights_alone(model));
  EXPECT_EQ(count.total(), std::stoll(row.at("params_arith"))) << row.at("model");
  EXPECT_EQ(count.active(), std::stoll(row.at("active_arith"))) << row.at("model");
  expect_sizes(row, model);
  expect_router(row, model);
}

// "46.7B", "~2.8T": the printed figure is ours, rounded or cut to its digits.
bool is_printed_as(double ours, std::string text) {
  const double scale = text.back() == 'T' ? 1e12 : 1e9;
  text.pop_back();
  const size_t point = text.find('.');
  const double unit = std::pow(10.0, point == std::string::npos ? 0.0 : -static_cast<double>(text.size() - point - 1));
  const double printed = std::stod(text);
  return ours / scale >= printed - unit / 2 && ours / scale < printed + unit;
}

// Totals that sources print for more than the shape, or as a name.
const std::map<std::string, const char*> k_other_totals = {{"Llama 4 Scout 17B-16E", "109B with its vision part"},
                                                           {"Grok-1", "314B is stated; its shape has 315.7B"}};

// Published active parameters mean those with or without the embedding, which a token reads one row of.
void expect_printed(const test::Row& row, const ModelSpec& model) {
  const ParameterCount count = count_parameters(without_predictions(model));
  const auto total = static_cast<double>(count.total()), active = static_cast<double>(count.active());
  if (k_other_totals.count(row.at("model")) == 0) {
    EXPECT_TRUE(is_printed_as(total, row.at("total_params"))) << row.at("model") << ' ' << total;
  }
  if (row.at("active_params").empty()) return;
  const double without = active - static_cast<double>(count.embedding);
  EXPECT_TRUE(is_printed_as(active, row.at("active_params")) || is_printed_as(without, row.at("active_params")))
      << row.at("model") << ' ' << active << " or " << without;
}

void expect_close(const Close& standing) {
  const ParameterCount count = count_parameters(without_predictions(shape_of(standing.key)));
  constexpr double k_binary = 1 << 30;
  const double ours = standing.stated < 1e9
                          ? static_cast<double>(count.total() - count.embedding - count.head) / k_binary
                          : static_cast<double>(count.total());
  EXPECT_NEAR(ours, standing.stated, standing.tolerance) << standing.key << ": " << standing.why;
}

TEST(Mixtures, EachRowOfThePublishedTableIsExactCloseOrNotCountable) {
  SKIP_WITHOUT_EXAMPLE_DATA(k_table);
  const auto rows = test::load_table(k_table);
  EXPECT_EQ(rows.size(), k_standings.size());
  for (const test::Row& row : rows) {
    const auto found = k_standings.find(row.at("model"));
    ASSERT_NE(found, k_standings.end()) << row.at("model");
    if (const auto* exact = std::get_if<Exact>(&found->second)) {
      ASSERT_TRUE(find_model(exact->key)) << "a configuration may name it: " << exact->key;
      expect_exact(row, *find_model(exact->key));
      expect_printed(row, *find_model(exact->key));
      EXPECT_TRUE(find_counted_model(row.at("model"))) << row.at("model");
    } else if (const auto* close = std::get_if<Close>(&found->second)) {
      expect_close(*close);
      EXPECT_TRUE(find_counted_model(row.at("model"))) << row.at("model");
    } else {
      EXPECT_FALSE(find_counted_model(row.at("model"))) << row.at("model");
    }
  }
}

TEST(Mixtures, CountsWithBiasesAndSinksAreTheFilesOfGptOss) {
  EXPECT_EQ(count_parameters(shape_of("openai/gpt-oss-20b")).total(), 20914757184);
  EXPECT_EQ(count_parameters(shape_of("openai/gpt-oss-120b")).total(), 116829156672);
}

TEST(Mixtures, StateTotalAndActiveParametersThatFollowFromTheShape) {
  int64_t sparse = 0;
  for (const KnownModel& known : model_catalogue()) {
    if (!known.spec.is_sparse()) continue;
    ++sparse;
    const ParameterCount count = count_parameters(without_predictions(known.spec));
    EXPECT_EQ(count.total(), known.published_parameters) << known.spec.name;
    EXPECT_EQ(count.active(), known.published_active_parameters) << known.spec.name;
    EXPECT_TRUE(check_model(known.spec, "").empty()) << known.spec.name;
  }
  EXPECT_GE(sparse, 14);
}

// 46702792704 -> "46 702 792 704"
std::string group_digits(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

template <class Figure>
std::string row_of(const char* title, Figure figure) {
  std::string row = fmt::format("| {} |", title);
  for (const char* key : {"mixtral_8x7b", "deepseek_v3", "qwen3_30b_a3b"})
    row += fmt::format(" {} |", figure(*find_model(key)));
  return row;
}

std::string flops_of(const ModelSpec& model, FlopFormula formula) {
  return fmt::format("{:.2f}", flops_per_token(model, 4096, formula) / 1e9);
}

TEST(Docs, MetricsPageWorksOutThreeMixtures) {
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/docs/metrics.md");
  const std::string rows[] = {
      row_of("parameters", [](const ModelSpec& m) { return group_digits(count_parameters(m).total()); }),
      row_of("active parameters", [](const ModelSpec& m) { return group_digits(count_parameters(m).active()); }),
      row_of("W", [](const ModelSpec& m) { return group_digits(count_parameters(m).matmul_active); }),
      row_of("`causal` at SL 4096, GFLOP per token",
             [](const ModelSpec& m) { return flops_of(m, FlopFormula::causal); }),
      row_of("`full`", [](const ModelSpec& m) { return flops_of(m, FlopFormula::full); }),
      row_of("`6n`", [](const ModelSpec& m) { return flops_of(m, FlopFormula::six_n); })};
  for (const std::string& row : rows) EXPECT_NE(page.find(row), std::string::npos) << row;
}

}  // namespace
}  // namespace tprimat
