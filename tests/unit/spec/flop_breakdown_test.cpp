#include "spec/flop_breakdown.h"

#include <gtest/gtest.h>

#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

constexpr int64_t k_length = 8192;  // beyond the window of the models that have one

ModelSpec counted(std::string_view name) {
  const auto found = find_counted_model(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(KnownModel{}).spec;
}

double forward_of(const FlopBreakdown& breakdown, FlopPart part) {
  const PartCost* found = breakdown.find(part);
  return found == nullptr ? 0 : found->forward;
}

TEST(BreakDown, PartsAddUpToTheFormulasOfEveryModel) {
  for (const KnownModel& known : model_catalogue())
    for (const bool causal : {true, false}) {
      const FlopBreakdown breakdown = break_down(known.spec, {k_length, causal});
      const double formula = flops_per_token(known.spec, k_length, causal ? FlopFormula::causal : FlopFormula::full);
      EXPECT_NEAR(breakdown.total() / formula, 1, 1e-12) << known.spec.name;
      EXPECT_EQ(breakdown.parameters(), count_parameters(known.spec).total()) << known.spec.name;
      EXPECT_EQ(breakdown.active_parameters(), count_parameters(known.spec).active()) << known.spec.name;
      EXPECT_DOUBLE_EQ(breakdown.total(), 3 * breakdown.forward());
    }
}

TEST(BreakDown, MixturesStateActiveParameters) {
  // "47B parameters, but only 13B active" (arXiv 2401.04088)
  EXPECT_EQ(break_down(counted("mixtral"), {4096}).active_parameters(), 12879925248);
  const FlopBreakdown coder = break_down(counted("Qwen3 235B-A22B"), {4096});
  EXPECT_NEAR(static_cast<double>(coder.parameters()), 235e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(coder.active_parameters()), 22e9, 0.5e9);
}

TEST(BreakDown, LatentAttentionHasThePapersParameterCounts) {
  const FlopBreakdown second = break_down(counted("DeepSeek-V2"), {4096});  // 236B, 21B active (arXiv 2405.04434)
  EXPECT_NEAR(static_cast<double>(second.parameters()), 236e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(second.active_parameters()), 21e9, 0.5e9);
  ModelSpec third = counted("DeepSeek-V3");  // 671B, 37B active (arXiv 2412.19437), without the prediction layer
  third.prediction_layers = 0;
  EXPECT_NEAR(static_cast<double>(break_down(third, {4096}).parameters()), 671e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(break_down(third, {4096}).active_parameters()), 37e9, 0.6e9);
}

// By hand, from the shapes of arXiv 2412.19437 section 4.2.
TEST(BreakDown, LatentAttentionCountsEachOfItsProducts) {
  const FlopBreakdown breakdown = break_down(counted("DeepSeek-V3"), {4096});
  const double query = 1536.0 * (7168 + 128 * 192), keys = 7168.0 * 576 + 512.0 * 128 * 256, out = 128.0 * 128 * 7168;
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::attention_projections), 2 * 61 * (query + keys + out));
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::attention_core), 2.0 * 61 * 128 * (192 + 128) * 2048);
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::mlp), 2.0 * 3 * 3 * 7168 * 18432);
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::experts), 2.0 * 58 * 3 * 7168 * 2048 * 9);
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::router), 2.0 * 58 * 7168 * 256);
  EXPECT_DOUBLE_EQ(forward_of(breakdown, FlopPart::head), 2.0 * 129280 * 7168);
}

TEST(BreakDown, WindowsHoldForTheLayersThatHaveThem) {
  ModelSpec model = counted("GPT OSS 120B");
  const double half = forward_of(break_down(model, {k_length}), FlopPart::attention_core);
  model.full_attention_layers = 36;
  const double none = forward_of(break_down(model, {k_length}), FlopPart::attention_core);
  model.full_attention_layers = 0;
  const double all = forward_of(break_down(model, {k_length}), FlopPart::attention_core);
  EXPECT_DOUBLE_EQ(none, 4.0 * 36 * 64 * 64 * k_length / 2);
  EXPECT_DOUBLE_EQ(half, (none + all) / 2);
  EXPECT_LT(all, none / 30);
}

