#include "planner/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/expert_time.h"
#include "spec/flop_breakdown.h"
#include "spec/pipeline_layout.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

double causal_flops(const PlanRequest& request) {
  if (!request.trains_adapters) return break_down(request.shape, {request.sequence_length, true, 0}).total();
  // Adapters of rank 16 beside attention's products: two matrices each.
  const int64_t adapters = 2 * 2 * 16 * request.shape.hidden_size * request.shape.num_layers;
  return flops_per_token(request.shape, request.sequence_length, FlopFormula::causal, adapters);
}

std::string describe_savers(const PlanLine& line) {
  return std::string(enum_name(line.sharding)) + format_further(line);
}

// Days and more, where format_duration() would count hours.
std::string format_span(double seconds) {
  constexpr double k_day = 86400;
  return seconds < 2 * k_day ? format_duration(seconds) : format_days(seconds / k_day);
}

std::string share(const PlanLine& line, std::initializer_list<const char*> keys) {
  double sum = 0;
  for (const char* key : keys)
    if (const auto part = line.seconds.find(key); part != line.seconds.end()) sum += part->second;
  return format_percent(sum / line.step_seconds);
}

std::vector<std::string> cells_of(const PlanLine& line, size_t rank) {
  std::vector<std::string> cells = {std::to_string(rank)};
  const auto add = [&](std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) cells.push_back(std::to_string(size));
  };
  add({line.tensor, line.pipeline, line.chunks, line.context});
  if (line.expert_ranks) add({line.expert, line.expert_tensor});
  add({line.data, line.micro_batch, line.accumulation});
  cells.insert(
      cells.end(),
      {describe_savers(line), format_duration(line.step_seconds), format_count(line.tokens_per_second_per_gpu),
       format_percent(line.mfu), format_gb(line.memory_bytes),
       share(line, {"tensor exchange", "context exchange", "expert exchange", "pipeline transfers", "data exchange"}),
       share(line, {"bubble"})});
  return cells;
}

std::string render_lines(const std::vector<PlanLine>& lines) {
  TextTable table;
  const auto add = [&](std::initializer_list<const char*> titles, bool right) {
    for (const char* title : titles) {
      if (right) table.right.push_back(table.header.size());
      table.header.emplace_back(title);
    }
  };
  add({"", "TP", "PP", "VP", "CP"}, true);
  if (!lines.empty() && lines.front().expert_ranks) add({"EP", "ETP"}, true);
  add({"DP", "MBS", "GA"}, true), add({"sharding"}, false);
  add({"step", "tokens/s/GPU", "MFU", "memory", "exchange", "bubble"}, true);
  for (size_t i = 0; i < lines.size(); ++i) table.rows.push_back(cells_of(lines[i], i + 1));
  return render_text(table);
}

// Largest first.
std::string render_parts(const std::map<std::string, double>& parts, double whole, std::string (*format)(double)) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, value] : parts)
    if (value > 0.005 * whole) sorted.emplace_back(value, name);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [value, name] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format(value));
  return text;
}

// The fastest that needs at most that share of the fastest's memory.
const PlanLine* find_smaller(const PlanReport& report, double share) {
  for (const PlanLine& line : report.frontier)
    if (line.memory_bytes <= share * report.ranked.front().memory_bytes) return &line;
  return nullptr;
}

// What less memory costs.
std::string render_smaller(const PlanReport& report) {
  std::string text;
  const PlanLine* last = nullptr;
  for (const double share : {0.75, 0.5, 0.25}) {
    const PlanLine* line = find_smaller(report, share);
    if (line == nullptr || line == last) continue;
    text += fmt::format("  {:8}  {} in {}: {}\n", text.empty() ? "smaller" : "", format_gb(line->memory_bytes),
                        format_duration(line->step_seconds), format_layout(*line));
    last = line;
  }
  return text;
}

// "80.00 GB", and who says so where it is not the catalogue.
std::string name_memory(const PlanReport& report) {
  const std::string all = format_gb(report.memory_bytes);
  return report.memory_source.empty() ? all : fmt::format("{} ({})", all, report.memory_source);
}

