#include "run/adapt.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "config/layout_rules.h"
#include "launch/expert_settings.h"
#include "launch/frameworks.h"
#include "run/forecast.h"
#include "run/nearest_layout.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// The nearest number formats first: those that fill the same bytes, then wider ones.
std::vector<Precision> precisions_near(Precision asked) {
  using enum Precision;
  switch (asked) {
    case fp8: return {fp8, bf16, fp16, tf32, fp32};
    case fp16: return {fp16, bf16, tf32, fp32};
    case bf16: return {bf16, fp16, tf32, fp32};
    case tf32: return {tf32, fp32, bf16};
    case fp32: return {fp32, tf32, bf16};
  }
  return {asked};
}

struct StateFormats {
  MomentFormat moments = MomentFormat::fp32;
  bool master_weights = true;
  std::optional<Offload> offload;
  std::optional<bool> fp8_param;
  bool operator==(const StateFormats&) const = default;
};

StateFormats formats_of(const LaunchRequest& request) {
  const OptimizerSpec& optimizer = request.spec.optimizer;
  return {optimizer.moments, optimizer.master_weights, request.spec.offload, request.settings.fp8_param};
}

LaunchRequest with_formats(LaunchRequest request, Precision precision, const StateFormats& formats) {
  request.spec.precision = precision;
  request.spec.optimizer.moments = formats.moments;
  request.spec.optimizer.master_weights = formats.master_weights;
  request.spec.offload = formats.offload;
  request.settings.fp8_param = precision == Precision::fp8 ? formats.fp8_param : std::nullopt;
  return request;
}

// As asked, then as the framework would have them.
std::vector<StateFormats> usual_formats(const LaunchRequest& asked) {
  std::vector<StateFormats> list = {formats_of(asked)};
  StateFormats each = list.front();
  for (const auto& change : {+[](StateFormats& f) { f.fp8_param.reset(); }, +[](StateFormats& f) { f.offload.reset(); },
                             +[](StateFormats& f) { f.moments = MomentFormat::fp32, f.master_weights = true; }}) {
    change(each);
    if (each != list.back()) list.push_back(each);
  }
  return list;
}

// Those that save memory, for what does not fit otherwise.
std::vector<StateFormats> saving_formats(const LaunchRequest& asked) {
  StateFormats compact = formats_of(asked), host = compact, all_on_host = compact;
  compact.moments = MomentFormat::bf16, compact.master_weights = false;
  host.offload = Offload::optimizer, all_on_host.offload = Offload::parameters;
  return {compact, host, all_on_host};
}

// Why the framework refuses a request; empty where it does not.
std::string why_refused(const PlannedRun& run, const LaunchRequest& request) {
  try {
    plan_launch(require_framework(run.framework, run.platform), request);
    return "";
  } catch (const Error& error) {
    std::vector<std::string> reasons;
    for (const Problem& problem : error.problems()) reasons.push_back(problem.what);
    return join(reasons, "; ");
  }
}

PlannedRun with_request(const PlannedRun& run, const LaunchRequest& request) {
  PlannedRun other = run;
  other.request = request;
  other.spec = request.spec;
  other.setup.settings = request.settings;
  return other;
}

class NearestRequest {
 public:
  NearestRequest(const PlannedRun& run, const MachineFacts& machine, const planner::PlannerSettings& planner)
      : run_(run), machine_(machine), planner_(planner) {}

  std::optional<LaunchRequest> find() {
    std::vector<StateFormats> all = usual_formats(run_.request);
    for (const StateFormats& each : saving_formats(run_.request)) all.push_back(each);
    for (const MemoryLimit limit : {MemoryLimit::to_spare, MemoryLimit::just_enough})
      if (const auto fitting = find_among(all, limit)) return fitting;
    return find_among(usual_formats(run_.request), MemoryLimit::unlimited);
  }

 private:
  // How much of a device's memory a layout may fill.
  enum class MemoryLimit { to_spare, just_enough, unlimited };

