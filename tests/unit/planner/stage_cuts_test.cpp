#include "planner/stage_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner_samples.h"

namespace tprimat::planner {
namespace {

using Layers = std::vector<int64_t>;

// Of one sequence of 4096 tokens on H100, experts chosen evenly.
PartWeights weights_of(const ModelSpec& model) {
  Workload workload = sample_workload();
  workload.shape = model, workload.sequence_length = 4096, workload.routing = Routing::balanced;
  const Machine machine = *find_machine("H100");
  return weigh_parts(workload, machine, resolve_rates(built_in_parameters(), machine, workload));
}

Layers repeated(int64_t count, int64_t layers, Layers last) {
  Layers all(static_cast<size_t>(count), layers);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

// Megatron-Bridge's recipe for DeepSeek-V3 on 16 stages is "Et*4|(t*4|)*14tmL".
TEST(StageCuts, CutsDeepSeekV3AsItsRecipesDo) {
  const ModelSpec model = *find_model("deepseek_v3");
  EXPECT_EQ(cut_evenly(model, weights_of(model), 16, 1), repeated(15, 4, {1}));
  EXPECT_EQ(cut_evenly(model, weights_of(model), 4, 4), repeated(15, 4, {1}));
  EXPECT_EQ(cut_evenly(model, weights_of(model), 8, 1), repeated(7, 8, {5}));
}

TEST(StageCuts, ADenseModelsEndsAreLighter) {
  const ModelSpec model = *find_model("llama3.1_405b");
  EXPECT_EQ(cut_evenly(model, weights_of(model), 4, 1), (Layers{31, 32, 32, 31}));
  EXPECT_EQ(cut_evenly(model, weights_of(model), 16, 1), repeated(1, 7, repeated(14, 8, {7})));
}

double weight_of_layer(const ModelSpec& model, const PartWeights& weights, int64_t layer) {
  if (!model.experts || layer < model.experts->first_dense_layers) return weights.dense;
  return (layer + 1 - model.experts->first_dense_layers) % model.experts->layer_interval == 0 ? weights.experts
                                                                                              : weights.dense;
}

// Of a cut without virtual stages.
double busiest_stage(const ModelSpec& model, const PartWeights& weights, const Layers& cut) {
  double busiest = 0;
  int64_t layer = 0;
  for (size_t stage = 0; stage < cut.size(); ++stage) {
    double weight = (stage == 0 ? weights.first : 0) + (stage + 1 == cut.size() ? weights.last : 0);
    for (int64_t i = 0; i < cut[stage]; ++i) weight += weight_of_layer(model, weights, layer++);
    busiest = std::max(busiest, weight);
  }
  return busiest;
}

// Every model: all layers are there, and the heaviest stage is less than a layer above its share.
TEST(StageCuts, NoStageIsMuchHeavierThanItsShare) {
  for (const KnownModel& known : model_catalogue()) {
    const ModelSpec& model = known.spec;
    if (model.mamba) continue;
    const PartWeights weights = weights_of(model);
    const double all = busiest_stage(model, weights, {model.num_layers});
    for (const int64_t stages : {2, 3, 4, 8, 16}) {
      if (stages > model.num_layers) continue;
      const Layers cut = cut_evenly(model, weights, stages, 1);
      ASSERT_EQ(static_cast<int64_t>(cut.size()), stages);
      EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), int64_t{0}), model.num_layers) << model.name;
      EXPECT_GE(*std::ranges::min_element(cut), 0);
      EXPECT_LE(busiest_stage(model, weights, cut),
                std::max(all / static_cast<double>(stages), weights.last) + std::max(weights.dense, weights.experts))
          << model.name << ' ' << stages;
    }
  }
}

TEST(StageCuts, TheSameModelIsAlwaysCutTheSameWay) {
  const ModelSpec model = *find_model("kimi_k2");
  for (const int64_t chunks : {1, 2, 3})
    EXPECT_EQ(cut_evenly(model, weights_of(model), 8, chunks), cut_evenly(model, weights_of(model), 8, chunks));
}

}  // namespace
}  // namespace tprimat::planner