// "  80 %      6.512 s to 7.498 s, from 214 rows of H100 with Megatron-Core"
std::string render_interval(const PlanReport& report) {
  if (!report.interval) return "";
  return fmt::format("  {:8}  {}, from {}\n", "80 %", format_interval(report), report.interval->basis);
}

// Benchmarks force balance; trainings do not.
std::string render_routing(const RoutingEffect& routing) {
  return fmt::format(
      "  routing   learned: {}, with {:.2f} x the mean load on the fullest rank; balanced: {}; balance flatters by "
      "{}\n",
      format_duration(routing.learned_step_seconds), routing.load, format_duration(routing.balanced_step_seconds),
      format_percent(routing.flattery()));
}

// Where the fastest layout's time and memory go, and why it is the fastest.
std::string render_choice(const PlanReport& report) {
  const PlanLine& best = report.ranked.front();
  std::string text =
      fmt::format("the fastest: {}\n  time      {}: {}\n{}  memory    {} of {}: {}\n", format_layout(best),
                  format_duration(best.step_seconds), render_parts(best.seconds, best.step_seconds, format_duration),
                  render_interval(report), format_gb(best.memory_bytes), name_memory(report),
                  render_parts(best.bytes, best.memory_bytes, format_gb));
  if (report.routing) text += render_routing(*report.routing);
  if (report.tuning) text += render_tuning(*report.tuning);
  if (report.published_best) text += render_published_best(*report.published_best);
  for (size_t i = 0; i < report.reasons.size(); ++i)
    text += fmt::format("  {:8}  {}\n", i == 0 ? "because" : "", report.reasons[i]);
  return text + render_smaller(report);
}

std::string render_goodput(const TrainingOutlook& training) {
  const Goodput& g = training.goodput;
  return fmt::format("  goodput   {}: a failure every {}, a checkpoint of {} every {}\n  assumed   {}\n",
                     format_percent(g.share), format_span(g.failure_seconds), format_duration(g.checkpoint_seconds),
                     format_duration(g.interval_seconds), describe_failures(g));
}

std::string render_straggling(const Straggling& s) {
  if (s.nodes <= 1) return "";
  return fmt::format("  slowest   of {:.0f} nodes: +{} of a step, the effect of {} noise per node\n", s.nodes,
                     format_percent(s.share), format_percent(s.node_noise, 2));
}

std::string render_training(const TrainingOutlook& t) {
  std::string text = fmt::format("  training  {} tokens {}, at {} tokens/s\n", format_tokens(t.tokens),
                                 t.days ? "in " + format_days(*t.days) : fmt::format("never finish: {}", k_never_ends),
                                 format_count(t.tokens_per_second));
  text += render_goodput(t) + render_straggling(t.straggling);
  if (t.usd) text += fmt::format("  cost      {} at ${:.4g} per GPU-hour\n", format_usd(*t.usd), *t.usd_per_gpu_hour);
  if (t.megawatt_hours)
    text += fmt::format("  energy    at most {}, for GPUs alone at {} W each\n",
                        format_megawatt_hours(*t.megawatt_hours), format_fixed(*t.tdp_watts, 0));
  return text;
}

std::string render_none_fits(const PlanReport& report) {
  if (!report.smallest) {
    const std::string remedy = name_legal_batch(report);
    return fmt::format("no layout of this model, batch and number of GPUs is legal{}{}\n", remedy.empty() ? "" : ": ",
                       remedy);
  }
  const PlanLine& l = *report.smallest;
  return fmt::format("none of {} layouts fits: the smallest ({}) needs {} of {}\n  memory  {}\n", report.legal,
                     format_layout(l), format_gb(l.memory_bytes), name_memory(report),
                     render_parts(l.bytes, l.memory_bytes, format_gb));
}

}  // namespace

