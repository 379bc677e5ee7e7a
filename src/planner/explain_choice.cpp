#include "planner/explain_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "planner/plan_report.h"
#include "text/format.h"

namespace tprimat {
namespace {

// A choice in which neighbours differ. `adopt` gives a layout another's choice, and what must follow from it.
struct Dimension {
  int64_t (*size)(const Layout&);
  std::string (*print)(const Layout&);
  void (*adopt)(Layout&, const Layout&);
};

constexpr std::array<Dimension, 6> k_dimensions = {
    Dimension{[](const Layout& l) { return l.tensor; }, [](const Layout& l) { return fmt::format("TP {}", l.tensor); },
              [](Layout& l, const Layout& other) { l.tensor = other.tensor; }},
    Dimension{[](const Layout& l) { return l.pipeline; },
              [](const Layout& l) { return fmt::format("PP {}", l.pipeline); },
              [](Layout& l, const Layout& other) {
                l.pipeline = other.pipeline, l.chunks = other.chunks, l.ends_as_layers = other.ends_as_layers;
                l.delays_weights = other.delays_weights;
              }},
    Dimension{[](const Layout& l) { return l.chunks; }, [](const Layout& l) { return fmt::format("VP {}", l.chunks); },
              [](Layout& l, const Layout& other) { l.chunks = other.chunks, l.delays_weights = other.delays_weights; }},
    Dimension{[](const Layout& l) { return l.context; },
              [](const Layout& l) { return fmt::format("CP {}", l.context); },
              [](Layout& l, const Layout& other) { l.context = other.context; }},
    Dimension{[](const Layout& l) { return l.micro_batch; },
              [](const Layout& l) { return fmt::format("MBS {}", l.micro_batch); },
              [](Layout& l, const Layout& other) { l.micro_batch = other.micro_batch; }},
    Dimension{[](const Layout& l) { return static_cast<int64_t>(l.sharding); },
              [](const Layout& l) { return name_sharding(l.sharding); },
              [](Layout& l, const Layout& other) { l.sharding = other.sharding; }}};

// Data-parallel ranks follow from the other sizes.
bool differs_in_this_alone(const Layout& mine, Layout other, const Dimension& dimension) {
  if (dimension.size(mine) == dimension.size(other)) return false;
  dimension.adopt(other, mine);
  other.data = mine.data;
  return other == mine;
}

bool differs_in_recompute_alone(const Layout& mine, Layout other) {
  if (mine.recompute == other.recompute) return false;
  other.recompute = mine.recompute;
  return other == mine;
}

struct Reason {
  bool excluded = false;  // the neighbour does not fit
  double slower = 0;      // the neighbour's time over the best's, less 1
  std::string sentence;
};

struct Difference {
  const char* name;
  double share;  // of the neighbour's step that the best spends more
};

// Where the best's seconds are more or fewer than the neighbour's, as shares of the neighbour's step.
std::array<Difference, 4> differences(const StepTime& best, const StepTime& other) {
  const auto share = [&](auto part) { return (part(best) - part(other)) / other.total(); };
  return {Difference{"exchanges", share([](const StepTime& t) { return t.tensor + t.context + t.transfers + t.data; })},
          Difference{"bubble", share([](const StepTime& t) { return t.bubble; })},
          Difference{"recompute", share([](const StepTime& t) { return t.recompute; })},
          Difference{"computing",
                     share([](const StepTime& t) { return t.products + t.attention + t.elementwise + t.ends; })}};
}

// The two that matter most: " (exchanges -3.3 %, bubble +0.8 %)".
std::string name_differences(const StepTime& best, const StepTime& other) {
  constexpr double k_least = 0.002;
  auto parts = differences(best, other);
  std::sort(parts.begin(), parts.end(),
            [](const Difference& a, const Difference& b) { return std::fabs(a.share) > std::fabs(b.share); });
  std::string text;
  for (size_t i = 0; i < 2 && std::fabs(parts[i].share) >= k_least; ++i)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", parts[i].name, parts[i].share > 0 ? "+" : "",
                        format_percent(parts[i].share));
  return text.empty() ? "" : fmt::format(" ({})", text);
}

class Explanation {
 public:
  Explanation(const PlanRequest& request, const ParameterSet& parameters, const RankedLayout& best)
      : request_(request), best_(best) {
    PlanRequest unlimited = request;
    unlimited.usable_memory = k_unlimited;
    legal_ = search_layouts(unlimited, parameters, static_cast<size_t>(k_unlimited)).ranked;
  }

  std::vector<Reason> reasons() {
    add_recompute();
    for (const Dimension& dimension : k_dimensions) add_dimension(dimension);
    std::stable_sort(reasons_.begin(), reasons_.end(), [](const Reason& a, const Reason& b) {
      return a.excluded != b.excluded ? a.excluded : !a.excluded && a.slower > b.slower;
    });
    return reasons_;
  }

 private:
  static constexpr double k_unlimited = 1e9;

