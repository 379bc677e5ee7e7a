#include "why/checks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "text/format.h"
#include "trace/host_summary.h"
#include "why/side.h"

namespace tprimat::results {
namespace {

using logs::KernelClass;

constexpr double k_overlap_bound = 0.10;  // of a queue's time; programmatic launches overlap by a few per cent
constexpr double k_same_weights = 0.20;   // of the products' time, with weights that both sides have
constexpr double k_same_classes = 0.40;   // of the time, by class, where shapes are unknown

void check_ranks(const SideInput& input) {
  std::set<int64_t> seen;
  for (const logs::Trace& trace : input.ranks)
    if (trace.rank && !seen.insert(*trace.rank).second)
      throw Error({fmt::format("two traces are of rank {}", *trace.rank), input.label, "name each rank's trace once"});
}

// Ranks of one run agree on how many they are.
void check_sizes(const SideInput& input) {
  std::optional<int64_t> size;
  for (const logs::Trace& trace : input.ranks) {
    if (size && trace.world_size && *trace.world_size != *size)
      throw Error({fmt::format("the traces are of runs of {} and of {} processes", *size, *trace.world_size),
                   input.label, "give the traces of one run"});
    if (trace.world_size) size = trace.world_size;
  }
}

void check_world(const SideInput& input) {
  if (!input.result || !input.result->training_config.num_gpus) return;
  for (const logs::Trace& trace : input.ranks)
    if (trace.world_size && *trace.world_size > 1 && *trace.world_size != *input.result->training_config.num_gpus)
      throw Error({fmt::format("the trace is of a run of {} processes, the result of one on {} devices",
                               *trace.world_size, *input.result->training_config.num_gpus),
                   input.label, "name the traces that were recorded in this run"});
}

bool has_dimension(std::string_view shapes, double length) {
  return std::ranges::any_of(parse_shapes(shapes),
                             [&](const Dimensions& each) { return std::ranges::find(each, length) != each.end(); });
}

// The width of a Transformer is a dimension of its products on every rank.
void check_width(const SideInput& input) {
  if (!input.result || !input.result->model_info.shape || input.result->model_info.shape->hidden_size <= 0) return;
  const int64_t width = input.result->model_info.shape->hidden_size;
  for (const logs::Trace& trace : input.ranks) {
    int64_t products = 0;
    bool found = false;
    for (const logs::HostEvent& event : trace.host_events) {
      if (found || event.shapes >= trace.shapes.size()) continue;
      if (logs::class_of_operation(trace, event.name) != KernelClass::matmul) continue;
      ++products;
      found = has_dimension(trace.shapes[event.shapes], static_cast<double>(width));
    }
    if (products > 0 && !found)
      throw Error(
          {fmt::format("none of the {} matrix products of the trace has a dimension of {}, the hidden size of {}",
                       products, width, input.result->model_info.name),
           input.label, "name the traces that were recorded in this run"});
  }
}

// The two-dimensional right operand of a product, or a convolution's weight, whatever its transposition.
Dimensions weight_of(std::string_view shapes) {
  std::vector<Dimensions> matrices = parse_shapes(shapes);
  std::erase_if(matrices, [](const Dimensions& each) { return each.size() < 2; });
  if (matrices.size() < 2) return {};
  std::ranges::sort(matrices.back());
  return matrices.back();
}

std::map<Dimensions, double> weights_of(const StepWork& work) {
  std::map<Dimensions, double> weights;
  for (const WorkRow& row : work.rows)
    if (row.key.kernel_class == KernelClass::matmul || row.key.kernel_class == KernelClass::convolution)
      if (const Dimensions weight = weight_of(row.key.shapes); !weight.empty()) weights[weight] += row.mean_seconds();
  return weights;
}

std::map<KernelClass, double> classes_of(const StepWork& work) {
  std::map<KernelClass, double> classes;
  for (const WorkRow& row : work.rows)
    if (row.key.kernel_class != KernelClass::collective) classes[row.key.kernel_class] += row.mean_seconds();
  return classes;
}

template <class Key>
double sum_of(const std::map<Key, double>& times) {
  double sum = 0;
  for (const auto& [key, seconds] : times) sum += seconds;
  return sum;
}

// Of both sides' time, the share of the weights that the other side has too.
double share_of_same(const std::map<Dimensions, double>& a, const std::map<Dimensions, double>& b) {
  double shared = 0;
  for (const auto& [weight, seconds] : a) shared += b.contains(weight) ? seconds : 0;
  for (const auto& [weight, seconds] : b) shared += a.contains(weight) ? seconds : 0;
  return shared / (sum_of(a) + sum_of(b));
}

double shared_shares(const std::map<KernelClass, double>& a, const std::map<KernelClass, double>& b) {
  double shared = 0;
  for (const auto& [kernel_class, seconds] : a)
    if (const auto found = b.find(kernel_class); found != b.end())
      shared += std::min(seconds / sum_of(a), found->second / sum_of(b));
  return shared;
}

[[noreturn]] void refuse_models(const SideInput& a, const SideInput& b, const std::string& reason) {
  throw Error({"the two sides train different models: " + reason, a.label + " and " + b.label,
               "name two runs of the same model; batch size, parallelism and machine may differ"});
}

bool check_stated_models(const SideInput& a, const SideInput& b) {
  if (!a.result || !b.result) return false;
  const ModelInfo &left = a.result->model_info, &right = b.result->model_info;
  if (!left.shape || !right.shape) {
    if (left.name != right.name) refuse_models(a, b, fmt::format("{} and {}", left.name, right.name));
    return false;
  }
  const ModelSpec &one = *left.shape, &two = *right.shape;
  if (one.hidden_size != two.hidden_size || one.num_layers != two.num_layers ||
      one.ffn_hidden_size != two.ffn_hidden_size || one.num_attention_heads != two.num_attention_heads)
    refuse_models(a, b,
                  fmt::format("{} ({} layers of {}) and {} ({} layers of {})", left.name, one.num_layers,
                              one.hidden_size, right.name, two.num_layers, two.hidden_size));
  return true;
}

}  // namespace

void check_traces(const SideInput& input) {
  if (input.ranks.empty())
    throw Error({"no trace is recorded", input.label, "record one with tprimat run --profile-steps 3"});
  check_ranks(input);
  check_sizes(input);
  check_world(input);
  check_width(input);
}

void check_pieces(const logs::Trace& trace, const StepPieces& pieces, std::string_view where) {
  if (!pieces.device) return;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (trace.events[i].device == *pieces.device) order.push_back(i);
  std::ranges::sort(order, {}, [&](uint32_t i) { return trace.events[i].span.begin; });
  std::map<int32_t, int64_t> ends;
  int64_t overlap = 0, total = 0;
  for (const uint32_t i : order) {
    const logs::Span& span = trace.events[i].span;
    const auto [end, is_first] = ends.try_emplace(trace.events[i].stream, span.begin);
    overlap += std::max<int64_t>(0, std::min(end->second, span.end) - span.begin);
    total += span.length();
    end->second = std::max(end->second, span.end);
  }
  if (static_cast<double>(overlap) > k_overlap_bound * static_cast<double>(total))
    throw Error({fmt::format("work on one stream of the GPU overlaps for {} ({} of its time), which is impossible",
                             format_duration(static_cast<double>(overlap) / 1e9),
                             format_percent(static_cast<double>(overlap) / static_cast<double>(total))),
                 std::string(where), "record the trace again"});
}

void check_same_model(const SideInput& a, const SideInput& b, const Side& prepared_a, const Side& prepared_b) {
  if (check_stated_models(a, b)) return;
  const auto left = weights_of(prepared_a.work), right = weights_of(prepared_b.work);
  if (sum_of(left) > 0 && sum_of(right) > 0) {
    if (const double shared = share_of_same(left, right); shared < k_same_weights)
      refuse_models(a, b,
                    fmt::format("only {} of the time of their products has weights of the same shapes",
                                format_percent(shared, 0)));
    return;
  }
  const auto classes = classes_of(prepared_a.work), other_classes = classes_of(prepared_b.work);
  if (sum_of(classes) <= 0 || sum_of(other_classes) <= 0) return;
  if (const double shared = shared_shares(classes, other_classes); shared < k_same_classes)
    refuse_models(
        a, b, fmt::format("only {} of their time is spent in the same classes of kernels", format_percent(shared, 0)));
}

}  // namespace tprimat::results