std::optional<RoutingEffect> compare_routing(const RankedLayout& plan, const PlanRequest& request,
                                             const ParameterSet& parameters) {
  if (!request.shape.is_sparse()) return std::nullopt;
  Workload learned = plan.workload, balanced = plan.workload;
  learned.routing = Routing::learned, balanced.routing = Routing::balanced;
  balanced.expert_load = 1;
  const Rates rates = resolve_rates(parameters, request.machine, learned);
  const double with_learned = time_step(learned, request.machine, rates).total();
  const double with_balanced =
      time_step(balanced, request.machine, resolve_rates(parameters, request.machine, balanced)).total();
  if (with_learned == with_balanced) return std::nullopt;
  RoutingEffect effect{request.routing.value_or(Routing::learned), felt_load(learned, rates)};
  const double planned = effect.planned == Routing::learned ? with_learned : with_balanced;
  const double scale = plan.time.total() / planned;  // by what is known of the nodes
  effect.learned_step_seconds = scale * with_learned, effect.balanced_step_seconds = scale * with_balanced;
  return effect;
}

PlanLine describe_plan(const RankedLayout& plan, const PlanRequest& request) {
  const Layout& l = plan.workload.layout;
  PlanLine line;
  static_cast<Layout&>(line) = l;
  const bool sparse = request.shape.is_sparse();
  if (sparse) line.expert_ranks = l.expert, line.expert_tensor_ranks = l.expert_tensor;
  line.layers_of_places = plan.workload.layers_of_places;
  line.pipeline_layout = stated_stages(plan.workload);
  if (l.recompute == Recompute::selective && !plan.workload.recomputed_modules.empty())
    line.recompute_modules = plan.workload.recomputed_modules;
  line.accumulation = plan.workload.global_batch / (l.data * l.micro_batch);
  line.memory_bytes = plan.memory.total();
  for (const auto& [part, bytes] : plan.memory.parts()) line.bytes[part] = bytes;
  const StepTime& t = plan.time;
  if (t.total() <= 0) return line;
  line.step_seconds = t.total();
  line.tokens_per_second_per_gpu = t.tokens_per_second_per_gpu(plan.workload);
  line.mfu = line.tokens_per_second_per_gpu * causal_flops(request) / request.machine.peak(request.precision);
  line.seconds = {{"products", t.products},        {"attention", t.attention},
                  {"element-wise", t.elementwise}, {"head", t.ends},
                  {"recompute", t.recompute},      {"tensor exchange", t.tensor},
                  {"context exchange", t.context}, {"pipeline transfers", t.transfers},
                  {"data exchange", t.data},       {"bubble", t.bubble},
                  {"optimizer", t.optimizer},      {"overhead", t.overhead}};
  if (sparse) line.seconds["expert exchange"] = t.experts;
  return line;
}

std::string format_sizes(const PlanLine& line) {
  std::string text;
  const auto add = [&](const char* name, int64_t size) {
    if (size > 1) text += fmt::format("{} {}, ", name, size);
  };
  add("TP", line.tensor), add("PP", line.pipeline), add("VP", line.chunks), add("CP", line.context);
  add("EP", line.expert), add("ETP", line.expert_tensor);
  add("DP", line.data);
  return text + fmt::format("MBS {}", line.micro_batch);
}

std::string name_sharding(Sharding sharding) {
  return sharding == Sharding::none ? "unsharded" : std::string(enum_name(sharding));
}

std::string format_further(const PlanLine& line) {
  std::string text;
  if (line.recompute != Recompute::none) text += fmt::format(", {} recompute", enum_name(line.recompute));
  if (line.ends_as_layers) text += ", ends as layers";
  if (line.delays_weights) text += ", zero bubble";
  if (!line.layers_of_places.empty()) text += ", stages " + describe_place_layers(line.layers_of_places);
  return text;
}

std::string format_layout(const PlanLine& line) {
  return fmt::format("{}, {}{}", format_sizes(line), name_sharding(line.sharding), format_further(line));
}

std::string format_usd(double usd) {
  if (usd < 1e4) return "$" + format_count(usd);
  if (usd < 999.5e3) return fmt::format("${:.0f} k", usd / 1e3);
  if (usd < 999.5e6) return fmt::format("${} M", format_significant(usd / 1e6, 3));
  return fmt::format("${} B", format_count(usd / 1e9));
}

