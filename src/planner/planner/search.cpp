#include "planner/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "base/check.h"
#include "planner/layout_space.h"
#include "planner/recomputed_share.h"
#include "text/enum_names.h"

namespace tprimat::planner {
namespace {

using Places = const std::vector<int64_t>*;  // layers of each chunk, where they are listed

struct Candidate {
  Layout layout;
  Places places = nullptr;
  double seconds = 0;  // the least that it can take
  double bytes = 0;
};

struct Timed {
  Layout layout;
  Places places = nullptr;
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

Workload workload_of(const PlanRequest& request) {
  Workload workload;
  workload.shape = request.shape;
  workload.sequence_length = request.sequence_length;
  workload.global_batch = request.global_batch;
  workload.precision = request.precision;
  workload.family = request.family;
  workload.keeps_masters = request.keeps_masters, workload.repeats_core = request.repeats_core;
  workload.moment_bytes = request.moment_bytes, workload.offload = request.offload;
  workload.scaled_by_row = request.recipe == Recipe::rowwise, workload.scaled_by_block = request.recipe == Recipe::mx;
  workload.trains_adapters = request.trains_adapters;
  workload.routing = request.routing, workload.dispatcher = request.dispatcher;
  workload.expert_load = request.expert_load;
  if (request.selects_modules()) workload.recomputed_modules = usual_modules(request.shape, request.scales_tensors());
  return workload;
}

// What a search and a survey of its layouts share.
class Candidates {
 public:
  Candidates(const PlanRequest& request, const ParameterSet& parameters)
      : request_(request),
        parameters_(parameters),
        base_(workload_of(request)),
        selected_share_(request.selects_modules() ? share_of_modules(base_) : 1),
        rates_(resolve_rates(parameters, request.machine, base_)),
        clock_(request.machine, rates_),
        space_(request, request.family->explicit_stages ? weigh_parts(base_, request.machine, rates_) : PartWeights()) {
  }

  void visit(const LayoutSpace::Visit& visit) const { space_.visit(visit); }
  double limit() const { return request_.usable_memory * request_.machine.memory_bytes; }
  MemoryEstimate memory_of(const Layout& layout, Places places) {
    place(layout, places);
    return estimate_memory_within(base_, parameters_, limit());
  }
  Candidate candidate_of(const Layout& layout, Places places, double bytes) {
    place(layout, places);
    return {layout, places, clock_.least(base_).total(), bytes};
  }
  Timed time(const Candidate& each) {
    place(each.layout, each.places);
    return {each.layout, each.places, clock_.time(base_), each.bytes};
  }
  RankedLayout plan_of(const Timed& each) {
    place(each.layout, each.places);
    return {base_, each.time, estimate_memory_within(base_, parameters_, limit())};
  }

 private:
  const PlanRequest& request_;
  const ParameterSet& parameters_;
  void place(const Layout& layout, Places places) {
    base_.layout = layout;
    base_.recomputed_share = layout.recompute == Recompute::selective ? selected_share_ : 1;
    if (places != nullptr)
      base_.layers_of_places = *places;
    else
      base_.layers_of_places.clear();
  }

  Workload base_;
  double selected_share_;  // of what selective recomputation repeats
  Rates rates_;
  StepClock clock_;
  LayoutSpace space_;
};

bool is_less(const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; }

class Search {
 public:
  Search(const PlanRequest& request, const ParameterSet& parameters, size_t most)
      : request_(request), most_(most), all_(request, parameters) {}

  SearchOutcome run() {
    all_.visit([&](const Layout& layout, Places places) { try_layout(layout, places); });
    finish();
    return std::move(outcome_);
  }