  const Layout& mine() const { return best_.workload.layout; }
  double limit() const { return request_.usable_memory * request_.machine.memory_bytes; }
  bool fits(const RankedLayout& plan) const { return plan.memory.total() <= limit(); }
  double slower(const RankedLayout& plan) const { return plan.time.total() / best_.time.total() - 1; }

  std::string would_need(const RankedLayout& plan) const {
    const std::string need = "would need " + format_gb(plan.memory.total());
    const std::string all = format_gb(request_.machine.memory_bytes);
    if (plan.memory.total() > request_.machine.memory_bytes) return fmt::format("{} of {}", need, all);
    return fmt::format("{}, more than the {} of {} that may be filled", need, format_percent(request_.usable_memory, 0),
                       all);
  }

  std::string compare_memory(const RankedLayout& other) const {
    const double more = best_.memory.total() - other.memory.total();
    return fmt::format("{} {} memory", format_gb(std::fabs(more)), more > 0 ? "more" : "less");
  }

  void add_dimension(const Dimension& dimension) {
    const RankedLayout* smaller = nearest(dimension, [](int64_t other, int64_t own) { return other < own; });
    const RankedLayout* larger = nearest(dimension, [](int64_t other, int64_t own) { return other > own; });
    const RankedLayout* chosen = smaller != nullptr && !fits(*smaller) ? smaller : larger;
    if (chosen == nullptr || (smaller != nullptr && fits(*chosen) && slower(*smaller) < slower(*chosen)))
      chosen = smaller;
    if (chosen != nullptr) add_neighbour(dimension, *chosen);
  }

  // The nearest size on one side, and of the layouts with it the fastest.
  template <class Side>
  const RankedLayout* nearest(const Dimension& dimension, Side on_side) const {
    const RankedLayout* found = nullptr;
    const int64_t own = dimension.size(mine());
    const auto distance = [&](const RankedLayout& plan) {
      return std::abs(dimension.size(plan.workload.layout) - own);
    };
    for (const RankedLayout& plan : legal_) {
      const Layout& layout = plan.workload.layout;
      if (!on_side(dimension.size(layout), own) || !differs_in_this_alone(mine(), layout, dimension)) continue;
      if (found == nullptr || distance(plan) < distance(*found)) found = &plan;
    }
    return found;
  }

  void add_neighbour(const Dimension& dimension, const RankedLayout& other) {
    constexpr double k_same = 0.0005;
    const std::string own = dimension.print(mine()), its = dimension.print(other.workload.layout);
    const std::string sizes = fmt::format("{} rather than {}", own, its.substr(its.find(' ') + 1));
    if (!fits(other)) {
      reasons_.push_back({true, slower(other), fmt::format("{}, which {}", sizes, would_need(other))});
      return;
    }
    if (slower(other) < k_same) return;
    reasons_.push_back({false, slower(other),
                        fmt::format("{} makes a step {} shorter{} and takes {}", sizes,
                                    format_percent(1 - best_.time.total() / other.time.total()),
                                    name_differences(best_.time, other.time), compare_memory(other))});
  }

  // The next that keeps more, if there is one, else the next that keeps less.
  void add_recompute() {
    const RankedLayout* more = nullptr;
    const RankedLayout* less = nullptr;
    for (const RankedLayout& plan : legal_) {
      if (!differs_in_recompute_alone(mine(), plan.workload.layout)) continue;
      const Recompute other = plan.workload.layout.recompute;
      const RankedLayout*& nearest = other < mine().recompute ? less : more;
      const bool nearer =
          nearest == nullptr || (other < mine().recompute) == (other > nearest->workload.layout.recompute);
      if (nearer) nearest = &plan;
    }
    if (less != nullptr && !fits(*less)) return add_needed_recompute(*less);
    if (mine().recompute == Recompute::none && more != nullptr) add_spared_recompute(*more);
  }

  void add_needed_recompute(const RankedLayout& without) {
    reasons_.push_back(
        {true, slower(without),
         fmt::format("{} recompute, {} of a step: {} it {}", enum_name(mine().recompute),
                     format_percent(best_.time.recompute / best_.time.total()),
                     without.workload.layout.recompute == Recompute::none
                         ? "without"
                         : fmt::format("with {} recompute", enum_name(without.workload.layout.recompute)),
                     would_need(without))});
  }

  void add_spared_recompute(const RankedLayout& with) {
    reasons_.push_back(
        {false, slower(with),
         fmt::format("no recompute: {} recompute would free {} and make a step {} longer",
                     enum_name(with.workload.layout.recompute), format_gb(best_.memory.total() - with.memory.total()),
                     format_percent(slower(with)))});
  }

  const PlanRequest& request_;
  const RankedLayout& best_;
  std::vector<RankedLayout> legal_;  // fastest first
  std::vector<Reason> reasons_;
};

}  // namespace

std::vector<std::string> explain_choice(const PlanRequest& request, const ParameterSet& parameters,
                                        const RankedLayout& best, size_t most) {
  std::vector<std::string> sentences;
  for (const Reason& reason : Explanation(request, parameters, best).reasons())
    if (sentences.size() < most) sentences.push_back(reason.sentence);
  return sentences;
}

}  // namespace tprimat