std::string format_megawatt_hours(double megawatt_hours) { return format_count(megawatt_hours) + " MWh"; }

std::string format_days(double days) { return format_days(days, are_hours(days)); }

std::string format_days(double days, bool in_hours) {
  if (in_hours) return format_significant(days * 24, 3) + " hours";
  return format_count(days) + " days";
}

bool are_hours(double days) {
  constexpr double k_short = 2;
  return days < k_short;
}

std::string name_legal_batch(const PlanReport& report) {
  if (!report.batch_multiple) return "";
  const int64_t multiple = *report.batch_multiple;
  return fmt::format("choose a GBS divisible by {}, such as {}", multiple,
                     (report.global_batch_size + multiple - 1) / multiple * multiple);
}

std::string format_tokens(double tokens) {
  constexpr std::array<std::pair<double, const char*>, 3> k_units = {{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}}};
  for (const auto& [unit, letter] : k_units)
    if (tokens >= unit) return fmt::format("{:.6g}{}", tokens / unit, letter);
  return fmt::format("{:.0f}", tokens);
}

std::string format_interval(const PlanReport& report) {
  if (!report.interval || report.ranked.empty()) return "";
  const double seconds = report.ranked.front().step_seconds;
  return fmt::format("{} to {}", format_duration(report.interval->low * seconds),
                     format_duration(report.interval->high * seconds));
}

std::string describe_failures(const Goodput& g) {
  const bool published = g.failure_gpu_hours == published_reliability().failure_gpu_hours;
  return fmt::format("one failure per {} GPU-hours{}, {} to restart", format_count(g.failure_gpu_hours),
                     published ? " (Llama 3, arXiv 2407.21783)" : "", format_duration(g.restart_seconds));
}

PlanReport make_plan_report(const PlanRequest& request, const SearchOutcome& outcome) {
  PlanReport report;
  report.model = request.shape.full_name;
  report.gpu = request.machine.id;
  report.framework = request.family->full_name;
  report.gpus = request.gpus;
  report.sequence_length = request.sequence_length;
  report.global_batch_size = request.global_batch;
  report.precision = request.precision;
  report.legal = outcome.legal, report.fitting = outcome.fitting;
  report.memory_bytes = request.machine.memory_bytes;
  report.calibrated = outcome.calibrated;
  if (outcome.interval.is_known()) report.interval = outcome.interval;
  for (const RankedLayout& plan : outcome.ranked) report.ranked.push_back(describe_plan(plan, request));
  for (const RankedLayout& plan : outcome.frontier) report.frontier.push_back(describe_plan(plan, request));
  if (outcome.smallest) report.smallest = describe_plan(*outcome.smallest, request);
  if (!outcome.ranked.empty()) report.tuning = describe_tuning(outcome.ranked.front().workload, request);
  return report;
}

std::string render_plan_report(const PlanReport& report) {
  std::string text = fmt::format("{} on {} x {}, {}, {}, SL {}, GBS {}: {} of {} legal layouts fit\n\n", report.model,
                                 report.gpus, report.gpu, report.framework, enum_name(report.precision),
                                 report.sequence_length, report.global_batch_size, report.fitting, report.legal);
  if (report.ranked.empty()) return text + render_none_fits(report);
  text += render_lines(report.ranked) + "\n" + render_choice(report);
  if (report.training) text += render_training(*report.training);
  if (std::ranges::any_of(report.ranked, [](const PlanLine& line) { return line.ends_as_layers; }))
    text += "\nends as layers: embedding and loss count as layers when the pipeline is split into stages\n";
  if (!report.calibrated)
    text += report.framework == find_family("native")->full_name
                ? "\nthe parameters were fitted on another processor: calibrate them on this one (docs/planner.md)\n"
                : "\nthese figures rest on priors, not on measurements of this architecture (docs/planner.md)\n";
  return text;
}

}  // namespace tprimat::planner
