#include "planner/layout_space.h"

#include <algorithm>

namespace tprimat::planner {
namespace {

constexpr int64_t k_max_chunks = 16;

std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t each = 1; each <= std::min(number, most); ++each)
    if (number % each == 0) found.push_back(each);
  return found;
}

// Megatron-Core, whose rule it is, asks that tensor-parallel ranks divide the key heads. They split dense MLPs and
// shared experts.
bool splits_evenly(const ModelSpec& m, int64_t tensor) {
  const bool mlp = m.dense_layers() == 0 || m.ffn_hidden_size % tensor == 0;
  const bool shared = !m.experts || m.experts->shared_ffn_hidden_size % tensor == 0;
  return m.num_key_value_heads % tensor == 0 && m.num_attention_heads % tensor == 0 && mlp && shared;
}

std::vector<int64_t> tensor_sizes(const PlanRequest& request) {
  std::vector<int64_t> sizes;
  for (const int64_t each : divisors(request.gpus, request.machine.gpus_per_domain)) {
    if (each > 1 && (request.data_parallel_only || !request.family->tensor_parallel)) break;
    if (splits_evenly(request.shape, each)) sizes.push_back(each);
  }
  return sizes;
}

std::vector<int64_t> context_sizes(const PlanRequest& request) {
  constexpr int64_t k_max = 64;
  constexpr int64_t k_min_tokens = 1024;  // per rank: below, exchanges outweigh what is computed
  std::vector<int64_t> sizes;
  const ModelSpec& model = request.shape;
  const bool short_window = model.sliding_window && *model.sliding_window < request.sequence_length;
  for (const int64_t each : divisors(request.gpus, short_window && !request.family->own_trainer ? 1 : k_max)) {
    if (each > 1 && (request.data_parallel_only || !request.family->context_parallel)) break;
    const bool even = each == 1 || request.sequence_length % (2 * each) == 0;
    if (even && (each == 1 || request.sequence_length / each >= k_min_tokens)) sizes.push_back(each);
  }
  return sizes;
}

std::vector<Sharding> shardings(const PlanRequest& request, const Layout& layout) {
  const Family& family = *request.family;
  if (layout.data * layout.context == 1) return {family.fully_sharded ? Sharding::weights : Sharding::none};
  std::vector<Sharding> all;
  const auto add = [&](Sharding sharding) {
    if (sharding <= request.most_sharding) all.push_back(sharding);
  };
  if (!family.fully_sharded && !family.sharded_optimizer) add(Sharding::none);
  if (!family.fully_sharded) add(Sharding::optimizer);
  if (family.own_trainer) add(Sharding::gradients), add(Sharding::weights);
  if (family.fully_sharded || (family.shards_weights && layout.tensor * layout.context * layout.pipeline == 1))
    add(Sharding::weights);
  return all;
}

bool pipelines(const PlanRequest& request) { return request.family->pipeline_parallel && !request.data_parallel_only; }

std::vector<Cut> cuts_by_rule(const PlanRequest& request) {
  const int64_t layers = request.shape.num_layers;
  std::vector<Cut> all;
  for (const int64_t each : divisors(layers, pipelines(request) ? request.gpus : 1)) all.push_back({each, layers});
  if (!pipelines(request) || request.equal_stages || !request.family->counts_ends) return all;
  for (const int64_t each : divisors(layers + 2, std::min(request.gpus, layers)))
    if (each > 1) all.push_back({each, layers + 2, true});
  return all;
}

// A chunk without layers may only be the last one, which has the head; and a rule that cuts the same needs no list.
bool is_worth_listing(const std::vector<int64_t>& layers) {
  if (std::ranges::count(layers, 0) > (layers.back() == 0 ? 1 : 0)) return false;
  return std::ranges::any_of(layers, [&](int64_t each) { return each != layers.front(); });
}