  std::optional<LaunchRequest> find_among(const std::vector<StateFormats>& formats, MemoryLimit limit) const {
    for (const Precision precision : precisions_near(run_.request.spec.precision))
      for (const StateFormats& each : formats)
        if (const auto found = find_layout(with_formats(run_.request, precision, each), limit)) return found;
    return std::nullopt;
  }

  // A format whose memory is not known is none that fits, where that of the request is.
  std::optional<LaunchRequest> find_layout(const LaunchRequest& request, MemoryLimit limit) const {
    const Forecast known = forecast(with_request(run_, request), machine_, planner_);
    if (limit != MemoryLimit::unlimited && known.missing.empty() != is_predicted_) return std::nullopt;
    const bool limited = limit != MemoryLimit::unlimited && known.device && known.missing.empty();
    if (!is_refused(request) && (!limited || known.may_fit())) return request;
    if (!takes_some_layout(request)) return std::nullopt;
    const double bytes = !limited                         ? std::numeric_limits<double>::max()
                         : limit == MemoryLimit::to_spare ? usable_bytes(known)
                                                          : known.device->bytes;
    const FitTask task{bytes,
                       [&](const planner::Workload& each) {
                         return limited ? bytes_needed(*known.device, each, planner_.parameters) : 0.0;
                       },
                       [&](const planner::Layout& layout) { return !is_refused(with_layout(request, layout)); }, true};
    const auto fitting = find_fitting_layout(known.workload, task);
    return fitting ? std::optional(with_layout(request, fitting->layout)) : std::nullopt;
  }

  // A format that no layout makes acceptable need not be tried with all of them.
  bool takes_some_layout(LaunchRequest request) const {
    ParallelSpec& layout = request.spec.parallel;
    if (!is_refused(request)) return true;
    const int64_t ranks = layout.ranks();
    for (int64_t stage = 0; stage <= 3; ++stage) {
      layout = ParallelSpec{.strategy = layout.strategy, .data = ranks, .zero_stage = stage};
      if (!is_refused(request)) return true;
    }
    return false;
  }

  static LaunchRequest with_layout(LaunchRequest request, const planner::Layout& layout) {
    request.spec = planner::with_layout(std::move(request.spec), layout);
    fit_expert_sizes(request.spec.model, request.spec.parallel);
    return request;
  }

  bool is_refused(const LaunchRequest& request) const { return !why_refused(run_, request).empty(); }

  const PlannedRun& run_;
  const MachineFacts& machine_;
  const planner::PlannerSettings& planner_;
  const bool is_predicted_ = forecast(run_, machine_, planner_).missing.empty();
};

// One setting of a request, or several that only make sense together.
struct Aspect {
  std::string key;
  std::string (*show)(const LaunchRequest&);
  void (*copy)(const LaunchRequest& from, LaunchRequest& to);
};

template <auto member>
void copy_member(const LaunchRequest& from, LaunchRequest& to) {
  to.spec.parallel.*member = from.spec.parallel.*member;
}

// The sizes whose product is the number of ranks, and what depends on them.
void copy_grid(const LaunchRequest& from, LaunchRequest& to) {
  const ParallelSpec kept = to.spec.parallel;
  to.spec.parallel = from.spec.parallel;
  to.spec.parallel.expert = kept.expert, to.spec.parallel.expert_tensor = kept.expert_tensor;
  to.spec.parallel.zero_stage = kept.zero_stage;
}

template <auto member>
Aspect layout_aspect(const char* key, void (*copy)(const LaunchRequest&, LaunchRequest&) = copy_grid) {
  return {key, [](const LaunchRequest& request) { return fmt::format("{}", request.spec.parallel.*member); }, copy};
}

std::string list_modules(const TrainSpec& spec) {
  const std::vector<std::string> names = list_recomputed_modules(spec);
  return names.empty() ? "not stated" : join(names, " ");
}

