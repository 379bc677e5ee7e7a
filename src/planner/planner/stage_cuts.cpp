#include "planner/stage_cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tprimat::planner {
namespace {

double number(int64_t value) { return static_cast<double>(value); }

// Layers and their weights in the order of the model.
class LayerSums {
 public:
  LayerSums(const ModelSpec& model, const PartWeights& weights) {
    int64_t before = 0;
    for (int64_t layer = 1; layer <= model.num_layers; ++layer) {
      const int64_t experts = model.experts ? model.experts->layers(layer) : 0;
      const bool has_experts = model.experts && layer > model.experts->first_dense_layers && experts > before;
      before = std::max(before, experts);
      sums_.push_back(sums_.back() + (has_experts ? weights.experts : weights.dense));
    }
  }

  int64_t layers() const { return static_cast<int64_t>(sums_.size()) - 1; }
  double whole() const { return sums_.back(); }
  double between(int64_t from, int64_t to) const {
    return sums_[static_cast<size_t>(to)] - sums_[static_cast<size_t>(from)];
  }
  // The number of first layers whose weight is nearest to that.
  int64_t nearest(double weight) const {
    const auto above = std::ranges::lower_bound(sums_, weight);
    if (above == sums_.end()) return layers();
    const auto at = static_cast<int64_t>(above - sums_.begin());
    return at > 0 && weight - between(0, at - 1) < between(0, at) - weight ? at - 1 : at;
  }

 private:
  std::vector<double> sums_ = {0};
};

// How good a cut is: less is better.
struct CutCost {
  double busiest = 0;  // of the stages
  double spread = 0;   // sum of the squared weights of the places, were all layers as heavy as the heaviest
  bool better_than(const CutCost& other) const {
    constexpr double k_alike = 1e-9;
    const double scale = std::max(busiest, other.busiest);
    if (std::fabs(busiest - other.busiest) > k_alike * scale) return busiest < other.busiest;
    return spread < other.spread * (1 - k_alike);
  }
};

class Cutting {
 public:
  Cutting(const ModelSpec& model, const PartWeights& weights, int64_t stages, int64_t chunks)
      : weights_(weights),
        sums_(model, weights),
        layers_are_alike_(!model.experts),
        stages_(stages),
        places_(stages * chunks) {}

  std::vector<int64_t> best() {
    begin();
    constexpr double k_max_weighings = 2e7;  // of places; each round makes the cut better
    const double rounds = std::max(1.0, k_max_weighings / std::pow(number(places_), 3));
    for (int64_t round = 0; number(round) < rounds && improve(); ++round) {
    }
    return counts_;
  }

 private:
  // Each place gets its share; the last stage less in all its chunks where its last chunk has more than that already.
  void begin() {
    const double share = (sums_.whole() + weights_.first + weights_.last) / number(places_);
    const int64_t chunks = places_ / stages_;
    const double too_much = std::max(0.0, weights_.last - share) / std::max(1.0, number(chunks - 1));
    double due = 0;
    int64_t before = 0;
    for (int64_t place = 0; place < places_; ++place) {
      due += share - (place == 0 ? std::min(share, weights_.first) : 0);
      if (place % stages_ == stages_ - 1) due -= std::min(share, too_much);
      const int64_t end = place == places_ - 1 ? sums_.layers() : sums_.nearest(std::min(due, sums_.whole()));
      counts_.push_back(std::max<int64_t>(0, end - before));
      before = std::max(before, end);
    }
    cost_ = weigh();
  }

  CutCost weigh() const {
    CutCost cost;
    std::vector<double> stages(static_cast<size_t>(stages_));
    int64_t before = 0;
    for (int64_t place = 0; place < places_; ++place) {
      const int64_t end = before + counts_[static_cast<size_t>(place)];
      const double ends = (place == 0 ? weights_.first : 0) + (place == places_ - 1 ? weights_.last : 0);
      const double alike = number(end - before) * std::max(weights_.dense, weights_.experts) + ends;
      cost.spread += alike * alike;
      stages[static_cast<size_t>(place % stages_)] += sums_.between(before, end) + ends;
      before = end;
    }
    cost.busiest = *std::ranges::max_element(stages);
    return cost;
  }

  // Moves a layer from one place to another, those between them move along. Takes the best of all such moves.
  bool improve() {
    std::pair<size_t, size_t> best{0, 0};
    CutCost least = cost_;
    for (size_t from = 0; from < counts_.size(); ++from) {
      if (counts_[from] == 0 || (layers_are_alike_ && !is_crowded(from))) continue;
      for (size_t to = 0; to < counts_.size(); ++to) {
        if (from == to) continue;
        --counts_[from], ++counts_[to];
        if (const CutCost cost = weigh(); cost.better_than(least)) least = cost, best = {from, to};
        ++counts_[from], --counts_[to];
      }
    }
    if (best.first == best.second) return false;
    --counts_[best.first], ++counts_[best.second];
    cost_ = least;
    return true;
  }

  // Where all layers weigh the same, only a place with most of them can give one away.
  bool is_crowded(size_t place) const {
    return place == 0 || place + 1 == counts_.size() || counts_[place] == *std::ranges::max_element(counts_);
  }

  const PartWeights& weights_;
  LayerSums sums_;
  bool layers_are_alike_;
  int64_t stages_, places_;
  std::vector<int64_t> counts_;
  CutCost cost_;
};

}  // namespace

PartWeights weigh_parts(Workload workload, const Machine& machine, const Rates& rates) {
  const ModelSpec& m = workload.shape;
  workload.layout = {};
  if (m.experts && workload.family->expert_parallel)
    workload.layout.expert = std::gcd(m.experts->count, std::max<int64_t>(1, machine.gpus_per_domain));
  const auto whole = [&](LayerKind kind) { return time_layer(workload, machine, rates, kind).total().both(); };
  const EndsTime ends = time_ends(workload, rates);
  PartWeights weights;
  weights.dense = whole(LayerKind::dense);
  weights.experts = m.experts ? whole(LayerKind::experts) : weights.dense;
  weights.first = ends.embedding.both();
  weights.last =
      ends.head.both() + number(m.prediction_layers.value_or(0)) * (weights.experts + ends.prediction.both());
  return weights;
}

std::vector<int64_t> cut_evenly(const ModelSpec& model, const PartWeights& weights, int64_t stages, int64_t chunks) {
  CHECK(stages > 0 && chunks > 0);
  return Cutting(model, weights, stages, chunks).best();
}

}  // namespace tprimat::planner
