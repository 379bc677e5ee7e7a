#include "trace/find_layers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "trace/nesting.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_module = "nn.Module: ";
constexpr std::string_view k_backward = "autograd::engine::evaluate_function";

// "nn.Module: BertLayer_3" -> "BertLayer"; empty for another name.
std::string_view module_class(std::string_view name) {
  if (!name.starts_with(k_module)) return {};
  name.remove_prefix(k_module.size());
  return name.substr(0, name.rfind('_'));
}

class LayerFinder {
 public:
  LayerFinder(Trace& trace, const std::vector<int64_t>& sequences)
      : trace_(trace),
        events_(trace.host_events),
        sequences_(sequences),
        order_(order_by_nesting(events_, [](const HostEvent& event) { return event.kind != HostEventKind::runtime; })) {
  }

  void find() {
    if (!number_modules()) number_repetitions();
    inherit();
    number_gradients();
    inherit();
  }

 private:
  std::string_view name(uint32_t i) const { return trace_.names[events_[i].name]; }

  // The class that takes most time, of those with several modules and none of these within another.
  std::string_view layer_class() const {
    struct Total {
      int64_t nanoseconds = 0;
      std::map<uint32_t, int64_t> modules;
      bool is_nested = false;
    };
    std::map<std::string_view, Total> totals;
    each_nested(events_, order_, [&](uint32_t i, const std::vector<uint32_t>& open) {
      const std::string_view own = module_class(name(i));
      if (own.empty()) return;
      Total& total = totals[own];
      total.nanoseconds += events_[i].span.length();
      ++total.modules[events_[i].name];
      for (const uint32_t outer : open) total.is_nested = total.is_nested || module_class(name(outer)) == own;
    });
    std::pair<int64_t, std::string_view> best{0, {}};
    for (const auto& [own, total] : totals)
      if (total.modules.size() > 1 && !total.is_nested) best = std::max(best, {total.nanoseconds, own});
    return best.second;
  }

  bool number_modules() {
    const std::string_view wanted = layer_class();
    if (wanted.empty()) return false;
    std::map<uint32_t, int32_t> numbers;  // by name, in the order in which they first run
    std::vector<uint32_t> by_begin;
    for (const uint32_t i : order_)
      if (module_class(name(i)) == wanted) by_begin.push_back(i);
    std::sort(by_begin.begin(), by_begin.end(),
              [this](uint32_t a, uint32_t b) { return events_[a].span.begin < events_[b].span.begin; });
    for (const uint32_t i : by_begin)
      events_[i].layer = numbers.try_emplace(events_[i].name, static_cast<int32_t>(numbers.size())).first->second;
    return true;
  }

  // Takes the operations outside any other operation, step by step; all at once where no step is marked.
  void number_repetitions() {
    std::vector<uint32_t> outermost;
    each_nested(events_, order_, [&](uint32_t i, const std::vector<uint32_t>& open) {
      const auto is_operation = [this](uint32_t j) { return events_[j].kind == HostEventKind::operation; };
      if (is_operation(i) && std::none_of(open.begin(), open.end(), is_operation)) outermost.push_back(i);
    });
    std::sort(outermost.begin(), outermost.end(),
              [this](uint32_t a, uint32_t b) { return events_[a].span.begin < events_[b].span.begin; });
    bool is_marked = false;
    for (const StepMark& mark : trace_.marks) {
      if (mark.device) continue;
      is_marked = true;
      number_step(outermost, mark.span);
    }
    if (!is_marked && !outermost.empty()) number_step(outermost, {INT64_MIN, INT64_MAX});
  }

  // `outermost`: by begin.
  void number_step(const std::vector<uint32_t>& outermost, const Span& step) {
    std::vector<uint32_t> forward, backward;
    const auto first_from = [&](int64_t time) {
      return std::partition_point(outermost.begin(), outermost.end(),
                                  [&](uint32_t i) { return events_[i].span.begin < time; });
    };
    for (auto i = first_from(step.begin), end = first_from(step.end); i < end; ++i)
      (name(*i).starts_with(k_backward) ? backward : forward).push_back(*i);
    const Repetition found = number_repetition(forward, 0);
    if (found.count > 0) number_repetition(backward, found.count);
  }

  // `layers`: as many are wanted, in reverse; 0: any number, forward.
  Repetition number_repetition(const std::vector<uint32_t>& run, size_t layers) {
    std::vector<uint32_t> names;
    for (const uint32_t i : run) names.push_back(events_[i].name);
    const Repetition found = find_repetition(names);
    if (found.count == 0 || (layers != 0 && found.count != layers)) return found;
    for (size_t i = 0; i < found.period * found.count; ++i) {
      const size_t layer = i / found.period;
      events_[run[found.begin + i]].layer = static_cast<int32_t>(layers == 0 ? layer : layers - 1 - layer);
    }
    return found;
  }

  void number_gradients() {
    std::unordered_map<int64_t, int32_t> layers;
    const auto is_gradient = [this](uint32_t i) { return name(i).starts_with(k_backward); };
    for (const uint32_t i : order_)
      if (sequences_[i] >= 0 && events_[i].layer >= 0 && !is_gradient(i)) layers[sequences_[i]] = events_[i].layer;
    for (const uint32_t i : order_) {
      if (sequences_[i] < 0 || events_[i].layer >= 0 || !is_gradient(i)) continue;
      if (const auto found = layers.find(sequences_[i]); found != layers.end()) events_[i].layer = found->second;
    }
  }

  // What runs within a layer belongs to it.
  void inherit() {
    each_nested(events_, order_, [&](uint32_t i, const std::vector<uint32_t>& open) {
      if (events_[i].layer < 0 && !open.empty()) events_[i].layer = events_[open.back()].layer;
    });
  }

  Trace& trace_;
  std::vector<HostEvent>& events_;
  const std::vector<int64_t>& sequences_;
  std::vector<uint32_t> order_;
};

}  // namespace

Repetition find_repetition(const std::vector<uint32_t>& sequence) {
  constexpr size_t k_longest_sequence = 20'000, k_shortest_period = 3, k_longest_period = 1'500, k_fewest = 3;
  Repetition best;
  size_t most = 0;
  if (sequence.size() > k_longest_sequence) return best;
  for (size_t period = k_shortest_period; period <= std::min(sequence.size() / k_fewest, k_longest_period); ++period) {
    size_t run = 0;
    for (size_t i = 0; i + period < sequence.size(); ++i) {
      run = sequence[i] == sequence[i + period] ? run + 1 : 0;
      const size_t covered = run + period;
      if (covered < k_fewest * period || covered <= most) continue;
      most = covered;
      best = {i + 1 - run, period, covered / period};
    }
  }
  return 2 * most >= sequence.size() ? best : Repetition();
}

void find_layers(Trace& trace, const std::vector<int64_t>& sequences) {
  const auto is_stated = [](const HostEvent& event) { return event.layer >= 0; };
  if (std::any_of(trace.host_events.begin(), trace.host_events.end(), is_stated)) return;
  LayerFinder(trace, sequences).find();
}

}  // namespace tprimat::logs
