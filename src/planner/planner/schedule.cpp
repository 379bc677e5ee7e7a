#include "planner/schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "spec/pipeline_schedule.h"

namespace tprimat::planner {
namespace {

// One action, after all that it depends on.
struct OrderedAction {
  int32_t stage = 0;
  int32_t place = 0;
  int32_t needs = 0;  // the action whose result it takes, by index; -1: none, or one of the same rank
  bool forward = true;
};

// The actions of all ranks in an order in which each follows what it needs.
class ActionOrder {
 public:
  ActionOrder(int64_t stages, int64_t chunks, int64_t micro_batches)
      : stages_(stages), places_(stages * chunks), micro_batches_(micro_batches) {
    ParallelSpec layout;
    layout.pipeline = stages, layout.virtual_pipeline = chunks;
    for (int64_t stage = 0; stage < stages; ++stage)
      lists_.push_back(pipeline_schedule(layout, static_cast<int>(stage), micro_batches));
    done_.assign(static_cast<size_t>(2 * places_ * micro_batches), -1);
    const auto all = static_cast<size_t>(2 * places_ * micro_batches);
    std::vector<size_t> next(static_cast<size_t>(stages));
    while (actions_.size() < all) {
      const size_t before = actions_.size();
      for (int64_t stage = 0; stage < stages; ++stage) advance(stage, next[static_cast<size_t>(stage)]);
      CHECK(actions_.size() > before);  // else the ranks wait for one another
    }
  }

  std::vector<OrderedAction> take() { return std::move(actions_); }

 private:
  size_t slot(bool forward, int64_t place, int64_t micro) const {
    return static_cast<size_t>(((forward ? 0 : places_) + place) * micro_batches_ + micro);
  }

  void advance(int64_t stage, size_t& next) {
    const std::vector<PipelineAction>& list = lists_[static_cast<size_t>(stage)];
    for (; next < list.size(); ++next) {
      const bool forward = list[next].kind == PipelineAction::Kind::forward;
      const int64_t place = list[next].chunk * stages_ + stage, before = forward ? place - 1 : place + 1;
      int32_t needs = -1;
      if (before >= 0 && before < places_) {
        needs = done_[slot(forward, before, list[next].micro)];
        if (needs < 0) return;
      }
      done_[slot(forward, place, list[next].micro)] = static_cast<int32_t>(actions_.size());
      actions_.push_back({static_cast<int32_t>(stage), static_cast<int32_t>(place), needs, forward});
    }
  }

  int64_t stages_, places_, micro_batches_;
  std::vector<std::vector<PipelineAction>> lists_;
  std::vector<int32_t> done_;  // index of each action; -1: not yet in order
  std::vector<OrderedAction> actions_;
};

constexpr double k_max_actions = 4e6;  // of one simulation, and of the orders that are kept

// A search asks for the same few orders thousands of times. What it returns holds until the next call.
const std::vector<OrderedAction>& action_order(int64_t stages, int64_t chunks, int64_t micro_batches) {
  thread_local std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<OrderedAction>> orders;
  thread_local double kept = 0;
  const std::tuple key{stages, chunks, micro_batches};
  if (const auto found = orders.find(key); found != orders.end()) return found->second;
  std::vector<OrderedAction> order = ActionOrder(stages, chunks, micro_batches).take();
  if (kept + static_cast<double>(order.size()) > k_max_actions) orders.clear(), kept = 0;
  kept += static_cast<double>(order.size());
  return orders.emplace(key, std::move(order)).first->second;
}

struct RankClock {
  double now = 0;
  int64_t delayed = 0;  // gradients of weights that are still to be computed
};

// One pass over the actions. Gradients of weights that are put off wait for an idle time that is long enough, yet no
// more of them than stages come before: their inputs stay in memory as long, and no rank is to keep more micro-batches
// than the first does under 1F1B.
class Simulation {
 public:
  Simulation(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places)
      : pipeline_(pipeline), places_(places) {}

