#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "probe/collective_probe.h"
#include "probe/gemm_probe.h"
#include "probe/model_products.h"
#include "probe/probes.h"

namespace tprimat::engine {
namespace {

TEST(MeasureGemmPeak, TheFastestShapeIsThePeakAndTheRuleIsStated) {
  const auto peak = measure_gemm_peak(Precision::fp32, 1);
  ASSERT_TRUE(peak);
  ASSERT_GE(peak->shapes.size(), 3u);
  double fastest = 0;
  for (const GemmRate& shape : peak->shapes) {
    EXPECT_GT(shape.flops_per_second, 1e8);
    EXPECT_TRUE(shape.measured.cpu_share > 0 && shape.measured.cpu_share <= 1) << shape.measured.cpu_share;
    EXPECT_GE(shape.measured.windows, 4);
    EXPECT_LE(shape.measured.fastest_seconds, shape.measured.median_seconds);
    fastest = std::max(fastest, shape.flops_per_second);
  }
  EXPECT_EQ(peak->flops_per_second, fastest);
  EXPECT_LT(fastest, 2e12);  // no core does this many fp32 operations
  EXPECT_NE(peak->how.find("1 threads"), std::string::npos) << peak->how;
}

TEST(MeasureGemmPeak, IsThatOfFp32Where16BitNumbersAreWidened) {
  EXPECT_FALSE(measure_gemm_peak(Precision::fp8, 1));
  EXPECT_FALSE(measure_gemm_peak(Precision::tf32, 1));
  if (!has_instructions(ProductFormat::fp16)) {
    EXPECT_FALSE(measure_gemm_peak(ProductFormat::fp16, 1));
    EXPECT_EQ(measure_gemm_peak(Precision::fp16, 1)->precision, ProductFormat::fp32);
    EXPECT_EQ(make_product({"", ProductPass::forward, 8, 8, 8}, ProductFormat::fp16), nullptr);
  }
}

TEST(MeasureProducts, EveryPassRunsInEveryFormatThatThereIs) {
  for (const auto& [format, name] : EnumNames<ProductFormat>::values) {
    if (!has_instructions(format)) continue;
    for (const ProductPass pass : {ProductPass::forward, ProductPass::dgrad, ProductPass::wgrad}) {
      const auto product = make_product({"", pass, 96, 64, 160}, format);
      ASSERT_NE(product, nullptr) << name;
      product->run();
    }
  }
}

ModelSpec small_llama() {
  ModelSpec model;
  model.name = "small";
  model.num_layers = 3;
  model.hidden_size = 64;
  model.ffn_hidden_size = 160;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 16;
  model.vocab_size = 1000;
  return model;
}

TEST(ModelProducts, AreThoseThatItsParametersImply) {
  const ModelSpec model = small_llama();
  const int64_t tokens = 32;
  double flops = 0;
  for (const ModelProduct& product : model_products(model, tokens))
    flops += product.shape.flops() * static_cast<double>(product.count);
  EXPECT_DOUBLE_EQ(flops, 6.0 * static_cast<double>(count_parameters(model).matmul_active * tokens));
  const auto qkv = model_products(model, tokens).front();
  EXPECT_EQ(qkv.shape.name, "qkv");
  EXPECT_EQ(qkv.shape.n, (4 + 2 * 2) * 16);
  EXPECT_EQ(qkv.count, 3);
}

// DeepSeek's attention, one dense layer, shared experts, and a layer that predicts a further token.
ModelSpec small_deepseek() {
  ModelSpec model = small_llama();
  model.num_layers = 4;
  model.num_key_value_heads = 4;
  model.latent_attention =
      LatentAttention{.query_rank = 24, .key_value_rank = 32, .rope_head_dim = 8, .value_head_dim = 16};
  Experts& experts = model.experts.emplace();
  experts.count = 8, experts.per_token = 2, experts.first_dense_layers = 1;
  experts.ffn_hidden_size = 48, experts.shared_ffn_hidden_size = 96;
  model.prediction_layers = 1;
  return model;
}

const ModelProduct* find_product(const std::vector<ModelProduct>& products, const std::string& name) {
  const auto found = std::ranges::find(products, name, [](const ModelProduct& each) { return each.shape.name; });
  return found == products.end() ? nullptr : &*found;
}

// Weights that multiply each token, counted by hand.
TEST(ModelProducts, OfASparseModelAreThoseThatItsParametersImply) {
  const ModelSpec model = small_deepseek();
  const int64_t tokens = 64;
  const int64_t attention = 64 * 24 + 24 * 4 * 24 + 64 * 40 + 32 * 4 * 32 + 4 * 16 * 64;
  const int64_t dense = 3 * 64 * 160, shared = 3 * 64 * 96, routed = 2 * 3 * 64 * 48;
  const int64_t weights = 5 * attention + dense + 4 * (shared + routed) + 2 * 64 * 64 + 2 * 64 * 1000;
  double flops = 0;
  for (const ModelProduct& product : model_products(model, tokens))
    flops += product.shape.flops() * static_cast<double>(product.count);
  for (const ModelGroup& group : expert_products(model, tokens)) flops += group.step_flops;
  EXPECT_DOUBLE_EQ(flops, 6.0 * static_cast<double>(weights * tokens));
  EXPECT_EQ(find_product(model_products(model, tokens), "qkv"), nullptr);
  EXPECT_EQ(find_product(model_products(model, tokens), "kv_down")->shape.n, 40);
  EXPECT_EQ(find_product(model_products(model, tokens), "up")->count, 1);
  EXPECT_EQ(find_product(model_products(model, tokens), "shared_up")->count, 4);
  EXPECT_TRUE(expert_products(small_llama(), tokens).empty());
}

TEST(ExpertTokens, AnUnevenLoadRisesToTwiceTheMeanAndLosesNoToken) {
  EXPECT_EQ(expert_tokens(ExpertLoad::even, 3, 5), (std::vector<int64_t>{5, 5, 5}));
  EXPECT_EQ(expert_tokens(ExpertLoad::uneven, 3, 6), (std::vector<int64_t>{3, 6, 9}));
  EXPECT_EQ(expert_tokens(ExpertLoad::uneven, 3, 32), (std::vector<int64_t>{16, 32, 48}));
  EXPECT_EQ(expert_tokens(ExpertLoad::uneven, 1, 7), (std::vector<int64_t>{7}));
  for (const int64_t mean : {1, 7, 16, 512}) {
    const std::vector<int64_t> each = expert_tokens(ExpertLoad::uneven, 127, mean);
    EXPECT_EQ(std::accumulate(each.begin(), each.end(), int64_t{0}), 127 * mean);
    const double most = static_cast<double>(std::ranges::max(each)) / static_cast<double>(mean);
    EXPECT_GE(most, 1.9) << mean;
    EXPECT_LE(most, 2.2) << mean;
    for (const int64_t tokens : each) EXPECT_TRUE(mean % 16 != 0 || tokens % 16 == 0) << tokens;
  }
}

TEST(GroupedShape, ExpertsWithoutTokensHaveNoProduct) {
  const GroupedShape shape{"expert_up", ProductPass::wgrad, 64, 1, 32, 48};
  double flops = 0;
  for (const ProductShape& each : shape.products(ExpertLoad::uneven)) {
    EXPECT_GT(each.k, 0);
    EXPECT_TRUE(each.m == 32 && each.n == 48);
    flops += each.flops();
  }
  EXPECT_DOUBLE_EQ(flops, shape.flops());
  EXPECT_LT(shape.products(ExpertLoad::uneven).size(), 64u);
  EXPECT_EQ(shape.plain().k, 64);
}

TEST(ExpertProducts, OfLargeModelsAreMeasuredWithFewerExpertsThenFewerTokens) {
  ModelSpec model = small_deepseek();
  model.hidden_size = 7168;
  model.experts->count = 256, model.experts->per_token = 8, model.experts->ffn_hidden_size = 2048;
  for (const ModelGroup& group : expert_products(model, 8192)) {
    EXPECT_GE(group.shape.experts, 2);
    EXPECT_LE(group.shape.experts * group.shape.inputs * group.shape.outputs, int64_t{1} << 28);
    EXPECT_EQ(group.shape.tokens, 256);  // 8192 x 8 / 256
    EXPECT_DOUBLE_EQ(group.step_flops,
                     2.0 * 8192 * 8 * 4 * static_cast<double>(group.shape.inputs * group.shape.outputs));
  }
  model.experts->count = 8, model.experts->ffn_hidden_size = 16384;
  const GroupedShape few = expert_products(model, 65536).front().shape;
  EXPECT_TRUE(few.experts == 2 && few.tokens == 256) << few.experts << " " << few.tokens;
  const GroupedShape whole = expert_products(model, 65536, {1e18, int64_t{1} << 40}).front().shape;
  EXPECT_TRUE(whole.experts == 8 && whole.tokens == 65536) << whole.experts << " " << whole.tokens;
}

// Each product once, in a time that the test states.
TEST(GroupedRates, RoutedExpertsAreTimedTogetherUnderBothLoads) {
  std::vector<size_t> together;
  std::vector<GroupedRate<Measured>> rates;
  const std::vector<ModelGroup> groups = expert_products(small_deepseek(), 64);
  for (const ModelGroup& group : groups)
    add_grouped_rates(rates, group.shape, [&](const std::vector<ProductShape>& shapes) {
      together.push_back(shapes.size());
      for (const ProductShape& shape : shapes) make_product(shape, ProductFormat::fp32)->run();
      return TimedProducts<Measured>(shapes.size() == 1 ? 1e-3 : 4e-3, Measured());
    });
  ASSERT_EQ(rates.size(), 12u);  // up and down, three passes, two loads
  EXPECT_EQ(together, std::vector<size_t>({1, 8, 6, 1, 8, 6, 1, 8, 6, 1, 8, 6, 1, 8, 6, 1, 8, 6}));
  for (const GroupedRate<Measured>& each : rates) {
    EXPECT_TRUE(each.experts == 8 && each.tokens == 16);
    EXPECT_EQ(each.fullest, each.load == ExpertLoad::even ? 16 : 32);
    EXPECT_DOUBLE_EQ(each.flops_per_second, 2.0 * 8 * 16 * static_cast<double>(each.inputs * each.outputs) / 4e-3);
    EXPECT_DOUBLE_EQ(each.share_of_plain, 0.25);
  }
  double flops = 0;
  for (const ModelGroup& group : groups) flops += group.step_flops;
  rates[0].flops_per_second /= 2;  // of the first group, even
  const double alike = flops / rates[2].flops_per_second;
  EXPECT_GT(seconds_of_groups(groups, rates), alike);
}

TEST(ModelProducts, OfLargeModelsAreMeasuredOverFewerTokens) {
  ModelSpec model = small_llama();
  model.hidden_size = 8192;
  model.vocab_size = 128256;
  for (const ModelProduct& product : model_products(model, 8192)) {
    const int64_t rows = product.shape.pass == ProductPass::wgrad ? product.shape.k : product.shape.m;
    EXPECT_TRUE(rows == k_fewest_tokens || product.shape.flops() <= k_max_product_flops) << product.shape.name;
    EXPECT_GE(rows, k_fewest_tokens);
  }
}

TEST(MeasureModelProducts, TheWholeIsBetweenItsParts) {
  const auto rate = measure_model_products(small_llama(), 64, ProductFormat::fp32, 1);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->products.shapes.size(), 15u);
  const auto [slowest, fastest] =
      std::minmax_element(rate->products.shapes.begin(), rate->products.shapes.end(),
                          [](const GemmRate& a, const GemmRate& b) { return a.flops_per_second < b.flops_per_second; });
  EXPECT_GE(rate->flops_per_second, slowest->flops_per_second);
  EXPECT_LE(rate->flops_per_second, fastest->flops_per_second);
}

TEST(MeasureMemoryBandwidth, EveryKindIsPlausible) {
  const MemoryBandwidth memory = measure_memory_bandwidth(0);
  ASSERT_EQ(memory.kinds.size(), 5u);
  for (const MemoryRate& rate : memory.kinds) {
    EXPECT_GT(rate.bytes_per_second, 1e8) << enum_name(rate.kind);
    EXPECT_LT(rate.bytes_per_second, 1e13) << enum_name(rate.kind);
    EXPECT_EQ(memory.rate(rate.kind), rate.bytes_per_second);
  }
  EXPECT_GT(memory.buffer_bytes, 0);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::reduce_scatter, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_to_all, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::send_receive, 8), 1.0);
}

}  // namespace
}  // namespace tprimat::engine