 private:
  void try_layout(const Layout& layout, Places places) {
    ++outcome_.legal;
    const MemoryEstimate memory = all_.memory_of(layout, places);
    const double bytes = memory.total();
    if (bytes > all_.limit()) {
      if (outcome_.fitting == 0 && (!outcome_.smallest || bytes < outcome_.smallest->memory.total()))
        outcome_.smallest = all_.plan_of({layout, places, {}, bytes});
      return;
    }
    ++outcome_.fitting;
    candidates_.push_back(all_.candidate_of(layout, places, bytes));
  }

  void finish() {
    if (outcome_.fitting > 0) outcome_.smallest.reset();
    const std::vector<Timed> timed = time_those_that_matter();
    for (size_t i = 0; i < std::min(most_, timed.size()); ++i) outcome_.ranked.push_back(all_.plan_of(timed[i]));
    double least = request_.machine.memory_bytes;
    for (const Timed& each : timed) {
      if (each.bytes >= least) continue;
      least = each.bytes;
      outcome_.frontier.push_back(all_.plan_of(each));
    }
  }

  // In the order of the least that each can take. A layout is simulated unless even that is more than what the ones
  // asked for take, and a smaller one is as fast.
  std::vector<Timed> time_those_that_matter() {
    std::ranges::sort(candidates_, is_less);
    std::vector<Timed> timed;
    Fastest fastest(most_);
    ParetoFrontier frontier;
    for (const Candidate& each : candidates_) {
      if (fastest.beat(each.seconds) && frontier.beats(each.seconds, each.bytes)) continue;
      timed.push_back(all_.time(each));
      fastest.add(timed.back().time.total());
      frontier.add(timed.back().time.total(), each.bytes);
    }
    std::ranges::sort(timed, [](const Timed& a, const Timed& b) { return rank(a) < rank(b); });
    return timed;
  }

  const PlanRequest& request_;
  size_t most_;
  Candidates all_;
  SearchOutcome outcome_;
  std::vector<Candidate> candidates_;
};

}  // namespace

struct LayoutSurvey::Layouts {
  Layouts(const PlanRequest& request, const ParameterSet& parameters) : all(request, parameters) {
    all.visit([&](const Layout& layout, Places places) {
      sorted.push_back(all.candidate_of(layout, places, all.memory_of(layout, places).total()));
    });
    std::ranges::sort(sorted, is_less);
  }

  Candidates all;
  std::vector<Candidate> sorted;  // by the least time
};

LayoutSurvey::LayoutSurvey(const PlanRequest& request, const ParameterSet& parameters)
    : layouts_(std::make_unique<Layouts>(request, parameters)) {}
LayoutSurvey::~LayoutSurvey() = default;

std::optional<RankedLayout> LayoutSurvey::find_fastest(const Accepts& accepts) {
  std::optional<Timed> best;
  for (const Candidate& each : layouts_->sorted) {
    if (best && each.seconds > best->time.total() * (1 + 2 * k_alike)) break;
    if (each.bytes > layouts_->all.limit() || !accepts(each.layout)) continue;
    const Timed timed = layouts_->all.time(each);
    if (!best || rank(timed) < rank(*best)) best = timed;
  }
  if (!best) return std::nullopt;
  return layouts_->all.plan_of(*best);
}

std::vector<RankedLayout> LayoutSurvey::list_excluded(double seconds, const Accepts& accepts) {
  std::vector<Timed> found;
  for (const Candidate& each : layouts_->sorted) {
    if (each.seconds >= seconds) break;
    if (each.bytes <= layouts_->all.limit() || !accepts(each.layout)) continue;
    if (Timed timed = layouts_->all.time(each); timed.time.total() < seconds) found.push_back(std::move(timed));
  }
  std::ranges::sort(found, [](const Timed& a, const Timed& b) { return rank(a) < rank(b); });
  std::vector<RankedLayout> plans;
  for (const Timed& each : found) plans.push_back(layouts_->all.plan_of(each));
  return plans;
}

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
  if (!outcome.ranked.empty())
    outcome.interval = prediction_interval(outcome.ranked.front().workload, request.machine, parameters);
  return outcome;
}

}  // namespace tprimat::planner
