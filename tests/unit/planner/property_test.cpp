#include <gtest/gtest.h>

#include <random>

#include "planner_samples.h"

namespace tprimat::planner {
namespace {

template <class T>
const T& pick(const std::vector<T>& from, std::mt19937& random) {
  return from[std::uniform_int_distribution<size_t>(0, from.size() - 1)(random)];
}

// Any training that the planner predicts: every machine, program, precision and way to split, also odd ones.
struct Drawn {
  Workload workload;
  Machine machine;
};

void draw_layout(Workload& workload, std::mt19937& random) {
  Layout& l = workload.layout;
  const Family& family = *workload.family;
  if (family.tensor_parallel) l.tensor = pick<int64_t>({1, 2, 4, 8}, random);
  if (family.pipeline_parallel) l.pipeline = pick<int64_t>({1, 1, 2, 3, 4, 7, 8, 16}, random);
  if (family.context_parallel) l.context = pick<int64_t>({1, 1, 2, 4}, random);
  l.data = pick<int64_t>({1, 2, 3, 8, 64, 512}, random);
  l.micro_batch = pick<int64_t>({1, 2, 3, 4}, random);
  const int64_t rounds = pick<int64_t>({1, 2, 3, 16}, random);
  workload.global_batch = l.data * l.micro_batch * l.pipeline * rounds;
  l.ends_as_layers = family.counts_ends && l.pipeline > 1 && pick<int64_t>({0, 1}, random) == 1;
  if (family.interleaves && l.pipeline > 1) l.chunks = pick<int64_t>({1, 1, 2, 3}, random);
  l.recompute = pick<Recompute>({Recompute::none, Recompute::selective, Recompute::full}, random);
  l.sharding = family.fully_sharded
                   ? Sharding::weights
                   : pick<Sharding>({Sharding::none, Sharding::optimizer, Sharding::gradients}, random);
}

Drawn draw(std::mt19937& random) {
  Drawn drawn;
  drawn.machine = pick(machines(), random);
  Workload& workload = drawn.workload;
  workload.shape = find_counted_model(pick<std::string>({"llama3_8b", "llama3_70b", "llama3.1_405b", "gpt_175b",
                                                         "qwen2.5_32b", "llama2_13b"},
                                                        random))
                       ->spec;
  workload.family = &pick(families(), random);
  workload.sequence_length = pick<int64_t>({512, 2048, 4096, 8192, 32768}, random);
  do {
    workload.precision = pick<PlanPrecision>({PlanPrecision::bf16, PlanPrecision::fp16, PlanPrecision::fp8}, random);
  } while (drawn.machine.peak(workload.precision) <= 0);
  draw_layout(workload, random);
  return drawn;
}

constexpr int k_rounds = 2000;

TEST(Properties, DoublingABandwidthOrAPeakNeverSlows) {
  std::mt19937 random(3);
  for (int round = 0; round < k_rounds; ++round) {
    const Drawn drawn = draw(random);
    const double before = seconds_of(drawn.workload, drawn.machine);
    ASSERT_TRUE(std::isfinite(before) && before > 0) << round;
    for (double Machine::*const figure : {&Machine::memory_bandwidth, &Machine::link_bandwidth,
                                          &Machine::network_bandwidth, &Machine::peak_16, &Machine::peak_8}) {
      Machine faster = drawn.machine;
      faster.*figure *= 2;
      EXPECT_LE(seconds_of(drawn.workload, faster), before * (1 + 1e-12))
          << round << ' ' << drawn.machine.id << ' ' << drawn.workload.family->id;
    }
  }
}

TEST(Properties, MoreSequencesInAMicroBatchNeedNoLessMemory) {
  std::mt19937 random(5);
  for (int round = 0; round < k_rounds; ++round) {
    Workload workload = draw(random).workload;
    const double before = estimate_memory(workload, built_in_parameters()).total();
    ASSERT_TRUE(std::isfinite(before) && before > 0) << round;
    workload.layout.micro_batch *= 2, workload.global_batch *= 2;
    EXPECT_GE(estimate_memory(workload, built_in_parameters()).total(), before) << round;
  }
}

TEST(Properties, ShardingMoreNeedsNoMoreMemory) {
  std::mt19937 random(9);
  for (int round = 0; round < k_rounds; ++round) {
    Workload workload = draw(random).workload;
    // Our own trainer's buffers of exchange may take more than a stage saves.
    if (workload.family->fully_sharded || workload.family->id == "native") continue;
    double before = INFINITY;
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::gradients}) {
      workload.layout.sharding = sharding;
      const double bytes = estimate_memory(workload, built_in_parameters()).total();
      EXPECT_LE(bytes, before * (1 + 1e-12)) << round << ' ' << workload.family->id;
      before = bytes;
    }
  }
}

TEST(Properties, RecomputingAllTakesNoLessTime) {
  std::mt19937 random(13);
  for (int round = 0; round < k_rounds; ++round) {
    Drawn drawn = draw(random);
    drawn.workload.layout.recompute = Recompute::none;
    const double time = seconds_of(drawn.workload, drawn.machine);
    drawn.workload.layout.recompute = Recompute::full;
    EXPECT_GE(seconds_of(drawn.workload, drawn.machine), time * (1 - 1e-12)) << round;
  }
}

}  // namespace
}  // namespace tprimat::planner
