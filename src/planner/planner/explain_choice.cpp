#include "planner/plan_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "planner/plan_report.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// A choice in which layouts differ. `adopt` gives a layout another's choice, and what must follow from it.
struct Dimension {
  const char *before, *after;  // what is said around a value: "TP 2", "full recompute"
  int64_t (*value)(const Layout&);
  std::string (*print)(int64_t);
  void (*adopt)(Layout&, const Layout&);

  std::string name(const Layout& layout) const { return before + print(value(layout)) + after; }
};

std::string print_size(int64_t size) { return std::to_string(size); }
std::string print_sharding(int64_t value) { return name_sharding(static_cast<Sharding>(value)); }
std::string print_recompute(int64_t value) {
  const auto recompute = static_cast<Recompute>(value);
  return recompute == Recompute::none ? "no" : std::string(enum_name(recompute));
}

template <auto member>
constexpr Dimension dimension_of(const char* before, const char* after, std::string (*print)(int64_t)) {
  return {before, after, [](const Layout& l) { return static_cast<int64_t>(l.*member); }, print,
          [](Layout& l, const Layout& other) { l.*member = other.*member; }};
}

constexpr std::array<Dimension, 9> k_dimensions = {
    dimension_of<&Layout::tensor>("TP ", "", print_size),
    Dimension{"PP ", "", [](const Layout& l) { return l.pipeline; }, print_size,
              [](Layout& l, const Layout& other) {
                l.pipeline = other.pipeline, l.chunks = other.chunks, l.ends_as_layers = other.ends_as_layers;
                l.delays_weights = other.delays_weights;
              }},
    Dimension{"VP ", "", [](const Layout& l) { return l.chunks; }, print_size,
              [](Layout& l, const Layout& other) { l.chunks = other.chunks, l.delays_weights = other.delays_weights; }},
    dimension_of<&Layout::context>("CP ", "", print_size),
    dimension_of<&Layout::expert>("EP ", "", print_size),
    dimension_of<&Layout::expert_tensor>("ETP ", "", print_size),
    dimension_of<&Layout::micro_batch>("MBS ", "", print_size),
    dimension_of<&Layout::sharding>("", "", print_sharding),
    dimension_of<&Layout::recompute>("", " recompute", print_recompute)};

// Chunks are cut from a stage: they are compared with those of as many stages.
bool is_other_choice(const Layout& mine, const Layout& other, const Dimension& dimension) {
  const bool of_chunks = dimension.value == k_dimensions[2].value;
  return dimension.value(mine) != dimension.value(other) && (!of_chunks || mine.pipeline == other.pipeline);
}

// Data-parallel ranks follow from the other sizes.
bool differs_in_this_alone(const Layout& mine, Layout other, const Dimension& dimension) {
  if (dimension.value(mine) == dimension.value(other)) return false;
  dimension.adopt(other, mine);
  other.data = mine.data;
  return other == mine;
}

struct Reason {
  bool excluded = false;  // the other layout does not fit
  double slower = 0;      // its time over the best's, less 1
  std::string sentence;
};

struct Difference {
  const char* name;
  double share;  // of the best's step that the other spends more
};

// Where the other's seconds are more or fewer than the best's, as shares of the best's step.
std::array<Difference, 4> differences(const StepTime& best, const StepTime& other) {
  const auto share = [&](auto part) { return (part(other) - part(best)) / best.total(); };
  return {Difference{"exchanges",
                     share([](const StepTime& t) { return t.tensor + t.context + t.experts + t.transfers + t.data; })},
          Difference{"bubble", share([](const StepTime& t) { return t.bubble; })},
          Difference{"recompute", share([](const StepTime& t) { return t.recompute; })},
          Difference{"computing",
                     share([](const StepTime& t) { return t.products + t.attention + t.elementwise + t.ends; })}};
}

// The two that matter most: " (exchanges +3.3 %, bubble -0.8 %)".
std::string name_differences(const StepTime& best, const StepTime& other) {
  constexpr double k_min = 0.002;
  auto parts = differences(best, other);
  std::ranges::sort(parts,
                    [](const Difference& a, const Difference& b) { return std::fabs(a.share) > std::fabs(b.share); });
  std::string text;
  for (size_t i = 0; i < 2 && std::fabs(parts[i].share) >= k_min; ++i)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", parts[i].name, parts[i].share > 0 ? "+" : "",
                        format_percent(parts[i].share));
  return text.empty() ? "" : fmt::format(" ({})", text);
}