const std::vector<Aspect>& aspects() {
  static const std::vector<Aspect> list = {
      {"precision", [](const LaunchRequest& r) { return std::string(enum_name(r.spec.precision)); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.precision = from.spec.precision; }},
      {"fp8_param",
       [](const LaunchRequest& r) {
         return r.settings.fp8_param ? fmt::format("{}", *r.settings.fp8_param) : std::string("not stated");
       },
       [](const LaunchRequest& from, LaunchRequest& to) { to.settings.fp8_param = from.settings.fp8_param; }},
      layout_aspect<&ParallelSpec::tensor>("tensor_model_parallel_size"),
      layout_aspect<&ParallelSpec::pipeline>("pipeline_model_parallel_size"),
      layout_aspect<&ParallelSpec::virtual_pipeline>("virtual_pipeline_model_parallel_size"),
      layout_aspect<&ParallelSpec::context>("context_parallel_size"),
      layout_aspect<&ParallelSpec::data>("data_parallel_size"),
      {"expert_model_parallel_size",
       [](const LaunchRequest& r) { return std::to_string(r.spec.parallel.expert_ranks()); },
       copy_member<&ParallelSpec::expert>},
      {"expert_tensor_parallel_size",
       [](const LaunchRequest& r) { return std::to_string(r.spec.parallel.expert_tensor_ranks()); },
       copy_member<&ParallelSpec::expert_tensor>},
      layout_aspect<&ParallelSpec::sequence_parallel>("sequence_parallel"),
      layout_aspect<&ParallelSpec::ends_as_layers>("embedding_and_loss_as_layers"),
      {"pipeline_layout", [](const LaunchRequest& r) { return r.spec.parallel.pipeline_layout.value_or("not stated"); },
       copy_member<&ParallelSpec::pipeline_layout>},
      layout_aspect<&ParallelSpec::zero_stage>("zero_stage", copy_member<&ParallelSpec::zero_stage>),
      {"micro_batch_size", [](const LaunchRequest& r) { return fmt::format("{}", r.spec.micro_batch_size); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.micro_batch_size = from.spec.micro_batch_size; }},
      {"recompute", [](const LaunchRequest& r) { return std::string(enum_name(r.spec.recompute)); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.recompute = from.spec.recompute; }},
      {"recompute_modules", [](const LaunchRequest& r) { return list_modules(r.spec); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.recompute_modules = from.spec.recompute_modules; }},
      {"moments", [](const LaunchRequest& r) { return std::string(enum_name(r.spec.optimizer.moments)); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.optimizer = from.spec.optimizer; }},
      {"master_weights", [](const LaunchRequest& r) { return fmt::format("{}", r.spec.optimizer.master_weights); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.optimizer = from.spec.optimizer; }},
      {"offload", [](const LaunchRequest& r) { return std::string(enum_name(r.spec.offload.value_or(Offload::none))); },
       [](const LaunchRequest& from, LaunchRequest& to) { to.spec.offload = from.spec.offload; }}};
  return list;
}

// Of a request for that many ranks; empty if nothing is.
std::string what_is_wrong(const PlannedRun& run, const LaunchRequest& request, int64_t ranks,
                          const MachineFacts& machine, const planner::PlannerSettings& planner) {
  if (std::string refused = why_refused(run, request); !refused.empty()) return refused;
  const TrainSpec& spec = request.spec;
  const LayoutTask task{spec.model, ranks, spec.micro_batch_size, spec.global_batch_size, spec.sequence_length};
  if (const auto broken = list_broken_rules(task, spec.parallel); !broken.empty()) return join(broken, "; ");
  const Forecast known = forecast(with_request(run, request), machine, planner);
  if (known.may_fit()) return "";
  return fmt::format("it would need {} of {}", format_memory(known.needed), format_memory(known.device->bytes));
}

