#include "planner/search.h"

#include <gtest/gtest.h>

#include "config/layout_rules.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

constexpr double k_alike = 2e-5;  // layouts closer than this are sorted by simplicity

SearchOutcome all_layouts(const PlanRequest& request) { return search_layouts(request, built_in_parameters(), 100000); }

TEST(Search, EveryLayoutMultipliesOut) {
  const PlanRequest request = sample_request(64);
  const SearchOutcome outcome = all_layouts(request);
  ASSERT_GT(outcome.fitting, 50);
  for (const RankedLayout& plan : outcome.ranked) {
    const Layout& l = plan.workload.layout;
    EXPECT_EQ(l.num_gpus(), 64);
    EXPECT_EQ(request.global_batch % (l.data * l.micro_batch), 0);
    EXPECT_EQ((request.shape.num_layers + (l.ends_as_layers ? 2 : 0)) % (l.pipeline * l.chunks), 0);
    EXPECT_EQ(request.shape.num_attention_heads % l.tensor, 0);
  }
}

// What `tprimat config validate` asks of a layout.
void expect_valid(const PlanRequest& request, const SearchOutcome& outcome) {
  for (const RankedLayout& plan : outcome.ranked) {
    const Workload& workload = plan.workload;
    const suite::LayoutTask task{request.shape, request.gpus, workload.layout.micro_batch, request.global_batch,
                                 request.sequence_length};
    ParallelSpec spec = parallel_spec(workload.layout);
    spec.pipeline_layout = stated_stages(workload);
    const std::vector<std::string> broken = suite::list_broken_rules(task, spec);
    EXPECT_TRUE(broken.empty()) << request.shape.name << ' ' << request.gpus << ": " << broken.front();
  }
}

TEST(Search, EveryLayoutIsAValidConfiguration) {
  int64_t seen = 0;
  for (const char* model : {"llama3_8b", "llama3.1_405b", "qwen2.5_7b", "mistral_7b", "gpt3_175b"})
    for (const char* family : {"megatron_core", "fsdp2", "megatron_deepspeed", "nanotron", "transformers"})
      for (const int64_t gpus : {1, 8, 24, 64, 512, 1536}) {
        PlanRequest request = sample_request(gpus);
        const auto shape = find_counted_model(model);
        ASSERT_TRUE(shape) << model;
        request.shape = shape->spec;
        request.family = find_family(family);
        request.global_batch = gpus * 3;
        request.machine.memory_bytes = 1e15;
        const SearchOutcome outcome = all_layouts(request);
        expect_valid(request, outcome);
        seen += outcome.fitting;
      }
  EXPECT_GT(seen, 5000);
}

TEST(Search, Llama405BRunsOn16384GPUs) {
  PlanRequest request = sample_request(16384);
  request.shape = find_counted_model("llama3.1_405b")->spec;
  request.global_batch = 2048;
  const SearchOutcome outcome = all_layouts(request);
  ASSERT_GT(outcome.fitting, 100);
  const Layout& best = outcome.ranked.front().workload.layout;
  EXPECT_TRUE(best.ends_as_layers);  // 126 layers are 2 x 3 x 3 x 7
  EXPECT_GT(best.pipeline, 2);
  request.equal_stages = true;
  for (const RankedLayout& plan : all_layouts(request).ranked) EXPECT_FALSE(plan.workload.layout.ends_as_layers);
}

// 126 layers in 12 stages: neither they nor 128 divide, and Megatron-Core takes a list.
TEST(Search, ADenseModelIsCutByAListWhereNoRuleCan) {
  PlanRequest request = sample_request(96);
  request.shape = find_counted_model("llama3.1_405b")->spec;
  request.global_batch = 96;
  request.machine.memory_bytes = 1e15;
  bool seen = false;
  for (const RankedLayout& plan : all_layouts(request).ranked) {
    const bool listed = !plan.workload.layers_of_places.empty();
    const int64_t stages = plan.workload.layout.pipeline;
    EXPECT_EQ(listed, 126 % stages != 0 && 128 % stages != 0) << stages;
    seen = seen || (listed && stages == 12);
  }
  EXPECT_TRUE(seen);
}

