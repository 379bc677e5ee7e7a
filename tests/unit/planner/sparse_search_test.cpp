#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "config/layout_rules.h"
#include "planner/planned_config.h"
#include "planner/tuning.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

PlanRequest sparse_request(const char* model, int64_t gpus, const char* family = "megatron_core") {
  PlanRequest request = sample_request(gpus);
  request.shape = *find_model(model);
  request.sequence_length = 4096;
  request.global_batch = 4 * gpus;
  request.family = find_family(family);
  request.routing = Routing::learned;
  return request;
}

SearchOutcome search(const PlanRequest& request, size_t most = 200000) {
  return search_layouts(request, built_in_parameters(), most);
}

std::vector<std::string> broken_rules(const PlanRequest& request, const Workload& workload) {
  const suite::LayoutTask task{request.shape, request.gpus, workload.layout.micro_batch, request.global_batch,
                               request.sequence_length};
  ParallelSpec spec = parallel_spec(workload.layout);
  spec.pipeline_layout = stated_stages(workload);
  return suite::list_broken_rules(task, spec);
}

// What `tprimat config validate` asks of a layout, for every layout of every sparse model.
TEST(SparseSearch, EveryLayoutIsAValidConfiguration) {
  int64_t seen = 0, listed = 0;
  for (const char* model : {"mixtral_8x7b", "deepseek_v3", "qwen3_30b_a3b", "llama4_maverick", "gpt_oss_20b"})
    for (const char* family : {"megatron_core", "fsdp2", "megatron_deepspeed", "transformers"})
      for (const int64_t gpus : {24, 64}) {
        PlanRequest request = sparse_request(model, gpus, family);
        request.machine.memory_bytes = 1e15;
        const SearchOutcome outcome = search(request, 100);
        for (const RankedLayout& plan : outcome.ranked) {
          const std::vector<std::string> broken = broken_rules(request, plan.workload);
          ASSERT_TRUE(broken.empty()) << model << ' ' << family << ' ' << gpus << ": " << broken.front();
          listed += plan.workload.layers_of_places.empty() ? 0 : 1;
          ++seen;
        }
      }
  EXPECT_GT(seen, 2000);
  EXPECT_GT(listed, 50);
}