// What would be wrong with the adapted request if this setting were as asked; of a layout whose settings are right one
// by one, what would be wrong with all of it.
std::string reason_of(const Aspect& aspect, const PlannedRun& run, const LaunchRequest& adapted,
                      const MachineFacts& machine, const planner::PlannerSettings& planner) {
  const int64_t ranks = adapted.spec.parallel.ranks();
  LaunchRequest back = adapted;
  aspect.copy(run.request, back);
  std::string reason = what_is_wrong(run, back, ranks, machine, planner);
  if (reason.empty() && back.spec.parallel != adapted.spec.parallel) {
    back.spec.parallel = run.request.spec.parallel;
    reason = what_is_wrong(run, back, ranks, machine, planner);
  }
  return reason.empty() ? "follows from the other changes" : reason;
}

// Where the framework would replace the ZeRO stage found by one of its own, that one, so that the plan has one change.
LaunchRequest with_own_zero_stage(const PlannedRun& run, const LaunchRequest& found) {
  if (found.spec.parallel.zero_stage == run.request.spec.parallel.zero_stage) return found;
  const LaunchPlan plan = plan_launch(require_framework(run.framework, run.platform), found);
  for (const Deviation& each : plan.deviations) {
    if (each.key != "zero_stage") continue;
    LaunchRequest own = found;
    own.spec.parallel.zero_stage = std::stoll(each.effective);
    return why_refused(run, own).empty() ? own : found;
  }
  return found;
}

std::string short_name(const std::string& key) {
  constexpr std::pair<std::string_view, std::string_view> k_names[] = {{"tensor_model_parallel_size", "TP"},
                                                                       {"pipeline_model_parallel_size", "PP"},
                                                                       {"virtual_pipeline_model_parallel_size", "VP"},
                                                                       {"context_parallel_size", "CP"},
                                                                       {"data_parallel_size", "DP"},
                                                                       {"expert_model_parallel_size", "EP"},
                                                                       {"expert_tensor_parallel_size", "ETP"},
                                                                       {"sequence_parallel", "SP"},
                                                                       {"zero_stage", "ZeRO"},
                                                                       {"micro_batch_size", "MBS"}};
  for (const auto& [name, abbreviation] : k_names)
    if (name == key) return std::string(abbreviation);
  return key;
}

// One row for each reason.
void add_rows(const PlannedRun& run, TextTable& table) {
  std::vector<std::pair<std::string, std::string>> rows;  // reason, changes
  for (const Deviation& each : run.plan.deviations) {
    if (each.reason.empty()) continue;
    const std::string change = fmt::format("{} {} -> {}", short_name(each.key), each.asked, each.effective);
    const auto known = std::ranges::find_if(rows, [&](const auto& row) { return row.first == each.reason; });
    if (known == rows.end())
      rows.emplace_back(each.reason, change);
    else
      known->second += ", " + change;
  }
  for (const auto& [reason, changes] : rows)
    table.rows.push_back({name_framework(run), run.spec.model.name, run.spec.parallel.strategy, changes, reason});
}

}  // namespace

std::string render_adaptations(const SuitePlan& suite) {
  TextTable table{{"framework", "model", "strategy", "asked for -> taken", "because"}, {}, {}};
  for (const PlannedRun& run : suite.runs)
    if (run.run == 1) add_rows(run, table);
  return table.rows.empty() ? "" : render_text(table);
}

std::optional<Adaptation> find_nearest_request(const PlannedRun& run, const MachineFacts& machine,
                                               const planner::PlannerSettings& planner) {
  const auto accepted = NearestRequest(run, machine, planner).find();
  if (!accepted) return std::nullopt;
  Adaptation found{with_own_zero_stage(run, *accepted), {}};
  for (const Aspect& aspect : aspects()) {
    const std::string asked = aspect.show(run.request), used = aspect.show(found.request);
    if (asked != used)
      found.differences.push_back({aspect.key, asked, used, reason_of(aspect, run, found.request, machine, planner)});
  }
  return found;
}

}  // namespace tprimat::suite
