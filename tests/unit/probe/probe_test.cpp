#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "probe/collective_probe.h"
#include "probe/gemm_probe.h"
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