  double run(const std::vector<OrderedAction>& order) {
    ranks_.assign(static_cast<size_t>(pipeline_.stages), {});
    ends_.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) ends_[i] = perform(order[i]);
    double last = 0;
    for (size_t stage = 0; stage < ranks_.size(); ++stage)
      last = std::max(last, ranks_[stage].now + static_cast<double>(ranks_[stage].delayed) * places_[stage].weights);
    return last;
  }

 private:
  double perform(const OrderedAction& action) {
    RankClock& rank = ranks_[static_cast<size_t>(action.stage)];
    const ChunkSeconds& seconds = places_[static_cast<size_t>(action.place)];
    const double ready = action.needs < 0 ? 0 : ends_[static_cast<size_t>(action.needs)];
    if (pipeline_.delays_weights) catch_up(rank, action.stage, seconds.weights, ready);
    rank.now = std::max(rank.now, ready) + (action.forward ? seconds.forward : seconds.backward);
    if (action.forward) return rank.now;
    if (pipeline_.delays_weights)
      ++rank.delayed;
    else
      rank.now += seconds.weights;
    return rank.now;
  }

  static void catch_up(RankClock& rank, int64_t most_delayed, double weights, double ready) {
    while (rank.delayed > 0 && (rank.now + weights <= ready || rank.delayed > most_delayed)) {
      rank.now += weights;
      --rank.delayed;
    }
  }

  const Pipeline& pipeline_;
  const std::vector<ChunkSeconds>& places_;
  std::vector<RankClock> ranks_;
  std::vector<double> ends_;
};

// Micro-batches after which a pipeline has settled: then every round is like the one before.
int64_t settled_micro_batches(const Pipeline& pipeline) {
  return (pipeline.chunks > 1 || pipeline.delays_weights ? 3 : 2) * pipeline.stages;
}

int64_t simulated_micro_batches(const Pipeline& pipeline) {
  const int64_t most = settled_micro_batches(pipeline);
  const auto whole = static_cast<int64_t>(std::min(pipeline.micro_batches, static_cast<double>(most)));
  if (pipeline.chunks == 1) return std::max<int64_t>(1, whole);
  return std::max<int64_t>(1, whole / pipeline.stages) * pipeline.stages;  // whole rounds
}

}  // namespace

double busiest_rank_seconds(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places) {
  double most = 0;
  for (int64_t stage = 0; stage < pipeline.stages; ++stage) {
    double sum = 0;
    for (int64_t place = stage; place < pipeline.stages * pipeline.chunks; place += pipeline.stages)
      sum += places[static_cast<size_t>(place)].total();
    most = std::max(most, sum);
  }
  return most;
}

// The last rank begins when the first micro-batch has passed all others, and they end after it.
double least_seconds(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places) {
  double before = 0, last = 0;
  for (int64_t place = 0; place < pipeline.stages - 1; ++place) {
    const ChunkSeconds& chunk = places[static_cast<size_t>(place)];
    before += pipeline.delays_weights ? chunk.forward : chunk.total();
  }
  for (int64_t chunk = 0; chunk < pipeline.chunks; ++chunk)
    last += places[static_cast<size_t>((chunk + 1) * pipeline.stages - 1)].total();
  return std::max(pipeline.micro_batches * busiest_rank_seconds(pipeline, places),
                  before + pipeline.micro_batches * last);
}

double simulate_pipeline(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places) {
  CHECK(static_cast<int64_t>(places.size()) == pipeline.stages * pipeline.chunks);
  CHECK(!pipeline.delays_weights || pipeline.chunks == 1);
  const int64_t simulated = simulated_micro_batches(pipeline);
  if (2.0 * static_cast<double>(places.size()) * static_cast<double>(simulated) > k_max_actions)
    return least_seconds(pipeline, places);
  const double seconds = Simulation(pipeline, places).run(action_order(pipeline.stages, pipeline.chunks, simulated));
  const double busiest = busiest_rank_seconds(pipeline, places);
  return std::max(pipeline.micro_batches * busiest,
                  seconds + (pipeline.micro_batches - static_cast<double>(simulated)) * busiest);
}

}  // namespace tprimat::planner