TEST(SparseSearch, ExpertsAreSharedAndSplitWhereTheProgramCan) {
  PlanRequest request = sparse_request("mixtral_8x7b", 64);
  request.machine.memory_bytes = 1e15;
  std::set<int64_t> ranks, split;
  for (const RankedLayout& plan : search(request).ranked) {
    ranks.insert(plan.workload.layout.expert);
    split.insert(plan.workload.layout.expert_tensor);
  }
  EXPECT_EQ(ranks, (std::set<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(split, (std::set<int64_t>{1, 2, 4, 8}));
  request.family = find_family("transformers");
  for (const RankedLayout& plan : search(request).ranked) {
    EXPECT_EQ(plan.workload.layout.expert, 1);
    EXPECT_EQ(plan.workload.layout.expert_tensor, 1);
  }
}

TEST(SparseSearch, AFusedExchangeNeedsOtherRanks) {
  for (const char* family : {"megatron_core", "fsdp2"}) {
    PlanRequest request = sparse_request("deepseek_v2_lite", 32, family);
    request.machine.memory_bytes = 1e15;
    request.dispatcher = Dispatcher::deepep;
    const SearchOutcome outcome = search(request, 500);
    ASSERT_FALSE(outcome.ranked.empty()) << family;
    for (const RankedLayout& plan : outcome.ranked)
      EXPECT_GT(plan.workload.layout.expert * plan.workload.layout.expert_tensor, 1) << family;
  }
}

// Graphs, overlap and narrow states as published recipes have them: faster in every model, and no larger.
TEST(SparseSearch, ATunedPlanIsFaster) {
  for (const char* model : {"qwen3_30b_a3b", "deepseek_v3"}) {
    PlanRequest request = sparse_request(model, 256);
    request.routing = Routing::balanced;
    const SearchOutcome plain = search(request, 1);
    ASSERT_TRUE(has_recipes(request));
    tune(request);
    EXPECT_EQ(request.graphs, Graphs::parts);
    EXPECT_EQ(request.dispatcher, Dispatcher::hybridep);
    const SearchOutcome tuned = search(request, 1);
    ASSERT_FALSE(plain.ranked.empty() || tuned.ranked.empty());
    EXPECT_LT(tuned.ranked.front().time.total(), 0.95 * plain.ranked.front().time.total()) << model;
    EXPECT_EQ(tuned.ranked.front().workload.summed_bytes(), 2) << model;
  }
}

// Megatron-Core overlaps in some layouts alone; the others are timed without.
TEST(SparseSearch, OnlyLayoutsThatCanOverlapExchanges) {
  PlanRequest request = sparse_request("qwen3_30b_a3b", 32);
  request.overlaps_experts = true;
  int64_t with = 0, without = 0;
  for (const RankedLayout& plan : search(request, 3000).ranked) {
    EXPECT_EQ(plan.workload.overlaps_experts, can_overlap_experts(plan.workload.layout));
    EXPECT_DOUBLE_EQ(plan.time.total(), seconds_of(plan.workload, request.machine));
    (plan.workload.overlaps_experts ? with : without) += 1;
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

// 61 layers are prime: no pipeline divides them.
TEST(SparseSearch, DeepSeekV3HasPipelinesOfUnequalStages) {
  PlanRequest request = sparse_request("deepseek_v3", 512);
  request.machine.memory_bytes = 1e15;
  std::set<std::pair<int64_t, int64_t>> found;
  for (const RankedLayout& plan : search(request, 1 << 20).frontier)
    found.insert({plan.workload.layout.pipeline, plan.workload.layout.chunks});
  EXPECT_GT(found.size(), 1u);
  request.family = find_family("fsdp2");  // which takes no list of layers
  for (const RankedLayout& plan : search(request, 50).ranked) EXPECT_TRUE(plan.workload.layers_of_places.empty());
}

TEST(SparseSearch, OfAFewFindsWhatASearchOfAllFinds) {
  PlanRequest request = sparse_request("qwen3_30b_a3b", 32);
  const SearchOutcome all = search(request), few = search(request, 5);
  ASSERT_GT(all.fitting, 5);
  EXPECT_EQ(few.legal, all.legal);
  EXPECT_EQ(few.fitting, all.fitting);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(few.ranked[i].time.total(), all.ranked[i].time.total()) << i;
    EXPECT_EQ(few.ranked[i].memory.total(), all.ranked[i].memory.total()) << i;
  }
}

TEST(SparseSearch, TheSurveyFindsWhatTheSearchFinds) {
  const PlanRequest request = sparse_request("mixtral_8x7b", 32);
  const SearchOutcome all = search(request);
  ASSERT_FALSE(all.ranked.empty());
  LayoutSurvey survey(request, built_in_parameters());
  const auto best = survey.find_fastest([](const Layout&) { return true; });
  ASSERT_TRUE(best);
  EXPECT_EQ(best->time.total(), all.ranked.front().time.total());
  const auto without = survey.find_fastest([](const Layout& layout) { return layout.expert == 1; });
  for (const RankedLayout& plan : all.ranked)
    if (plan.workload.layout.expert == 1) {
      ASSERT_TRUE(without);
      EXPECT_NEAR(without->time.total() / plan.time.total(), 1, 2e-5);
      break;
    }
}

TEST(SparseSearch, BalancedRoutingIsNeverSlower) {
  for (const char* model : {"mixtral_8x7b", "qwen3_30b_a3b", "deepseek_v3"}) {
    PlanRequest request = sparse_request(model, 256);
    const double learned = search(request, 1).ranked.front().time.total();
    request.routing = Routing::balanced;
    EXPECT_LE(search(request, 1).ranked.front().time.total(), learned) << model;
  }
}

TEST(SparseSearch, AConfigurationHasExpertsAndStages) {
  PlanRequest request = sparse_request("deepseek_v3", 1024);
  request.dispatcher = Dispatcher::deepep;
  PlanLine line;
  line.pipeline = 16, line.data = 64, line.expert = 64, line.accumulation = 64;
  line.expert_ranks = 64, line.expert_tensor_ranks = 1;
  line.pipeline_layout = "Et*4|(t*4|)*14tmL";
  line.recompute = Recompute::selective;
  line.recompute_modules = std::vector{RecomputedModule::norms, RecomputedModule::latent_projections};
  const std::string text = render_planned_config(request, line, {}, Framework::mega);
  for (const char* part : {"EP: 64, ETP: 1", "pipeline_layout: \"Et*4|(t*4|)*14tmL\"", "dispatcher: deepep",
                           "routing: learned", "recompute_modules: [layernorm, mla_up_proj]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// Prime and huge numbers of GPUs end at once.
TEST(SparseSearch, OddNumbersOfGpusAreNoTrap) {
  for (const int64_t gpus : {1009, 99991, 1000000}) {
    PlanRequest request = sparse_request("deepseek_v3", gpus);
    const auto start = std::chrono::steady_clock::now();
    const SearchOutcome outcome = search(request, 3);
    EXPECT_GE(outcome.legal, outcome.fitting);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << gpus;
  }
}

}  // namespace
}  // namespace tprimat::planner