class Explanation {
 public:
  Explanation(const PlanRequest& request, const ParameterSet& parameters, const RankedLayout& best)
      : request_(request), best_(best), survey_(request, parameters) {}

  std::vector<Reason> reasons() {
    for (const Dimension& dimension : k_dimensions) {
      add_excluded(dimension);
      collect_rival(dimension);
    }
    for (const Rival& rival : rivals_) add_rival(rival);
    std::ranges::stable_sort(reasons_, [](const Reason& a, const Reason& b) {
      return a.excluded != b.excluded ? a.excluded : !a.excluded && a.slower > b.slower;
    });
    return reasons_;
  }

 private:
  const Layout& mine() const { return best_.workload.layout; }
  double slower(const RankedLayout& plan) const { return plan.time.total() / best_.time.total() - 1; }

  std::string would_need(const RankedLayout& plan) const {
    const std::string need = "would need " + format_gb(plan.memory.total());
    const std::string all = format_gb(request_.machine.memory_bytes);
    if (plan.memory.total() > request_.machine.memory_bytes) return fmt::format("{}; the device has {}", need, all);
    return fmt::format("{}, more than the usable {} of {}", need, format_percent(request_.usable_memory, 0), all);
  }

  // The fastest that fits with another value of one or more of the choices.
  struct Rival {
    RankedLayout plan;
    std::vector<std::string> choices;  // "TP 2 rather than 1"
  };

  std::string name_choice(const Dimension& dimension, const Layout& other) const {
    const std::string value = dimension.print(dimension.value(other));
    return fmt::format("{} rather than {}", dimension.name(mine()), value == "no" ? "none" : value);
  }

  // The nearest choice that would be faster with all else alike, if only it fitted.
  void add_excluded(const Dimension& dimension) {
    const auto distance = [&](const RankedLayout& plan) {
      return std::abs(dimension.value(plan.workload.layout) - dimension.value(mine()));
    };
    const std::vector<RankedLayout> faster = survey_.list_excluded(
        best_.time.total(), [&](const Layout& other) { return differs_in_this_alone(mine(), other, dimension); });
    const auto nearest = std::ranges::min_element(faster, {}, distance);
    if (nearest == faster.end()) return;
    reasons_.push_back({true, slower(*nearest),
                        fmt::format("{}: all else equal, {} {}", name_choice(dimension, nearest->workload.layout),
                                    dimension.name(nearest->workload.layout), would_need(*nearest))});
  }

  void collect_rival(const Dimension& dimension) {
    auto found = survey_.find_fastest([&](const Layout& other) { return is_other_choice(mine(), other, dimension); });
    if (!found) return;
    const std::string choice = name_choice(dimension, found->workload.layout);
    for (Rival& rival : rivals_)
      if (rival.plan.workload.layout == found->workload.layout) return rival.choices.push_back(choice);
    rivals_.push_back({std::move(*found), {choice}});
  }

  // Below this neither time nor memory is a reason.
  static constexpr double k_min = 0.01;

  std::string compare_memory(const RankedLayout& other) const {
    const double more = other.memory.total() - best_.memory.total();
    if (std::fabs(more) < k_min * best_.memory.total()) return "";
    return fmt::format(" and takes {} {} memory", format_gb(std::fabs(more)), more > 0 ? "more" : "less");
  }

  void add_rival(const Rival& rival) {
    const RankedLayout& other = rival.plan;
    if (slower(other) < k_min) return;
    reasons_.push_back(
        {false, slower(other),
         fmt::format("{}: the fastest alternative that fits ({}) makes a step {} longer{}{}", join(rival.choices, ", "),
                     format_layout(describe_plan(other, request_)), format_percent(slower(other)),
                     name_differences(best_.time, other.time), compare_memory(other))});
  }

  const PlanRequest& request_;
  const RankedLayout& best_;
  LayoutSurvey survey_;
  std::vector<Rival> rivals_;
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

}  // namespace tprimat::planner
