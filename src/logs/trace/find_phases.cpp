#include <algorithm>
#include <string_view>
#include <vector>

#include "trace/nesting.h"
#include "trace/trace.h"

namespace tprimat::logs {
namespace {

// A name of an operation, an annotation or a Python function shows its phase where it begins with a text ("^") or
// contains it.
struct PhaseName {
  std::string_view text;
  Phase phase;
};
constexpr PhaseName k_phase_names[] = {
    {"^autograd::engine::evaluate_function", Phase::backward},
    {"^Optimizer.step", Phase::optimizer},
    {"^optimizer", Phase::optimizer},
    {"^backward-", Phase::backward},
    {"^Optimizer.zero_grad", Phase::optimizer},
    {"^enumerate(DataLoader)", Phase::data},
    {"dataloader.py(", Phase::data},
    {"save_checkpoint", Phase::checkpoint},
    {"torch/serialization.py(", Phase::checkpoint},
    {"evaluate_and_print", Phase::evaluation},
};
// Ranges that a program names itself: "## forward ##", "backward_step".
constexpr PhaseName k_annotation_names[] = {{"forward", Phase::forward},       {"backward", Phase::backward},
                                            {"optimizer", Phase::optimizer},   {"data", Phase::data},
                                            {"checkpoint", Phase::checkpoint}, {"eval", Phase::evaluation},
                                            {"valid", Phase::evaluation}};

// Operations that the backward pass never calls itself: within it they belong to a forward pass done again.
constexpr std::string_view k_forward_only[] = {"aten::linear",
                                               "aten::conv1d",
                                               "aten::conv2d",
                                               "aten::conv3d",
                                               "aten::batch_norm",
                                               "aten::layer_norm",
                                               "aten::rms_norm",
                                               "aten::group_norm",
                                               "aten::relu",
                                               "aten::relu_",
                                               "aten::dropout",
                                               "aten::embedding",
                                               "aten::gelu",
                                               "aten::softmax",
                                               "aten::log_softmax",
                                               "aten::max_pool2d",
                                               "aten::scaled_dot_product_attention",
                                               "aten::cross_entropy_loss"};

Phase phase_of_name(std::string_view name, HostEventKind kind) {
  for (const PhaseName& each : k_phase_names) {
    const bool begins = each.text.starts_with('^');
    if (begins ? name.starts_with(each.text.substr(1)) : name.find(each.text) != std::string_view::npos)
      return each.phase;
  }
  if (kind != HostEventKind::annotation) return Phase::unknown;
  for (const PhaseName& each : k_annotation_names)
    if (name.find(each.text) != std::string_view::npos) return each.phase;
  return Phase::unknown;
}

class PhaseFinder {
 public:
  explicit PhaseFinder(Trace& trace) : trace_(trace) {
    for (const std::string& name : trace.names) {
      by_name_.push_back(phase_of_name(name, HostEventKind::operation));
      by_annotation_.push_back(phase_of_name(name, HostEventKind::annotation));
      is_forward_.push_back(std::find(std::begin(k_forward_only), std::end(k_forward_only), name) !=
                            std::end(k_forward_only));
    }
  }

  void find() {
    const std::vector<uint32_t> order = order_by_nesting(trace_.host_events, [](const HostEvent&) { return true; });
    for (auto begin = order.begin(); begin != order.end();) {
      const uint32_t thread = event(*begin).thread;
      const auto end = std::find_if(begin, order.end(), [&](uint32_t i) { return event(i).thread != thread; });
      find_in_thread(begin, end);
      begin = end;
    }
  }

 private:
  using Iterator = std::vector<uint32_t>::const_iterator;

  HostEvent& event(uint32_t i) { return trace_.host_events[i]; }

  // Operations without a known name belong to the backward pass on its own thread, elsewhere to the forward pass.
  void find_in_thread(Iterator begin, Iterator end) {
    const Phase rest = is_backward_thread(begin, end) ? Phase::backward : Phase::forward;
    open_.clear();
    for (auto i = begin; i != end; ++i) {
      HostEvent& each = event(*i);
      while (!open_.empty() && event(open_.back()).span.end <= each.span.begin) open_.pop_back();
      const Phase around = open_.empty() ? Phase::unknown : event(open_.back()).phase;
      each.phase = phase_of(each, around, rest);
      if (each.kind != HostEventKind::runtime) open_.push_back(*i);
    }
  }

  Phase phase_of(const HostEvent& each, Phase around, Phase rest) const {
    const bool is_forward = is_forward_[each.name] || each.phase == Phase::forward;
    if (around == Phase::backward && is_forward && each.kind == HostEventKind::operation) return Phase::recompute;
    if (each.phase == Phase::recompute || around == Phase::recompute) return Phase::recompute;
    if (each.phase != Phase::unknown) return each.phase;
    const Phase named = (each.kind == HostEventKind::annotation ? by_annotation_ : by_name_)[each.name];
    if (named != Phase::unknown) return named;
    if (around != Phase::unknown) return around;
    return each.kind == HostEventKind::operation ? rest : Phase::unknown;
  }

  bool is_backward_thread(Iterator begin, Iterator end) {
    int64_t forward = 0, backward = 0;
    for (auto i = begin; i != end; ++i) {
      if (event(*i).kind != HostEventKind::operation) continue;
      if (by_name_[event(*i).name] == Phase::backward) ++backward;
      if (is_forward_[event(*i).name]) ++forward;
    }
    return backward > forward;
  }

  Trace& trace_;
  std::vector<Phase> by_name_, by_annotation_;
  std::vector<bool> is_forward_;
  std::vector<uint32_t> open_;
};

}  // namespace

void find_phases(Trace& trace) { PhaseFinder(trace).find(); }

}  // namespace tprimat::logs
