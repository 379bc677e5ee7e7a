#pragma once

#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner_samples.h"

namespace tprimat::planner {

template <class T>
const T& pick(const std::vector<T>& from, std::mt19937& random) {
  return from[std::uniform_int_distribution<size_t>(0, from.size() - 1)(random)];
}

// Any training that the planner predicts: every machine, program, precision and way to split, also odd ones.
struct Drawn {
  Workload workload;
  Machine machine;
};

// Ranks of a stage that experts can be spread over.
inline void draw_experts(Workload& workload, std::mt19937& random) {
  Layout& l = workload.layout;
  const int64_t ranks = l.tensor * l.context * l.data;
  std::vector<std::pair<int64_t, int64_t>> splits;  // EP, ETP
  for (const int64_t expert : {1, 2, 4, 8, 16, 32, 64})
    for (const int64_t tensor : {1, 2, 4})
      if (ranks % (expert * tensor) == 0 && workload.shape.experts->count % expert == 0 && tensor <= l.tensor)
        splits.emplace_back(expert, tensor);
  std::tie(l.expert, l.expert_tensor) = pick(splits, random);
  workload.routing = pick<std::optional<Routing>>({{}, Routing::balanced, Routing::learned}, random);
  workload.dispatcher = pick<std::optional<Dispatcher>>(
      {{}, Dispatcher::allgather, Dispatcher::alltoall, Dispatcher::deepep, Dispatcher::hybridep}, random);
  workload.expert_load = pick<double>({0, 1, 1.3, 2}, random);
}

inline void draw_layout(Workload& workload, std::mt19937& random) {
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
  if (l.pipeline * l.chunks > workload.shape.num_layers) l.chunks = 1;
  l.recompute = pick<Recompute>({Recompute::none, Recompute::selective, Recompute::full}, random);
  l.sharding = family.fully_sharded
                   ? Sharding::weights
                   : pick<Sharding>({Sharding::none, Sharding::optimizer, Sharding::gradients}, random);
  if (workload.shape.experts) draw_experts(workload, random);
}

inline const std::vector<std::string>& dense_models() {
  static const std::vector<std::string> names = {"llama3_8b", "llama3_70b",  "llama3.1_405b",
                                                 "gpt_175b",  "qwen2.5_32b", "llama2_13b"};
  return names;
}

// With and without shared experts, latent attention, dense first layers, a latent width of experts.
inline const std::vector<std::string>& sparse_models() {
  static const std::vector<std::string> names = {"mixtral_8x7b", "qwen3_30b_a3b", "qwen3_235b_a22b", "deepseek_v2_lite",
                                                 "deepseek_v3",  "llama4_scout",  "gpt_oss_120b",    "kimi_k2"};
  return names;
}

inline Drawn draw(std::mt19937& random, const std::vector<std::string>& models) {
  Drawn drawn;
  drawn.machine = pick(machines(), random);
  Workload& workload = drawn.workload;
  workload.shape = find_counted_model(pick(models, random))->spec;
  do {
    workload.family = &pick(families(), random);
  } while (workload.shape.experts && workload.family->own_trainer);
  workload.sequence_length = pick<int64_t>({512, 2048, 4096, 8192, 32768}, random);
  do {
    workload.precision = pick<PlanPrecision>({PlanPrecision::bf16, PlanPrecision::fp16, PlanPrecision::fp8}, random);
  } while (drawn.machine.peak(workload.precision) <= 0);
  draw_layout(workload, random);
  return drawn;
}

inline Drawn draw(std::mt19937& random) { return draw(random, dense_models()); }

}  // namespace tprimat::planner