TEST(Search, ALaunchersLimitsAreKept) {
  PlanRequest request = sample_request(64);
  request.data_parallel_only = true;
  request.most_sharding = Sharding::optimizer;
  const SearchOutcome outcome = all_layouts(request);
  EXPECT_GT(outcome.legal, 0);
  for (const RankedLayout& plan : outcome.ranked) {
    EXPECT_EQ(plan.workload.layout.data, 64);
    EXPECT_LE(plan.workload.layout.sharding, Sharding::optimizer);
  }
}

TEST(Search, IsSortedAndTheFrontierIsUndominated) {
  const SearchOutcome outcome = all_layouts(sample_request(64));
  for (size_t i = 1; i < outcome.ranked.size(); ++i)
    EXPECT_LE(outcome.ranked[i - 1].time.total(), outcome.ranked[i].time.total() * (1 + k_alike));
  ASSERT_FALSE(outcome.frontier.empty());
  EXPECT_EQ(outcome.frontier.front().time.total(), outcome.ranked.front().time.total());
  for (size_t i = 1; i < outcome.frontier.size(); ++i) {
    EXPECT_GE(outcome.frontier[i].time.total() * (1 + k_alike), outcome.frontier[i - 1].time.total());
    EXPECT_LT(outcome.frontier[i].memory.total(), outcome.frontier[i - 1].memory.total());
  }
}

std::vector<std::pair<double, double>> seconds_and_bytes(const std::vector<RankedLayout>& plans) {
  std::vector<std::pair<double, double>> all;
  for (const RankedLayout& plan : plans) all.emplace_back(plan.time.total(), plan.memory.total());
  return all;
}

// A search for a few leaves the others unsimulated, and finds the same few and the same frontier.
TEST(Search, OfAFewFindsWhatASearchOfAllFinds) {
  for (const char* model : {"llama3_8b", "llama3.1_405b", "gpt_175b"})
    for (const int64_t gpus : {64, 1024})
      for (const bool zero_bubble : {false, true}) {
        PlanRequest request = sample_request(gpus);
        request.shape = find_counted_model(model)->spec;
        request.global_batch = 2 * gpus;
        request.machine.memory_bytes = 192e9;
        request.zero_bubble = zero_bubble;
        const SearchOutcome all = all_layouts(request), few = search_layouts(request, built_in_parameters(), 7);
        ASSERT_GT(all.fitting, 7) << model << gpus;
        EXPECT_EQ(few.legal, all.legal);
        EXPECT_EQ(few.fitting, all.fitting);
        std::vector<std::pair<double, double>> first = seconds_and_bytes(all.ranked);
        first.resize(7);
        EXPECT_EQ(seconds_and_bytes(few.ranked), first) << model << gpus;
        EXPECT_EQ(seconds_and_bytes(few.frontier), seconds_and_bytes(all.frontier)) << model << gpus;
      }
}

TEST(Search, TheLeastTimeIsNeverMoreThanTheSimulated) {
  PlanRequest request = sample_request(512);
  request.shape = find_counted_model("llama3.1_405b")->spec;
  request.machine.memory_bytes = 1e15;
  const SearchOutcome outcome = all_layouts(request);
  ASSERT_GT(outcome.fitting, 500);
  const Rates rates = resolve_rates(built_in_parameters(), request.machine, outcome.ranked.front().workload);
  StepClock clock(request.machine, rates);
  for (const RankedLayout& plan : outcome.ranked) {
    const double least = clock.least(plan.workload).total();
    EXPECT_LE(least, plan.time.total() * (1 + 1e-12));
    EXPECT_DOUBLE_EQ(clock.time(plan.workload).total(), plan.time.total());
  }
}

TEST(Search, MoreMemoryNeverMakesAFittingLayoutNotFit) {
  PlanRequest request = sample_request(16);
  int64_t before = 0;
  for (const double gigabytes : {16.0, 24.0, 40.0, 80.0, 141.0, 288.0}) {
    request.machine.memory_bytes = gigabytes * 1e9;
    const SearchOutcome outcome = all_layouts(request);
    EXPECT_GE(outcome.fitting, before) << gigabytes;
    before = outcome.fitting;
  }
  EXPECT_GT(before, 0);
}

TEST(Search, WhereNothingFitsTheSmallestIsNamed) {
  PlanRequest request = sample_request(1);
  const SearchOutcome outcome = all_layouts(request);
  EXPECT_EQ(outcome.fitting, 0);
  ASSERT_TRUE(outcome.smallest.has_value());
  EXPECT_GT(outcome.smallest->memory.total(), request.machine.memory_bytes);
}

}  // namespace
}  // namespace tprimat::planner