TEST(BreakDown, HybridsHaveTheParametersThatNvidiaStates) {
  // "31.6B total parameter", "3.2B active (3.6B with embeddings)": research.nvidia.com/labs/nemotron/Nemotron-3
  const FlopBreakdown nano = break_down(counted("Nemotron 3 Nano"), {k_length});
  EXPECT_NEAR(static_cast<double>(nano.parameters()), 31.6e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(nano.active_parameters()), 3.6e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(nano.active_parameters() - nano.find(FlopPart::embedding)->parameters), 3.2e9,
              0.05e9);
  ModelSpec super = counted("Nemotron_3_Super");  // "12B active 120B total", without the layers that predict
  super.prediction_layers = 0;
  EXPECT_NEAR(static_cast<double>(break_down(super, {k_length}).parameters()), 120e9, 1e9);
  EXPECT_NEAR(static_cast<double>(break_down(super, {k_length}).active_parameters()), 12e9, 1e9);
  EXPECT_NEAR(static_cast<double>(break_down(counted("Nemotron-H 56b"), {k_length}).parameters()), 56e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(break_down(counted("Nemotron-H 47B"), {k_length}).parameters()), 47e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(break_down(counted("Nemotron-H 8B"), {k_length}).parameters()), 8.1e9, 0.05e9);
}

// 2.816e15 per sequence, as the notes of NVIDIA/dgxc-benchmarking nemotronh/README.md at 1f6d9f4 derive it.
TEST(BreakDown, AHybridInFullHasTheFlopsOfItsBenchmark) {
  const double s = 8192, h = 8192, state = 256, chunk = 256;
  const double mlp = 2 * s * h * 32768 * 54;
  const double attention = (2 * s * h * 64 * 128 + 2 * s * h * 8 * 128 + 2 * s * s * h) * 10;
  const double mamba = (s * h * (256 * 64 * 3 + 8 * state * 2 + 256) + s * h * 2 * chunk + 2 * s * h * 2 * state +
                        s * chunk * state * 8) *
                       54;
  const double expected = 6 * (mlp + attention + mamba + s * h * 131072);
  EXPECT_NEAR(expected, 2.816e15, 0.001e15);
  EXPECT_NEAR(s * break_down(counted("Nemotron-H 56B"), {8192, false}).total() / expected, 1, 1e-12);
}

TEST(BreakDown, AMixersScanIsARecurrenceOrTheProductsOfItsChunks) {
  const MambaMixers mamba{1, 0, 4096, 64, 8, 128, 256};
  EXPECT_DOUBLE_EQ(mamba_scan_forward(mamba, true), 7.0 * 4096 * 128);
  EXPECT_DOUBLE_EQ(mamba_scan_forward(mamba, false), 2.0 * (256 * 128 * 8 + 256 * 4096 + 2 * 128 * 4096));
  EXPECT_DOUBLE_EQ(mamba_scan_forward({1, 0, 4096, 64, 8, 128, 0}, false), 7.0 * 4096 * 128);
  const FlopBreakdown nano = break_down(counted("Nemotron 3 Nano"), {k_length});
  EXPECT_DOUBLE_EQ(forward_of(nano, FlopPart::mamba_projections),
                   2.0 * 23 * 2688 * (2 * 4096 + 2 * 8 * 128 + 64 + 4096));
  EXPECT_DOUBLE_EQ(forward_of(nano, FlopPart::mamba_scan), 23 * 7.0 * 4096 * 128);
  EXPECT_DOUBLE_EQ(forward_of(nano, FlopPart::attention_core), 2.0 * 6 * 2 * 32 * 128 * k_length / 2);
  EXPECT_DOUBLE_EQ(forward_of(nano, FlopPart::experts), 2.0 * 23 * 2 * 2688 * (6 * 1856 + 3712));
}

