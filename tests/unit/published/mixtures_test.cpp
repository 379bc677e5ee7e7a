// Published figures of mixtures of experts.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/files.h"
#include "example_data.h"
#include "published/cells.h"
#include "published/framework_formulas.h"
#include "published/validate.h"

namespace tprimat::planner {
namespace {

constexpr const char* k_published = TPRIMAT_SHARED_DATA "/published/";

bool is_sparse(const std::string& model) {
  const std::string lower = lower_text(model);
  constexpr const char* k_names[] = {"deepseek", "qwen3-30b", "qwen3_30b", "qwen3-235b", "qwen3_235b", "qwen3.6",
                                     "gpt oss",  "gpt-oss",   "kimi",      "nemotron_3", "grok",       "maverick",
                                     "mixtral",  "x-moe",     "glm",       "lightning",  "30b-a3b",    "120b-a12b"};
  return std::ranges::any_of(k_names, [&](const char* name) { return mentions(lower, name); });
}

// Why figures of mixtures cannot be judged; whatever else a row lacks is a gap of ours.
constexpr const char* k_true_reasons[] = {"no step time and no tokens/s", "no sequence length",
                                          "no number of layers for the hidden size", "no work of the vision encoder"};

struct Counts {
  int64_t figures = 0, reproduced = 0, explained = 0, unexplained = 0, lacking = 0;
  int64_t judged() const { return figures - lacking; }
};

void count_figure(Counts& counts, const RowCheck& row, const FigureCheck& figure) {
  ++counts.figures;
  if (figure.verdict == Standing::reproduced) ++counts.reproduced;
  if (figure.verdict == Standing::explained) ++counts.explained;
  if (figure.verdict == Standing::unexplained) ++counts.unexplained;
  if (figure.verdict != Standing::lacking) return;
  ++counts.lacking;
  const std::string lacks = figure.lacks.value_or("");
  EXPECT_TRUE(std::ranges::any_of(k_true_reasons, [&](const char* each) { return lacks.starts_with(each); }))
      << row.line << ' ' << row.model << ": " << lacks;
}

Counts count_mixtures(const char* table) {
  Counts counts;
  for (const RowCheck& row : validate_table(load_published_table(k_published + std::string(table) + ".tsv")).rows)
    if (is_sparse(row.model))
      for (const FigureCheck& figure : row.figures) count_figure(counts, row, figure);
  return counts;
}

TEST(PublishedMixtures, AtMostOneFigureOfTwentyIsUnexplained) {
  SKIP_WITHOUT_EXAMPLE_DATA(k_published);
  Counts all;
  for (const char* table : {"moe_perf", "nemo_perf", "dgxc"}) {
    const Counts counts = count_mixtures(table);
    EXPECT_GT(counts.judged(), 30) << table;
    EXPECT_LE(20 * counts.unexplained, counts.judged()) << table;
    all.figures += counts.figures, all.lacking += counts.lacking, all.unexplained += counts.unexplained;
  }
  EXPECT_GT(all.judged(), 150);
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/docs/metrics.md");
  const std::string sentence = fmt::format("{} of {}\nare unexplained.", all.unexplained, all.judged());
  EXPECT_NE(page.find(sentence), std::string::npos) << sentence;
}

TEST(PublishedMixtures, MostFiguresOfACardFollowWithoutAnyDeviationButTheMeanOfSteps) {
  SKIP_WITHOUT_EXAMPLE_DATA(k_published);
  int64_t plain = 0, all = 0;
  for (const RowCheck& row : validate_table(load_published_table(std::string(k_published) + "moe_perf.tsv")).rows)
    for (const FigureCheck& figure : row.figures) {
      if (figure.verdict == Standing::lacking) continue;
      ++all;
      const bool mean = figure.deviations == std::vector<std::string>{"averaged_steps"};
      plain += figure.deviations.empty() || mean ? 1 : 0;
    }
  EXPECT_GE(4 * plain, 3 * all);
}

// Megatron-Bridge's sum, done by hand in the units of its formula.
TEST(FrameworkFlops, CountDeepSeekV4FlashAndGlm52AsTheirFrameworkDoes) {
  EXPECT_NEAR(framework_flops("DeepSeek-V4-Flash", 0, 4096).value_or(0), 90.78147072e9, 1e3);
  EXPECT_NEAR(framework_flops("DeepSeekV4 Flash", 43, 4096).value_or(0), 90.78147072e9, 1e3);
  EXPECT_NEAR(framework_flops("GLM-5.2", 78, 4096).value_or(0), 304.041759104e9, 1e3);
  EXPECT_FALSE(framework_flops("GLM-5.2", 4, 4096));
  EXPECT_FALSE(framework_flops("DeepSeek-V4 flash (16 layers)", 0, 4096));
  EXPECT_FALSE(framework_flops("", 0, 4096));
}

// Beyond the keys that are chosen, only the scores of all keys grow with the length.
TEST(FrameworkFlops, GrowSlowlyWithTheLength) {
  const double shorter = *framework_flops("GLM-5.2", 0, 65536), longer = *framework_flops("GLM-5.2", 0, 131072);
  EXPECT_GT(longer, shorter);
  EXPECT_LT(longer, 1.2 * shorter);
}

using Cells = std::map<std::string, std::string, std::less<>>;

FigureCheck figure_of(Cells cells) {
  const RowCheck check = validate_row(PublishedRow{2, std::move(cells)});
  EXPECT_EQ(check.figures.size(), 1u);
  return check.figures.empty() ? FigureCheck{} : check.figures.front();
}

Cells glm_row() {
  return {{"model", "GLM-5.2"},
          {"layers", "78"},
          {"hidden", "6144"},
          {"seq", "4096"},
          {"n_gpus", "192"},
          {"gbs", "1024"},
          {"framework", "Megatron-Bridge 0.6"},
          {"step_time_s", "64.78654"},
          {"tflops_per_gpu", "102.52"}};
}

TEST(PublishedMixtures, AnIndexersAttentionIsReproducedByItsFrameworksFormula) {
  const FigureCheck figure = figure_of(glm_row());
  EXPECT_EQ(figure.verdict, Standing::reproduced);
  EXPECT_EQ(figure.convention, "megatron-bridge");
  Cells tuned = glm_row();
  tuned["notes"] = "LoRA";
  EXPECT_EQ(figure_of(tuned).verdict, Standing::lacking);  // the formula trains all weights
  Cells wrong = glm_row();
  wrong["tflops_per_gpu"] = "103.02";
  EXPECT_EQ(figure_of(wrong).verdict, Standing::unexplained);
}

Cells qwen_row(const char* framework, const char* figure) {
  return {{"model", "Qwen3-30B-A3B"},
          {"seq", "4096"},
          {"n_gpus", "16"},
          {"gbs", "1024"},
          {"tp", "1"},
          {"framework", framework},
          {"step_time_s", "30.28955"},
          {"tflops_per_gpu", figure}};
}

// A log with one decimal gives a mean with two, a little above what the mean time gives.
TEST(PublishedMixtures, AMeanOfStepsExplainsDecimalsThatNoLogHas) {
  EXPECT_EQ(figure_of(qwen_row("Megatron-Bridge", "199.12")).deviations, (std::vector<std::string>{"averaged_steps"}));
  EXPECT_EQ(figure_of(qwen_row("Megatron-Bridge", "200.12")).verdict, Standing::unexplained);
  EXPECT_EQ(figure_of(qwen_row("torchtitan", "199.12")).verdict, Standing::unexplained);
  EXPECT_EQ(figure_of(qwen_row("Megatron-Bridge", "199.3")).verdict, Standing::unexplained);
}

TEST(PublishedMixtures, AVisionEncodersWorkIsNotGuessed) {
  Cells cells = qwen_row("Megatron-Bridge", "135.61");
  cells["model"] = "Qwen3.6-35B-A3B";
  cells["hidden"] = "2048";
  cells["layers"] = "40";
  cells["notes"] = "vision-language model, vision encoder included";
  const FigureCheck figure = figure_of(cells);
  EXPECT_EQ(figure.verdict, Standing::lacking);
  EXPECT_NE(figure.lacks.value_or("").find("vision encoder"), std::string::npos);
}

// Its printed width alone would make a dense GPT of it.
TEST(PublishedMixtures, AMixtureInNoCatalogueIsNotTakenForADenseModel) {
  Cells cells = qwen_row("Megatron-LM", "135.61");
  cells.insert({{"hidden", "3072"}, {"layers", "62"}, {"vocab", "200064"}, {"ep", "8"}});
  cells["model"] = "Unheard-Of-MoE";
  const FigureCheck figure = figure_of(cells);
  EXPECT_EQ(figure.verdict, Standing::lacking);
  EXPECT_NE(figure.lacks.value_or("").find("is in no catalogue"), std::string::npos);
}

TEST(PublishedMixtures, AModelCutToAFewLayersKeepsItsShape) {
  const FigureCheck figure = figure_of({{"model", "DeepSeek-V3 (4 layers + MTP)"},
                                        {"layers", "4"},
                                        {"hidden", "7168"},
                                        {"seq", "4096"},
                                        {"n_gpus", "8"},
                                        {"gbs", "512"},
                                        {"tp", "1"},
                                        {"step_time_s", "10.000"},
                                        {"tflops_per_gpu", "832.5"}});
  EXPECT_EQ(figure.verdict, Standing::reproduced);  // 31.757 GFLOP x 26214.4 tokens/s
  EXPECT_EQ(figure.convention, "megatron");
}

}  // namespace
}  // namespace tprimat::planner
