#include "planner/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "base/check.h"
#include "text/enum_names.h"

namespace tprimat::planner {
namespace {

std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t each = 1; each <= std::min(number, most); ++each)
    if (number % each == 0) found.push_back(each);
  return found;
}

// Megatron-Core, whose rule it is, asks that tensor-parallel ranks divide the key heads.
std::vector<int64_t> tensor_sizes(const PlanRequest& request) {
  const ModelSpec& m = request.shape;
  std::vector<int64_t> sizes;
  for (const int64_t each : divisors(request.gpus, request.machine.gpus_per_domain)) {
    if (each > 1 && (request.data_parallel_only || !request.family->tensor_parallel)) break;
    if (m.num_key_value_heads % each == 0 && m.num_attention_heads % each == 0 && m.ffn_hidden_size % each == 0)
      sizes.push_back(each);
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

// How a pipeline may cut the layers.
struct Cut {
  int64_t pipeline = 1;
  int64_t units = 0;  // that PP x VP divides: layers, and embedding and loss where they count as such
  bool ends_as_layers = false;
};

std::vector<Cut> cuts(const PlanRequest& request) {
  const int64_t layers = request.shape.num_layers;
  const bool pipelines = request.family->pipeline_parallel && !request.data_parallel_only;
  std::vector<Cut> all;
  for (const int64_t each : divisors(layers, pipelines ? request.gpus : 1)) all.push_back({each, layers, false});
  if (!pipelines || request.equal_stages || !request.family->counts_ends) return all;
  for (const int64_t each : divisors(layers + 2, std::min(request.gpus, layers)))
    if (each > 1) all.push_back({each, layers + 2, true});
  return all;
}

struct Candidate {
  Layout layout;
  double seconds = 0;  // the least that it can take
  double bytes = 0;
};

struct Timed {
  Layout layout;
  StepTime time;
  double bytes = 0;
};

constexpr double k_alike = 1e-5;  // layouts closer than this are equally fast

// Of layouts that are equally fast the one that splits less comes first.
std::tuple<int64_t, int64_t, double> rank(const Timed& each) {
  const Layout& l = each.layout;
  return {std::llround(std::log(each.time.total()) / k_alike), l.tensor * l.context * l.pipeline * l.chunks,
          each.bytes};
}

// The times of the fastest so many.
class Fastest {
 public:
  explicit Fastest(size_t most) : most_(most) {}
  void add(double seconds) {
    slowest_first_.push(seconds);
    if (slowest_first_.size() > most_) slowest_first_.pop();
  }
  bool beat(double seconds) const {
    return slowest_first_.size() == most_ && (most_ == 0 || seconds > slowest_first_.top() * (1 + 2 * k_alike));
  }

 private:
  size_t most_;
  std::priority_queue<double> slowest_first_;
};

// The layouts that no other one beats in both time and memory.
class ParetoFrontier {
 public:
  void add(double seconds, double bytes) {
    if (beats(seconds, bytes)) return;
    auto each = bytes_.lower_bound(seconds);
    while (each != bytes_.end() && each->second >= bytes) each = bytes_.erase(each);
    bytes_[seconds] = bytes;
  }
  bool beats(double seconds, double bytes) const {
    const auto after = bytes_.upper_bound(seconds);
    return after != bytes_.begin() && std::prev(after)->second <= bytes;
  }

 private:
  std::map<double, double> bytes_;  // by seconds; each later one is smaller
};

class Search {
 public:
  Search(const PlanRequest& request, const ParameterSet& parameters, size_t most)
      : request_(request), parameters_(parameters), most_(most), clock_(request_.machine, rates_) {
    base_.shape = request.shape;
    base_.sequence_length = request.sequence_length;
    base_.global_batch = request.global_batch;
    base_.precision = request.precision;
    base_.family = request.family;
    base_.keeps_masters = request.keeps_masters, base_.repeats_core = request.repeats_core;
    base_.moment_bytes = request.moment_bytes, base_.offload = request.offload;
    rates_ = resolve_rates(parameters, request.machine, base_);
  }

  SearchOutcome run() {
    for (const int64_t tensor : tensor_sizes(request_))
      for (const int64_t context : context_sizes(request_))
        for (const Cut& cut : cuts(request_)) try_grid(tensor, context, cut);
    finish();
    return std::move(outcome_);
  }

 private:
  void try_grid(int64_t tensor, int64_t context, const Cut& cut) {
    const int64_t model = tensor * context * cut.pipeline;
    if (request_.gpus % model != 0 || base_.sequence_length / context % tensor != 0) return;
    Layout layout;
    layout.tensor = tensor, layout.context = context, layout.pipeline = cut.pipeline;
    layout.ends_as_layers = cut.ends_as_layers;
    layout.data = request_.gpus / model;
    if (base_.global_batch % layout.data != 0 || (request_.torchtitan_rules && !suits_torchtitan(layout))) return;
    constexpr int64_t k_max_micro_batch = 16;
    for (const int64_t micro : divisors(base_.global_batch / layout.data, k_max_micro_batch)) {
      layout.micro_batch = micro;
      try_pipeline(layout, cut);
    }
  }

  // src/suite/launch/tita.cpp: FSDP2 is what mixes precisions, and TP and CP cut a sequence into even parts.
  bool suits_torchtitan(const Layout& layout) const {
    const int64_t parts = 2 * layout.tensor * layout.context;
    const bool tied = request_.shape.tied_embeddings && layout.pipeline > 1;
    return base_.sequence_length % parts == 0 && !tied &&
           (layout.data * layout.context > 1 || layout.tensor * layout.pipeline == 1);
  }

  void try_pipeline(Layout layout, const Cut& cut) {
    const int64_t rounds = base_.global_batch / (layout.data * layout.micro_batch);
    if (request_.torchtitan_rules && rounds < layout.pipeline) return;
    const bool whole = layout.pipeline > 1 && rounds % layout.pipeline == 0;
    const bool interleaves = whole && request_.family->interleaves;
    for (const int64_t chunks : divisors(cut.units / cut.pipeline, interleaves ? 16 : 1)) {
      layout.chunks = chunks;
      layout.delays_weights = request_.zero_bubble && cut.pipeline > 1 && chunks == 1;
      try_memory_savers(layout);
    }
  }

  void try_memory_savers(Layout layout) {
    for (const Sharding sharding : shardings(request_, layout))
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        const Family& family = *request_.family;
        const bool nothing_to_select = family.fused_attention && !family.operator_recompute && !family.own_trainer;
        if (recompute == Recompute::selective && nothing_to_select) continue;
        layout.sharding = sharding, layout.recompute = recompute;
        try_layout(layout);
      }
  }

  void try_layout(const Layout& layout) {
    ++outcome_.legal;
    base_.layout = layout;
    const MemoryEstimate memory = estimate_memory(base_, parameters_);
    const double bytes = memory.total();
    if (bytes > request_.usable_memory * request_.machine.memory_bytes) {
      if (outcome_.fitting == 0 && (!outcome_.smallest || bytes < outcome_.smallest->memory.total()))
        outcome_.smallest = RankedLayout{base_, {}, memory};
      return;
    }
    ++outcome_.fitting;
    candidates_.push_back({layout, clock_.least(base_).total(), bytes});
  }

  RankedLayout plan_of(const Timed& each) const {
    Workload workload = base_;
    workload.layout = each.layout;
    return {workload, each.time, estimate_memory(workload, parameters_)};
  }

  void finish() {
    if (outcome_.fitting > 0) outcome_.smallest.reset();
    const std::vector<Timed> timed = time_those_that_matter();
    for (size_t i = 0; i < std::min(most_, timed.size()); ++i) outcome_.ranked.push_back(plan_of(timed[i]));
    double least = request_.machine.memory_bytes;
    for (const Timed& each : timed) {
      if (each.bytes >= least) continue;
      least = each.bytes;
      outcome_.frontier.push_back(plan_of(each));
    }
  }

  // In the order of the least that each can take. A layout is simulated unless even that is more than what the ones
  // asked for take, and a smaller one is as fast.
  std::vector<Timed> time_those_that_matter() {
    std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    std::vector<Timed> timed;
    Fastest fastest(most_);
    ParetoFrontier frontier;
    for (const Candidate& each : candidates_) {
      if (fastest.beat(each.seconds) && frontier.beats(each.seconds, each.bytes)) continue;
      base_.layout = each.layout;
      timed.push_back({each.layout, clock_.time(base_), each.bytes});
      fastest.add(timed.back().time.total());
      frontier.add(timed.back().time.total(), each.bytes);
    }
    std::ranges::sort(timed, [](const Timed& a, const Timed& b) { return rank(a) < rank(b); });
    return timed;
  }

  const PlanRequest& request_;
  const ParameterSet& parameters_;
  size_t most_;
  Rates rates_;
  StepClock clock_;
  Workload base_;
  SearchOutcome outcome_;
  std::vector<Candidate> candidates_;
};

}  // namespace

void keep_to_launcher(PlanRequest& request, const std::string& framework) {
  const auto launched = parse_enum<Framework>(framework);
  if (!launched) return;
  switch (*launched) {
    case Framework::tran: request.most_sharding = Sharding::none; [[fallthrough]];
    case Framework::fsdp:
    case Framework::deep: request.data_parallel_only = true; break;
    case Framework::tita: request.torchtitan_rules = true; break;
    case Framework::prim: request.equal_stages = true; [[fallthrough]];
    case Framework::nemo: request.most_sharding = Sharding::optimizer; break;
    case Framework::mega:
    case Framework::mgds:
    case Framework::native: break;
  }
}

SearchOutcome search_layouts(const PlanRequest& request, const ParameterSet& parameters, size_t most) {
  CHECK(request.family != nullptr && request.gpus > 0 && request.global_batch > 0 && request.sequence_length > 0);
  SearchOutcome outcome = Search(request, parameters, most).run();
  outcome.calibrated = rests_on_measurements(parameters, request.machine, *request.family);
  return outcome;
}

}  // namespace tprimat::planner