TEST(BreakDown, ExpertsInALatentSpacePassTwoProductsMore) {
  ModelSpec super = counted("Nemotron_3_Super");
  const FlopBreakdown latent = break_down(super, {k_length});
  EXPECT_DOUBLE_EQ(forward_of(latent, FlopPart::experts),
                   2.0 * 40 * (22.0 * 2 * 1024 * 2688 + 2.0 * 4096 * 1024 + 2.0 * 4096 * 5376));
  const FlopBreakdown shared = latent;
  super.shared_prediction = false;  // the same work with twice the weights
  const FlopBreakdown own = break_down(super, {k_length});
  EXPECT_DOUBLE_EQ(own.total(), shared.total());
  EXPECT_EQ(own.find(FlopPart::prediction)->parameters, 2 * shared.find(FlopPart::prediction)->parameters);
}

TEST(BreakDown, PaddedVocabularyCountsAndIsNamed) {
  EXPECT_EQ(padded_vocabulary(50257, 0), 50257);
  EXPECT_EQ(padded_vocabulary(50257, 1), 50304);
  EXPECT_EQ(padded_vocabulary(50257, 8), 51200);
  EXPECT_EQ(padded_vocabulary(51200, 8), 51200);
  const ModelSpec model = counted("gpt3_175b");
  const FlopBreakdown padded = break_down(model, {2048, true, 8}), plain = break_down(model, {2048});
  EXPECT_EQ(plain.formula, "causal/1");
  EXPECT_EQ(padded.formula, "causal/1+pad128x8");
  EXPECT_DOUBLE_EQ(padded.total() - plain.total(), 6.0 * (51200 - 50257) * 12288);
}

TEST(HardwareFlops, RepeatWhatIsRecomputed) {
  const FlopBreakdown breakdown = break_down(counted("GPT-175B"), {2048, false});
  const double head = forward_of(breakdown, FlopPart::head), core = forward_of(breakdown, FlopPart::attention_core);
  EXPECT_DOUBLE_EQ(hardware_flops(breakdown, Recompute::none), breakdown.total());
  EXPECT_DOUBLE_EQ(hardware_flops(breakdown, Recompute::selective), breakdown.total() + core);
  EXPECT_DOUBLE_EQ(hardware_flops(breakdown, Recompute::full), 4 * (breakdown.forward() - head) + 3 * head);
}

// 96 B s l h^2 (1 + s/6h + V/16lh), arXiv 2104.04473 eq. 3, and appendix A of arXiv 2205.05198.
TEST(HardwareFlops, AreTheEquationsOfThePapers) {
  const double l = 96, h = 12288, s = 2048, v = 51200;
  const FlopBreakdown breakdown = break_down(counted("GPT-175B"), {2048, false});
  const double model = 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  const double full = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const double selective = 72 * l * h * h * (1 + s / (3 * h) + v / (12 * l * h));
  EXPECT_NEAR(breakdown.total() / model, 1, 1e-12);
  EXPECT_NEAR(hardware_flops(breakdown, Recompute::full) / full, 1, 1e-12);
  EXPECT_NEAR(hardware_flops_2205(breakdown, Recompute::selective) / selective, 1, 1e-12);
  EXPECT_EQ(hardware_flops_2205(breakdown, Recompute::full), hardware_flops(breakdown, Recompute::full));
}

TEST(Fp8Share, IsThatOfTheBlocksLinearLayers) {
  const FlopBreakdown breakdown = break_down(counted("llama3.1_8b"), {8192, false});
  const double linear = 6.0 * 32 * (4096.0 * 2 * (4096 + 1024) + 3.0 * 4096 * 14336);
  EXPECT_NEAR(fp8_share(breakdown), linear / breakdown.total(), 1e-12);
}

TEST(CountedModels, NameTheirSourcesAndAreSound) {
  for (const KnownModel& each : counted_models()) {
    EXPECT_FALSE(each.source.empty()) << each.spec.name;
    EXPECT_TRUE(check_model(each.spec, "").empty()) << each.spec.name;
    EXPECT_LE(least_layers(each.spec), each.spec.num_layers) << each.spec.name;
    EXPECT_FALSE(find_model(each.spec.name)) << each.spec.name << " is in the catalogue";
  }
}

}  // namespace
}  // namespace tprimat
