#include <gtest/gtest.h>

#include <numeric>

#include "planner/published_workload.h"
#include "planner/row_experts.h"
#include "planner/usual_settings.h"
#include "published/framework_formulas.h"

namespace tprimat::planner {
namespace {

using Cells = std::map<std::string, std::string, std::less<>>;

// A row of Qwen3 30B-A3B on 16 H100 by a program without recipes, with other cells in place of its own.
PublishedWorkload read_row(const Cells& other) {
  Cells cells = {{"model", "Qwen3-30B-A3B"},
                 {"seq", "4096"},
                 {"gpu", "H100"},
                 {"n_gpus", "16"},
                 {"framework", "Mega"},
                 {"precision", "BF16"},
                 {"gbs", "1024"},
                 {"mbs", "1"},
                 {"tp", "1"},
                 {"pp", "1"},
                 {"ep", "16"},
                 {"step_time_s", "20"}};
  for (const auto& [column, text] : other) cells[column] = text;
  PublishedRow row;
  for (const auto& [column, text] : cells) row.cells[column] = text;
  return read_published_workload(row);
}

TEST(SparseRows, ExpertRanksAreThoseOfTheRow) {
  const PublishedWorkload read = read_row({});
  ASSERT_EQ(read.missing, "");
  EXPECT_EQ(read.workload.family->id, "megatron_core");
  EXPECT_EQ(read.workload.layout.expert, 16);
  EXPECT_EQ(read.workload.layout.expert_tensor, 1);
  EXPECT_EQ(read.workload.layout.chunks, 1);
  EXPECT_NEAR(read.tokens_per_second_per_gpu, 1024 * 4096 / 20.0 / 16, 1e-9);
}

TEST(SparseRows, ExpertTensorRanksAreNotedOrTheOldDefault) {
  const Cells split = {{"tp", "2"}, {"ep", "8"}};
  EXPECT_EQ(read_row(split).workload.layout.expert_tensor, 1);
  Cells noted = split;
  noted["notes"] = "balanced; ETP2; performance";
  EXPECT_EQ(read_row(noted).workload.layout.expert_tensor, 2);
  Cells old = split;
  old["framework"] = "NeMo";
  EXPECT_EQ(read_row(old).workload.layout.expert_tensor, 2);
  // With 16 ranks of experts there is no second half of each.
  old["ep"] = "16";
  EXPECT_EQ(read_row(old).workload.layout.expert_tensor, 1);
}

TEST(SparseRows, MoreExpertRanksThanAStageHasAreCutAndNotFitted) {
  const PublishedWorkload read = read_row({{"pp", "4"}, {"ep", "16"}});
  ASSERT_EQ(read.missing, "");
  EXPECT_EQ(read.workload.layout.expert, 4);
  EXPECT_EQ(read.weak, "its expert ranks are more than its stages have");
  EXPECT_EQ(read_row({{"n_gpus", "24"}, {"ep", "24"}}).missing, "an inconsistent layout");  // of 128 experts
}

TEST(SparseRows, NotesSayRoutingAndExchanges) {
  const auto noted = [](const char* notes) { return read_row({{"notes", notes}}).workload; };
  EXPECT_EQ(noted("").routing, std::nullopt);
  EXPECT_EQ(noted("balanced; median").routing, Routing::balanced);
  EXPECT_EQ(noted("real routing (dropless)").routing, Routing::learned);
  EXPECT_EQ(noted("").dispatcher, std::nullopt);
  EXPECT_EQ(noted("DeepEP; moe_dev branch").dispatcher, Dispatcher::deepep);
  EXPECT_EQ(noted("HybridEP in place of DeepEP").dispatcher, Dispatcher::hybridep);
  EXPECT_EQ(noted("SFT, plain all-to-all dispatcher").dispatcher, Dispatcher::alltoall);
  EXPECT_TRUE(noted("DeepEP, 1F1B all-to-all overlap").overlaps_experts);
  EXPECT_TRUE(noted("HybridEP, EP communication overlap").overlaps_experts);
  EXPECT_FALSE(noted("HybridEP; EP overlap off").overlaps_experts);
  EXPECT_EQ(noted("median").graphs, Graphs::none);
  EXPECT_EQ(noted("partial CUDA graphs").graphs, Graphs::parts);
  EXPECT_EQ(noted("HybridEP, full-iteration CUDA graph").graphs, Graphs::whole);
  EXPECT_EQ(noted("with LLEP").expert_load, 1.1);
  EXPECT_EQ(noted("standard EP, no LLEP").expert_load, 0);
  EXPECT_EQ(noted("capacity factor 1.25 (drops tokens)").shape.experts->capacity_factor, 1.25);
  EXPECT_EQ(noted("low-precision optimizer moments").moment_bytes, 2);
}

TEST(SparseRows, NamedModulesAreRepeatedByTheirShareOfTheProducts) {
  const auto repeated = [](const char* text) { return read_row({{"recompute", text}}).workload; };
  const Workload narrow = repeated("selective: layernorm, moe_act");
  EXPECT_EQ(narrow.layout.recompute, Recompute::selective);
  EXPECT_EQ(narrow.recomputed_modules,
            (std::vector<RecomputedModule>{RecomputedModule::norms, RecomputedModule::expert_activation}));
  EXPECT_EQ(narrow.recomputed_share, 0);
  const Workload experts = repeated("selective: layernorm, moe");
  const ModelSpec& m = experts.shape;
  const double each = 3.0 * 2048 * 8 * 768, attention = 2.0 * 2048 * (4096 + 512), router = 2048.0 * 128;
  EXPECT_EQ(m.experts->count, 128);
  EXPECT_NEAR(experts.recomputed_share, each / (each + attention + router), 1e-3);
  EXPECT_EQ(repeated("full 12 layers").recomputed_share, 0.25);
  EXPECT_EQ(repeated("15 layers by ID").layout.recompute, Recompute::full);
  EXPECT_EQ(repeated("1 layer per virtual stage").recomputed_share, 1.0 / 48);
  EXPECT_EQ(repeated("full 99999 layers").recomputed_share, 1);
  EXPECT_EQ(repeated("selective").recomputed_share, 1);
}

std::vector<int64_t> cut_of(const char* framework, const char* pp, const char* vp, const char* model = "DeepSeek-V3") {
  return read_row({{"model", model}, {"framework", framework}, {"pp", pp}, {"vp", vp}, {"n_gpus", "512"}, {"ep", "8"}})
      .workload.layers_of_places;
}

TEST(SparseRows, StagesThatDoNotDivideTheLayersAreCutAsThePrograms) {
  std::vector<int64_t> wide(16, 4);
  wide.back() = 1;
  EXPECT_EQ(cut_of("Mega", "4", "4"), wide);
  EXPECT_EQ(cut_of("Mega", "4", "1"), (std::vector<int64_t>{16, 16, 16, 13}));
  const std::vector<int64_t> narrow = cut_of("Mega", "8", "4");
  ASSERT_EQ(narrow.size(), 32u);
  EXPECT_EQ(narrow.front(), 3);
  EXPECT_EQ(narrow[1], 2);
  EXPECT_EQ(narrow[30], 0);  // predicts further tokens
  EXPECT_EQ(narrow[31], 0);  // has the loss
  EXPECT_EQ(cut_of("Mega", "8", "4", "Kimi-K2").front(), 1);
  EXPECT_EQ(std::accumulate(narrow.begin(), narrow.end(), int64_t{0}), 61);
  const std::vector<int64_t> primus = cut_of("Primus Megatron-LM", "16", "2");
  EXPECT_EQ((std::vector<int64_t>{primus[0], primus[1], primus[2], primus[30], primus[31]}),
            (std::vector<int64_t>{1, 1, 2, 2, 1}));
  EXPECT_EQ(cut_of("Mega", "8", "4", "Qwen3-235B-A22B"), std::vector<int64_t>{});  // embedding and loss are layers
  EXPECT_EQ(cut_of("Mega", "61", "1"), std::vector<int64_t>{});
}

TEST(SparseRows, TheFiguresSayWhetherFurtherTokensWerePredicted) {
  Cells cells = {{"model", "DeepSeek-V3"}, {"n_gpus", "256"}, {"ep", "64"}, {"step_time_s", ""}};
  ModelSpec model = read_row(cells).workload.shape;
  const auto printed = [&](int64_t layers) {
    model.prediction_layers = layers;
    cells["tokens_per_s_per_gpu"] = "4000";
    cells["tflops_per_gpu"] = std::to_string(static_cast<int64_t>(megatron_flops(model, 4096, 1) * 4000 / 1e12));
    return read_row(cells).workload.shape.prediction_layers;
  };
  EXPECT_EQ(printed(0), 0);
  EXPECT_EQ(printed(1), 1);
  cells["notes"] = "MTP 3";
  EXPECT_EQ(read_row(cells).workload.shape.prediction_layers, 3);
}

TEST(SparseRows, TokensFollowFromMegatronsFlops) {
  const PublishedWorkload read = read_row({{"step_time_s", ""}, {"tflops_per_gpu", "240"}});
  EXPECT_NEAR(read.tokens_per_second_per_gpu, 240e12 / megatron_flops(read.workload.shape, 4096, 1), 1e-6);
}

TEST(SparseRows, LengthAndBatchFollowFromTheOtherFigures) {
  const ModelSpec shape = read_row({}).workload.shape;
  const double flops = megatron_flops(shape, 8192, 1) * 1024 * 8192 / 20 / 16 / 1e12;
  Cells cells = {{"seq", ""}, {"tflops_per_gpu", std::to_string(flops)}};
  EXPECT_EQ(read_row(cells).workload.sequence_length, 8192);
  EXPECT_EQ(read_row(cells).weak, "");
  const PublishedWorkload guessed = read_row({{"seq", ""}});
  EXPECT_EQ(guessed.workload.sequence_length, 4096);
  EXPECT_EQ(guessed.weak, "its sequence length is not printed");
  EXPECT_EQ(read_row({{"gbs", ""}, {"tokens_per_s", "26214.4"}}).workload.global_batch, 128);
  EXPECT_EQ(read_row({{"gbs", ""}, {"mbs", ""}, {"step_time_s", ""}, {"tokens_per_s", "9"}}).workload.global_batch, 16);
}

TEST(SparseRows, RecipesStandInForWhatARowDoesNotSay) {
  Cells cells = {{"framework", "Megatron-Bridge / NeMo 26.04"},
                 {"gpu", "DGX-GB200"},
                 {"n_gpus", "8"},
                 {"precision", "MXFP8"},
                 {"ep", "8"},
                 {"mbs", "4"}};
  const Workload april = read_row(cells).workload;
  EXPECT_EQ(april.routing, Routing::balanced);
  EXPECT_EQ(april.dispatcher, Dispatcher::hybridep);
  EXPECT_EQ(april.graphs, Graphs::parts);
  EXPECT_FALSE(april.narrow_attention);
  cells["framework"] = "Megatron-Bridge / NeMo 26.06";
  EXPECT_EQ(read_row(cells).workload.graphs, Graphs::whole);
  EXPECT_TRUE(read_row(cells).workload.overlaps_experts);
  EXPECT_TRUE(read_row(cells).workload.narrow_attention);
  cells["notes"] = "partial CUDA graphs, all-to-all, EP overlap off";  // the row's own word holds
  const Workload own = read_row(cells).workload;
  EXPECT_EQ(own.graphs, Graphs::parts);
  EXPECT_EQ(own.dispatcher, Dispatcher::alltoall);
  EXPECT_FALSE(own.overlaps_experts);
  const Workload primus = read_row({{"framework", "Primus Megatron-LM"}, {"gpu", "MI355X"}, {"seq", ""}}).workload;
  EXPECT_EQ(primus.dispatcher, Dispatcher::deepep);
  EXPECT_EQ(primus.moment_bytes, 2);
  EXPECT_EQ(primus.sequence_length, 4096);
}

TEST(SparseRows, ARecipesModulesAreRepeated) {
  const Workload read = read_row({{"model", "DeepSeek-V3"},
                                  {"framework", "Megatron-Bridge / NeMo 26.06"},
                                  {"gpu", "DGX-GB200"},
                                  {"n_gpus", "256"},
                                  {"precision", "MXFP8"},
                                  {"gbs", "4096"},
                                  {"pp", "4"},
                                  {"vp", "4"},
                                  {"ep", "64"}})
                            .workload;
  EXPECT_EQ(read.layout.recompute, Recompute::selective);
  EXPECT_EQ(read.recomputed_modules, std::vector<RecomputedModule>{RecomputedModule::latent_projections});
  EXPECT_GT(read.recomputed_share, 0);
  EXPECT_LT(read.recomputed_share, 0.2);
}

TEST(SparseRows, ASeriesKeepsWhatItsStepsBrought) {
  const auto step = [](int each) {
    return read_row({{"model", "DeepSeek-V3"},
                     {"framework", "Megatron-LM"},
                     {"gpu", "GB200"},
                     {"notes", "balanced; cumulative optimization step " + std::to_string(each) + " of 12; x"}})
        .workload;
  };
  EXPECT_EQ(step(0).dispatcher, Dispatcher::alltoall);
  EXPECT_EQ(step(4).dispatcher, Dispatcher::deepep);
  EXPECT_EQ(step(4).graphs, Graphs::none);
  EXPECT_EQ(step(9).graphs, Graphs::parts);
  EXPECT_EQ(step(12).dispatcher, Dispatcher::hybridep);
}

TEST(SparseRows, ALayoutThatIsNotPrintedIsTheRecipesAndNotFitted) {
  const Cells cells = {{"model", "Grok1 314b"},
                       {"framework", "NeMo"},
                       {"n_gpus", "512"},
                       {"tp", ""},
                       {"pp", ""},
                       {"ep", ""},
                       {"mbs", ""}};
  const PublishedWorkload read = read_row(cells);
  ASSERT_EQ(read.missing, "");
  EXPECT_EQ(read.workload.layout.tensor, 4);
  EXPECT_EQ(read.workload.layout.pipeline, 8);
  EXPECT_EQ(read.workload.layout.expert, 8);
  EXPECT_EQ(read.weak, "its layout is not printed");
}

TEST(SparseRows, RowsThatAreLeftOutOfFitsSayWhy) {
  const auto weak = [](const char* notes) { return read_row({{"notes", notes}}).weak; };
  EXPECT_EQ(weak("balanced; ETP1"), "");
  EXPECT_EQ(weak("real-data pre-training check"), "");
  EXPECT_EQ(weak("CHECK the source prints both"), "marked CHECK: its figures contradict each other");
  EXPECT_EQ(weak("read from a bar chart"), "read from a bar chart");
  EXPECT_EQ(weak("optimizer offload study; no offload"), "a study of offloading");
  EXPECT_EQ(weak("median of 13 iterations"), "");
}

TEST(SparseRows, HostileCellsAreNoLayout) {
  for (const char* column : {"ep", "tp", "pp", "vp", "cp", "gbs", "mbs", "seq", "n_gpus"})
    for (const char* text : {"16777216", "0", "-1", "1e9", "99999999999999999999", "\xff\xfe", "8 8"})
      read_row({{column, text}, {"recompute", "full 99999999999 layers"}, {"notes", "ETP99999999999 MTP 99999999"}});
  EXPECT_EQ(read_row({{"pp", "16"}, {"vp", "16777216"}}).missing, "an inconsistent layout");
}

TEST(UsualSettings, TheNewestOfARelease) {
  const auto dispatcher = [](const char* program, const char* release, std::optional<Routing> routing) {
    const UsualSettings* usual = find_usual_settings({program, "gpt_oss_120b", "B200-SXM", release, routing});
    return usual == nullptr ? std::string("none") : std::string(usual->fact("dispatcher"));
  };
  EXPECT_EQ(dispatcher("Megatron-Bridge 0.6", "26.08", Routing::learned), "alltoall");
  EXPECT_EQ(dispatcher("Megatron-Bridge 0.6", "26.04", Routing::learned), "none");
  EXPECT_EQ(dispatcher("Megatron-Bridge 0.6", "26.08", Routing::balanced), "none");
  EXPECT_EQ(dispatcher("another Megatron-Bridge", "", Routing::learned), "none");
  EXPECT_EQ(release_number("26.04.01"), 260401);
  EXPECT_EQ(release_number("26.04"), 260400);
  for (const char* other : {"", "0.9x", "1", "26.04.01.02", "-1.2", "999.1"}) EXPECT_EQ(release_number(other), 0);
  for (const UsualSettings& each : usual_settings()) EXPECT_FALSE(each.source.empty());
}

}  // namespace
}  // namespace tprimat::planner
