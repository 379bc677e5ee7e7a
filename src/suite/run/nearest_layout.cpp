#include "run/nearest_layout.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "config/layout_rules.h"

namespace tprimat::suite {
namespace {

std::vector<int64_t> divisors_of(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t each = 1; each <= number; ++each)
    if (number % each == 0) found.push_back(each);
  return found;
}

double doublings_apart(int64_t a, int64_t b) {
  return std::fabs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

double distance(const planner::Layout& layout, const planner::Layout& wanted) {
  constexpr double k_micro_batch = 1, k_recompute = 10, k_sharding = 100, k_grid = 1000;
  const double grid =
      doublings_apart(layout.tensor, wanted.tensor) + doublings_apart(layout.pipeline, wanted.pipeline) +
      doublings_apart(layout.context, wanted.context) + doublings_apart(layout.chunks, wanted.chunks) +
      doublings_apart(layout.expert, wanted.expert) + doublings_apart(layout.expert_tensor, wanted.expert_tensor);
  const auto steps = [](auto a, auto b) { return std::fabs(static_cast<double>(a) - static_cast<double>(b)); };
  return k_grid * grid + k_sharding * steps(layout.sharding, wanted.sharding) +
         k_recompute * steps(layout.recompute, wanted.recompute) +
         k_micro_batch * doublings_apart(layout.micro_batch, wanted.micro_batch);
}

class FitSearch {
 public:
  FitSearch(const planner::Workload& workload, const FitTask& task)
      : workload_(workload), wanted_(workload.layout), task_(task), least_sharding_(wanted_.sharding) {}

  std::optional<FittingLayout> run() {
    if (task_.lowers_sharding) least_sharding_ = planner::Sharding::none;
    try_grids();
    if (!best_ && wanted_.sharding != planner::Sharding::none) {
      least_sharding_ = planner::Sharding::none;
      try_grids();
    }
    return best_;
  }

 private:
  void try_grids() {
    const planner::Family& family = *workload_.family;
    for (const int64_t tensor : sizes(family.tensor_parallel, wanted_.num_gpus()))
      for (const int64_t pipeline : sizes(family.pipeline_parallel, wanted_.num_gpus() / tensor))
        for (const int64_t context : sizes(family.context_parallel, wanted_.num_gpus() / tensor / pipeline))
          try_grid(tensor, pipeline, context);
  }

  static std::vector<int64_t> sizes(bool able, int64_t most) {
    return able ? divisors_of(most) : std::vector{int64_t{1}};
  }

  void try_grid(int64_t tensor, int64_t pipeline, int64_t context) {
    planner::Layout layout = wanted_;
    layout.tensor = tensor, layout.pipeline = pipeline, layout.context = context;
    layout.data = wanted_.num_gpus() / (tensor * pipeline * context);
    if (pipeline != wanted_.pipeline) layout.chunks = 1, layout.ends_as_layers = false;
    if (tensor == 1) layout.sequence_parallel = false;
    for (const int64_t tensor_of_experts : {wanted_.expert_tensor, int64_t{1}}) {
      layout.expert_tensor = tensor_of_experts;
      for (const int64_t expert : expert_sizes(layout)) {
        layout.expert = expert;
        try_micro_batches(layout);
      }
    }
  }

  void try_micro_batches(planner::Layout layout) {
    for (const int64_t micro : divisors_of(wanted_.micro_batch)) {
      layout.micro_batch = micro;
      if (is_sound(layout)) try_savers(layout);
    }
  }

  // Ranks that may share the routed experts: their number divides both the experts and the ranks of a stage.
  std::vector<int64_t> expert_sizes(const planner::Layout& layout) const {
    if (!workload_.shape.experts) return {1};
    std::vector<int64_t> sizes = divisors_of(workload_.shape.experts->count);
    const int64_t ranks = layout.num_gpus() / layout.pipeline;
    std::erase_if(sizes, [&](int64_t each) { return ranks % (each * layout.expert_tensor) != 0; });
    return sizes;
  }

  // The layers of each chunk, where they are stated.
  bool keeps_stages(const planner::Layout& layout) const {
    return layout.pipeline == wanted_.pipeline && layout.chunks == wanted_.chunks;
  }

  bool is_sound(const planner::Layout& layout) const {
    const LayoutTask task{workload_.shape, layout.num_gpus(), layout.micro_batch, workload_.global_batch,
                          workload_.sequence_length};
    ParallelSpec spec = planner::parallel_spec(layout);
    if (keeps_stages(layout)) spec.pipeline_layout = planner::stated_stages(workload_);
    return list_broken_rules(task, spec).empty();
  }

  // ZeRO stages that the program supports in any layout.
  planner::Sharding most_sharding() const {
    const planner::Family& family = *workload_.family;
    if (family.own_trainer || family.fully_sharded) return planner::Sharding::weights;
    return std::max(wanted_.sharding,
                    family.sharded_optimizer ? planner::Sharding::optimizer : planner::Sharding::none);
  }

  void try_savers(planner::Layout layout) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (int sharding = static_cast<int>(least_sharding_); sharding <= static_cast<int>(most_sharding());
           ++sharding) {
        if (recompute < wanted_.recompute) continue;
        layout.recompute = recompute, layout.sharding = static_cast<planner::Sharding>(sharding);
        consider(layout);
      }
  }

  void consider(const planner::Layout& layout) {
    if (best_ && distance(layout, wanted_) >= distance(best_->layout, wanted_)) return;
    workload_.layout = layout;
    workload_.layers_of_places = keeps_stages(layout) ? stated_places_ : std::vector<int64_t>();
    workload_.recomputed_share = layout.recompute == wanted_.recompute ? stated_share_ : 1;
    const double needed = task_.needs(workload_);
    if (needed <= task_.bytes && task_.accepts(layout)) best_ = FittingLayout{layout, needed};
  }

  planner::Workload workload_;
  const planner::Layout wanted_;
  const std::vector<int64_t> stated_places_ = workload_.layers_of_places;
  const double stated_share_ = workload_.recomputed_share;  // of what is recomputed
  const FitTask& task_;
  planner::Sharding least_sharding_;
  std::optional<FittingLayout> best_;
};

}  // namespace

std::optional<FittingLayout> find_fitting_layout(const planner::Workload& workload, const FitTask& task) {
  return FitSearch(workload, task).run();
}

}  // namespace tprimat::suite