Cut listed_cut(const PlanRequest& request, const PartWeights& weights, int64_t pipeline) {
  Cut cut{pipeline, request.shape.num_layers};
  for (const int64_t chunks : {1, 2, 3, 4, 6, 8, 12, 16}) {
    if (pipeline * chunks > request.shape.num_layers + 1) break;
    std::vector<int64_t> layers = cut_evenly(request.shape, weights, pipeline, chunks);
    if (is_worth_listing(layers)) cut.listed.emplace(chunks, std::move(layers));
  }
  return cut;
}

// A dense model is cut by the rule where the rule can; a sparse one, whose layers and ends weigh differently, may be
// cut better.
void add_listed_cuts(const PlanRequest& request, const PartWeights& weights, std::vector<Cut>& all) {
  if (!request.family->explicit_stages || !pipelines(request)) return;
  for (const int64_t each : divisors(request.gpus, request.shape.num_layers)) {
    const bool by_rule = std::ranges::any_of(all, [&](const Cut& cut) { return cut.pipeline == each; });
    if (each == 1 || (by_rule && !request.shape.is_sparse())) continue;
    if (Cut cut = listed_cut(request, weights, each); !cut.listed.empty()) all.push_back(std::move(cut));
  }
}

// The fused exchanges are for experts on other ranks; torchtitan has its one without tensor parallelism.
bool suits_dispatcher(const PlanRequest& request, const Layout& layout, const ExpertSizes& sizes) {
  if (request.dispatcher != Dispatcher::deepep && request.dispatcher != Dispatcher::hybridep) return true;
  if (request.family->fully_sharded) return sizes.ranks > 1 && layout.tensor == 1;
  return sizes.ranks * sizes.tensor > 1;
}

// Whether the ranks of the stage can share a layer's experts so. torchtitan's groups of experts are whole groups of
// context and tensor parallelism, and without EP it splits experts as it splits the rest (parallel_dims.py).
bool suits_mesh(const PlanRequest& request, const Layout& layout, const ExpertSizes& sizes) {
  if (!suits_dispatcher(request, layout, sizes)) return false;
  if (!request.family->fully_sharded) return true;
  if (sizes.ranks == 1) return sizes.tensor == layout.tensor;
  const int64_t inner = layout.context * (sizes.tensor == 1 ? layout.tensor : 1);
  return layout.data * layout.context > 1 && sizes.ranks % inner == 0 && sizes.ranks * sizes.tensor > 1;
}

std::vector<ExpertSizes> expert_sizes(const PlanRequest& request, const Layout& layout) {
  const auto& experts = request.shape.experts;
  const Family& family = *request.family;
  if (!experts || !family.expert_parallel || request.data_parallel_only) return {{1, 1}};
  // DeepSpeed shares experts among the ranks that have different tokens.
  const int64_t ranks = layout.data * (family.deepspeed_states ? 1 : layout.tensor * layout.context);
  std::vector<ExpertSizes> all;
  for (const int64_t tensor : {int64_t{1}, layout.tensor}) {
    if (tensor > 1 && (!family.expert_tensor || experts->ffn_hidden_size % tensor != 0)) continue;
    const int64_t shared = family.deepspeed_states ? ranks : ranks / tensor;
    for (const int64_t each : divisors(experts->count, shared))
      if (shared % each == 0 && suits_mesh(request, layout, {each, tensor})) all.push_back({each, tensor});
    if (layout.tensor == 1) break;
  }
  return all;
}

}  // namespace

LayoutSpace::LayoutSpace(const PlanRequest& request, const PartWeights& weights)
    : request_(request),
      tensors_(tensor_sizes(request)),
      contexts_(context_sizes(request)),
      cuts_(cuts_by_rule(request)) {
  add_listed_cuts(request, weights, cuts_);
}

void LayoutSpace::visit(const Visit& visit) const {
  for (const int64_t tensor : tensors_)
    for (const int64_t context : contexts_)
      for (const Cut& cut : cuts_) visit_grid(tensor, context, cut, visit);
}

