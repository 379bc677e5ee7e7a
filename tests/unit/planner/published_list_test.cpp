#include "planner/published_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "published/built_in_tables.h"
#include "published/columns.h"

namespace tprimat::planner {
namespace {

PublishedRow row_of(std::initializer_list<std::pair<const std::string, std::string>> cells) {
  PublishedRow row;
  row.line = 2;
  row.cells.insert(cells.begin(), cells.end());
  return row;
}

double mfu_of(const PublishedFigures& figures, std::string_view convention) {
  const auto found = std::ranges::find(figures.mfu, convention, &CountedMfu::convention);
  return found == figures.mfu.end() ? 0 : found->mfu;
}

// Llama 3.1 8B of 8192 tokens: causal 54.63 GFLOP per token (docs/metrics.md), 6n 48.18.
TEST(PublishedFigures, AreTokensAndMfuByEachCount) {
  const PublishedFigures figures = derive_figures(row_of({{"model", "Llama 3.1 8B"},
                                                          {"gpu", "H100"},
                                                          {"n_gpus", "8"},
                                                          {"precision", "bf16"},
                                                          {"seq", "8192"},
                                                          {"tokens_per_s", "80000"}}));
  ASSERT_TRUE(figures.tokens_per_second_per_gpu);
  EXPECT_NEAR(*figures.tokens_per_second_per_gpu, 10000, 1);
  EXPECT_EQ(figures.rate_from, "tokens/s");
  EXPECT_EQ(figures.peak, "H100-SXM-80GB bf16 989");
  const double parameters = 8030261248, embedding = 128256.0 * 4096, norms = 4096 * 65;
  const double causal = 6 * (parameters - embedding - norms) + 6 * 32 * 2 * 4096.0 * 4096;
  EXPECT_NEAR(mfu_of(figures, "causal"), 1e4 * causal / 989e12, 1e-3);
  EXPECT_NEAR(mfu_of(figures, "6n"), 1e4 * 6 * parameters / 989e12, 1e-3);
  EXPECT_GT(mfu_of(figures, "full"), mfu_of(figures, "causal"));
}

TEST(PublishedFigures, OfGpusThatHaveFp8NeedAPrecision) {
  const auto row = [](const char* gpu) {
    return row_of(
        {{"model", "GPT-175B"}, {"gpu", gpu}, {"n_gpus", "64"}, {"seq", "2048"}, {"tokens_per_s_per_gpu", "140"}});
  };
  EXPECT_EQ(derive_figures(row("H100")).missing, "the row prints no precision");
  EXPECT_FALSE(derive_figures(row("A100")).mfu.empty());
}

TEST(PublishedFigures, SayWhatIsMissing) {
  EXPECT_EQ(derive_figures(row_of({{"model", "x"}, {"seq", "2048"}, {"mem", "10"}})).missing, "no rate");
  EXPECT_EQ(derive_figures(row_of({{"model", "x"}, {"step_time_s", "10"}, {"gbs", "8"}, {"n_gpus", "8"}})).missing,
            "the row prints no sequence length");
  const auto figures = derive_figures(row_of(
      {{"model", "x"}, {"gpu", "H100"}, {"precision", "bf16"}, {"seq", "2048"}, {"tokens_per_s_per_gpu", "140"}}));
  EXPECT_EQ(figures.missing, "no shape: the row prints none, and 'x' is in no catalogue");
}

TEST(PublishedList, FiltersByModelGpuPrecisionAndProgram) {
  const auto all_hold = [](const PublishedFilter& filter, auto holds) {
    const auto list = list_published(filter);
    EXPECT_FALSE(list.empty());
    return std::ranges::all_of(list, holds);
  };
  EXPECT_TRUE(
      all_hold({.gpu = "b200"}, [](const PublishedEntry& e) { return e.gpu.find("GB200") == std::string::npos; }));
  EXPECT_TRUE(all_hold({.gpu = "A100-SXM-40GB"}, [](const auto& e) { return e.gpu == "A100 40GB"; }));
  EXPECT_TRUE(all_hold({.model = "llama3_8b"}, [](const auto& e) { return e.model.find("3.1") == std::string::npos; }));
  EXPECT_TRUE(all_hold({.precision = "MXFP8"}, [](const auto& e) { return e.precision.starts_with("MXFP8"); }));
  EXPECT_TRUE(all_hold({.kind = "hybrid"}, [](const auto& e) { return e.model.starts_with("Nemotron"); }));
  EXPECT_GT(list_published({.precision = "fp8"}).size(), list_published({.precision = "mxfp8"}).size());
  EXPECT_GT(list_published({.gpu = "H100"}).size(), list_published({.gpu = "H100", .framework = "torchtitan"}).size());
}

TEST(PublishedList, RefusesAFilterThatNoRowPasses) {
  const auto refusal = [](const PublishedFilter& filter) -> std::string {
    try {
      list_published(filter);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.gpu = "MI300"}).find("did you mean 'MI300X'?"), std::string::npos) << refusal({.gpu = "MI300"});
  EXPECT_NE(refusal({.model = "lamma 3.1 8B"}).find("--model"), std::string::npos);
  EXPECT_NE(refusal({.kind = "dens"}).find("did you mean 'dense'?"), std::string::npos);
  EXPECT_NE(refusal({.gpu = "-"}).find("no published result"), std::string::npos);
  EXPECT_TRUE(list_published({.gpu = "MI300X", .precision = "nvfp4"}).empty());  // each has rows, both together none
}

TEST(PublishedList, SortsRowsWithoutTheFigureToTheEnd) {
  const auto list = list_published({.order = PublishedOrder::mfu});
  const auto none = std::ranges::find_if(list, [](const PublishedEntry& e) { return !e.mfu; });
  EXPECT_TRUE(std::all_of(none, list.end(), [](const PublishedEntry& e) { return !e.mfu; }));
  const auto proxy = std::find_if(list.begin(), none, [](const PublishedEntry& e) { return e.proxy; });
  for (const auto& [first, last] : {std::pair(list.begin(), proxy), std::pair(proxy, none)})
    EXPECT_TRUE(std::ranges::is_sorted(first, last, std::greater<>(), [](const auto& e) { return *e.mfu; }));
}

// By the catalogue's layers, the notes or the name. Cut rows of a model stand behind its whole ones.
TEST(PublishedList, TellsProxiesFromWholeModels) {
  const auto entry = [](const char* model, const char* layers, const char* notes) {
    return read_published_entry(row_of({{"model", model}, {"layers", layers}, {"notes", notes}}), "own");
  };
  EXPECT_TRUE(entry("Llama 3.1 405b", "7", "").proxy);
  EXPECT_EQ(entry("Llama 3.1 405b", "7", "").layers, 7);
  EXPECT_FALSE(entry("Llama 3.1 405b", "126", "").proxy);
  EXPECT_FALSE(entry("Llama 3.1 405b", "", "").proxy);
  EXPECT_FALSE(entry("Llama 3.1 405b", "", "").layers);
  EXPECT_TRUE(entry("Grok 1 314b", "16", "").proxy);
  EXPECT_FALSE(entry("Grok 1 314b", "64", "").proxy);
  EXPECT_TRUE(entry("Llama 3 8B (4 layers)", "4", "").proxy);
  EXPECT_TRUE(entry("unheard-of", "4", "reduced-layer proxy").proxy);
  EXPECT_FALSE(entry("unheard-of", "4", "").proxy);
  const auto list = list_published({.model = "llama3.1_405b", .order = PublishedOrder::tokens});
  const auto figures =
      std::ranges::count_if(list, [](const auto& e) { return e.tokens_per_second_per_gpu.has_value(); });
  EXPECT_FALSE(list.front().proxy);
  EXPECT_TRUE(std::is_sorted(list.begin(), list.begin() + figures,
                             [](const auto& a, const auto& b) { return a.proxy < b.proxy; }));
}

TEST(PublishedList, StatesRoutingOnlyOfSparseRowsThatSayIt) {
  const auto routing = [](const char* model, const char* framework, const char* notes) {
    return read_published_entry(row_of({{"model", model}, {"framework", framework}, {"notes", notes}}), "own").routing;
  };
  EXPECT_EQ(routing("Mixtral-8x7B", "Megatron-LM", "balanced"), "balanced");
  EXPECT_EQ(routing("Mixtral-8x7B", "Megatron-LM", "real routing (dropless)"), "learned");
  EXPECT_EQ(routing("Mixtral-8x7B", "NeMo", ""), "balanced");
  EXPECT_EQ(routing("Mixtral-8x7B", "Megatron-LM", "routing not stated, probably balanced"), "");
  EXPECT_EQ(routing("Mixtral-8x7B", "Megatron-LM", ""), "");
  EXPECT_EQ(routing("Llama 3 8B", "NeMo", ""), "");
}

// An MFU above 0.8 would be a wrong shape, peak or rate. Rows whose figures contradict each other have none.
TEST(PublishedList, HasOnlyPossibleFigures) {
  for (const PublishedEntry& entry : list_published({}))
    if (entry.mfu) {
      EXPECT_LT(*entry.mfu, 0.8) << entry.id;
      EXPECT_EQ(entry.notes.find("CHECK"), std::string::npos) << entry.id;
    }
}

TEST(PublishedDetails, NameTheNearestId) {
  const ParameterSet& parameters = built_in_parameters();
  const std::string id = built_in_tables().front().rows.front().cell("id");
  const PublishedDetails details = describe_published_row(id, parameters);
  EXPECT_EQ(details.cells.at("id"), id);
  EXPECT_EQ(details.link, source_link(built_in_tables().front().rows.front()));
  try {
    describe_published_row(id + "x", parameters);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tprimat::planner