void LayoutSpace::visit_grid(int64_t tensor, int64_t context, const Cut& cut, const Visit& visit) const {
  const int64_t model = tensor * context * cut.pipeline;
  if (request_.gpus % model != 0 || request_.sequence_length / context % tensor != 0) return;
  Layout layout;
  layout.tensor = tensor, layout.context = context, layout.pipeline = cut.pipeline;
  layout.ends_as_layers = cut.ends_as_layers;
  layout.data = request_.gpus / model;
  layout.sequence_parallel = !(request_.shape.is_sparse() && request_.family->deepspeed_states);
  if (request_.global_batch % layout.data != 0 || (request_.torchtitan_rules && !suits_torchtitan(layout))) return;
  constexpr int64_t k_max_micro_batch = 16;
  for (const int64_t micro : divisors(request_.global_batch / layout.data, k_max_micro_batch)) {
    layout.micro_batch = micro;
    visit_chunks(layout, cut, visit);
  }
}

// src/suite/launch/tita.cpp: FSDP2 is what mixes precisions, and TP and CP cut a sequence into even parts. Its Qwen 3
// has no pipeline, its gpt-oss neither that nor context parallelism.
bool LayoutSpace::suits_torchtitan(const Layout& layout) const {
  const ModelSpec& m = request_.shape;
  const int64_t parts = 2 * layout.tensor * layout.context;
  const bool qwen3 = !m.latent_attention && (m.qk_norm || m.head_dim * m.num_attention_heads != m.hidden_size);
  const bool gpt_oss = m.attention_sinks.value_or(false);
  if ((qwen3 && layout.pipeline > 1) || (gpt_oss && layout.pipeline * layout.context > 1)) return false;
  const bool tied = m.tied_embeddings && layout.pipeline > 1;
  return request_.sequence_length % parts == 0 && !tied &&
         (layout.data * layout.context > 1 || layout.tensor * layout.pipeline == 1);
}

// An interleaved pipeline is filled in whole rounds.
bool LayoutSpace::takes_chunks(const Layout& layout, int64_t chunks) const {
  const int64_t rounds = request_.global_batch / (layout.data * layout.micro_batch);
  const bool whole = layout.pipeline > 1 && rounds % layout.pipeline == 0;
  return chunks == 1 || (chunks <= k_max_chunks && whole && request_.family->interleaves);
}

void LayoutSpace::visit_chunks(Layout layout, const Cut& cut, const Visit& visit) const {
  const int64_t rounds = request_.global_batch / (layout.data * layout.micro_batch);
  if (request_.torchtitan_rules && rounds < layout.pipeline) return;
  const auto take = [&](int64_t chunks, const std::vector<int64_t>* places) {
    layout.chunks = chunks;
    layout.delays_weights = request_.zero_bubble && cut.pipeline > 1 && chunks == 1;
    visit_experts(layout, places, visit);
  };
  for (const auto& [chunks, places] : cut.listed)
    if (takes_chunks(layout, chunks)) take(chunks, &places);
  if (!cut.listed.empty()) return;
  for (const int64_t chunks : divisors(cut.units / cut.pipeline, takes_chunks(layout, k_max_chunks) ? k_max_chunks : 1))
    take(chunks, nullptr);
}

void LayoutSpace::visit_experts(Layout layout, const std::vector<int64_t>* places, const Visit& visit) const {
  for (const ExpertSizes& sizes : expert_sizes(request_, layout)) {
    layout.expert = sizes.ranks, layout.expert_tensor = sizes.tensor;
    visit_memory_savers(layout, places, visit);
  }
}

void LayoutSpace::visit_memory_savers(Layout layout, const std::vector<int64_t>* places, const Visit& visit) const {
  for (const Sharding sharding : shardings(request_, layout))
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      const Family& family = *request_.family;
      const bool nothing_to_select =
          family.fused_attention && !family.operator_recompute && !family.own_trainer && !request_.selects_modules();
      if (recompute == Recompute::selective && nothing_to_select) continue;
      layout.sharding = sharding, layout.recompute = recompute;
      visit(layout, places);
    }
}

}  // namespace tprimat::planner
