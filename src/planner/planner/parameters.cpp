#include "planner/parameters.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "text/words.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view parameters_tsv;
}

namespace {

constexpr std::string_view k_heading =
    "# Figures of the planner's time model, fitted by `tprimat plan --calibrate` (docs/planner.md). Columns, "
    "separated by tabs:\n"
    "#   name     key, or key@architecture (machines.tsv), key@family (families.tsv), release@version, run@settings\n"
    "#   value    after the fit\n"
    "#   prior    before it; spread: of that belief, standard deviation of the natural logarithm, 0: not fitted\n"
    "#   low, high  bounds\n"
    "# run@machine;architecture;family;model;release;precision;scaling;dispatcher;overlap;graphs;sharding;recompute;"
    "SL;TP;CP;PP;VP;DP;EP;ETP;MBS: a measured run of a sparse model, its step over that of the model\n"
    "name\tvalue\tprior\tspread\tlow\thigh\tmeaning\n";

// A figure of a machine of which a share is reached.
struct MachinePeak {
  std::string_view key;
  double Machine::*peak;
  std::optional<double> MeasuredRates::*measured;
};
constexpr MachinePeak k_machine_peaks[] = {{"product_16", &Machine::peak_16, &MeasuredRates::product_16},
                                           {"product_8", &Machine::peak_8, &MeasuredRates::product_8},
                                           {"attention", &Machine::peak_16, &MeasuredRates::attention},
                                           {"memory", &Machine::memory_bandwidth, &MeasuredRates::memory},
                                           {"link", &Machine::link_bandwidth, &MeasuredRates::link},
                                           {"token_link", &Machine::link_bandwidth, &MeasuredRates::all_to_all}};

[[noreturn]] void refuse_line(const std::string& path, int64_t line, const std::string& what) {
  throw Error(Problem{what, fmt::format("{}:{}", path, line),
                      "give a file that `tprimat plan --calibrate` wrote; docs/planner.md explains it"});
}

PlanParameter parse_line(std::string_view text, const std::string& path, int64_t line) {
  const std::vector<std::string_view> cells = split(text, '\t');
  if (cells.size() != 7) refuse_line(path, line, "does not have seven cells");
  const auto number = [&](size_t index) {
    const auto value = parse_number<double>(cells[index]);
    if (!value || !std::isfinite(*value))
      refuse_line(path, line, fmt::format("'{}' is not a number", printable(cells[index].substr(0, 40))));
    return *value;
  };
  PlanParameter each{std::string(cells[0]), number(1), number(2), number(3), number(4), number(5),
                     std::string(cells[6])};
  if (each.low <= 0 || !each.is_within_bounds() || each.spread < 0)
    refuse_line(path, line, fmt::format("{} is outside its bounds", printable(cells[0].substr(0, 60))));
  return each;
}

// Hands each line's parameter, and the line, to `take`; returns the measured runs.
template <class Take>
std::vector<MeasuredRun> parse_lines(std::string_view text, const std::string& path, const Take& take) {
  std::vector<MeasuredRun> runs;
  for (int64_t line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    const bool heading = row.empty() || row.starts_with('#') || row.starts_with("name\t");
    if (heading) continue;
    const PlanParameter each = parse_line(row, path, line);
    if (!each.name.starts_with(k_run_prefix)) {
      take(each, line);
    } else if (const auto run = parse_run(each.name, each.value)) {
      runs.push_back(*run);
    } else {
      refuse_line(path, line, "names no run that was measured");
    }
  }
  return runs;
}

}  // namespace

PlannerSettings load_planner_settings(const std::string& path) {
  if (path.empty()) return {};
  return {parse_parameters(read_file(path), path), path};
}

ParameterSet parse_parameters(std::string_view text, const std::string& path) {
  ParameterSet set = built_in_parameters();
  std::vector<MeasuredRun> runs = parse_lines(text, path, [&](const PlanParameter& each, int64_t line) {
    if (!set.replace(each)) refuse_line(path, line, "names an unknown parameter");
  });
  if (!runs.empty()) set.set_measured_runs(std::move(runs));
  return set;
}

ParameterSet::ParameterSet(std::vector<PlanParameter> parameters) : parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const PlanParameter& each = parameters_[i];
    CHECK(each.value > 0 && each.is_within_bounds());
    CHECK(index_.try_emplace(each.name, i).second);
  }
}

void ParameterSet::set_value(size_t index, double value) {
  PlanParameter& each = parameters_[index];
  each.value = std::clamp(value, each.low, each.high);
}

double ParameterSet::at(std::string_view key) const {
  const auto found = index_.find(key);
  CHECK(found != index_.end());
  return parameters_[found->second].value;
}

double ParameterSet::scoped(std::string_view key, std::string_view scope, double otherwise) const {
  std::array<char, 128> name;  // a search asks for every layout: nothing is allocated
  const auto written = fmt::format_to_n(name.data(), name.size(), FMT_COMPILE("{}@{}"), key, scope);
  const auto own = index_.find(std::string_view(name.data(), std::min(written.size, name.size())));
  if (own != index_.end()) return parameters_[own->second].value;
  const auto shared = index_.find(key);
  return shared != index_.end() ? parameters_[shared->second].value : otherwise;
}

const PlanParameter* ParameterSet::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &parameters_[found->second];
}

const PlanParameter* ParameterSet::find_own(std::string_view key, const Machine& machine) const {
  return find(fmt::format("{}@{}", key, machine_scope(machine)));
}

std::string machine_scope(const Machine& machine) {
  std::string scope = fmt::format("{}{}", k_machine_scope, machine.id);
  for (char& each : scope)
    if (static_cast<unsigned char>(each) < ' ') each = ' ';  // a line holds one parameter, its cells end at tabs
  return scope;
}

std::optional<double> reached_share(const ParameterSet& p, const Machine& machine, std::string_view key) {
  if (const PlanParameter* own = p.find_own(key, machine)) return own->value;
  const auto* known = std::ranges::find(k_machine_peaks, key, &MachinePeak::key);
  if (known != std::end(k_machine_peaks) && machine.measured.*known->measured && machine.*known->peak > 0)
    return *(machine.measured.*known->measured) / machine.*known->peak;
  const PlanParameter* each = p.find(fmt::format("{}@{}", key, machine.architecture));
  if (each == nullptr) each = p.find(key);
  return each == nullptr ? std::nullopt : std::optional(each->value);
}

void ParameterSet::drop_machines() {
  const auto is_of_one = [](const PlanParameter& each) {
    const size_t at = each.name.find('@');
    return at != std::string::npos && each.name.substr(at + 1).starts_with(k_machine_scope);
  };
  std::erase_if(parameters_, is_of_one);
  index_.clear();
  for (size_t i = 0; i < parameters_.size(); ++i) index_.emplace(parameters_[i].name, i);
}

void ParameterSet::reset() {
  for (PlanParameter& each : parameters_) each.value = each.prior;
  set_measured_runs({});
}

void ParameterSet::set_measured_runs(std::vector<MeasuredRun> runs) {
  runs_ = std::make_shared<const std::vector<MeasuredRun>>(std::move(runs));
}

bool ParameterSet::replace(const PlanParameter& parameter) {
  const size_t scope = parameter.name.find('@');
  constexpr std::array k_factors{"release@", "sparse_release@", "model@", "part@"};
  const bool factor = std::ranges::any_of(k_factors, [&](const char* key) { return parameter.name.starts_with(key); });
  if (factor || (scope != std::string::npos && parameter.name.substr(scope + 1).starts_with(k_machine_scope)))
    add(parameter);
  const auto found = index_.find(parameter.name);
  if (found == index_.end()) return false;
  parameters_[found->second] = parameter;
  return true;
}

void ParameterSet::add_factors(const Workload& workload, const Machine& machine) {
  constexpr double k_dense = 0.05, k_sparse = 0.1;  // programs learn to run sparse models
  const double spread = workload.shape.experts ? k_sparse : k_dense;
  const auto factor = [&](std::string_view key, const std::string& scope) {
    if (!scope.empty()) add({fmt::format("{}@{}", key, scope), 1, 1, spread, 0.5, 2, ""});
  };
  factor(workload.shape.experts ? "sparse_release" : "release", workload.release);
  factor("model", workload.shape.name);
  add({"part@" + machine.id, 1, 1, k_dense, 0.5, 2, ""});
}

void ParameterSet::add(const PlanParameter& parameter) {
  if (index_.try_emplace(parameter.name, parameters_.size()).second) parameters_.push_back(parameter);
}

const ParameterSet& built_in_parameters() {
  static const ParameterSet loaded = [] {
    std::vector<PlanParameter> all;
    auto runs = parse_lines(embedded::parameters_tsv, "src/planner/planner/parameters.tsv",
                            [&](const PlanParameter& each, int64_t) { all.push_back(each); });
    ParameterSet set(std::move(all));
    set.set_measured_runs(std::move(runs));
    return set;
  }();
  return loaded;
}

bool rests_on_measurements(const ParameterSet& parameters, const Machine& machine, const Family& family) {
  const std::string own = "@" + machine_scope(machine);
  const std::string scope = "@" + (family.own_trainer ? family.id : machine.architecture);
  const auto is_fitted = [&](const PlanParameter& each) {
    if (each.name.ends_with(own)) return true;
    if (!each.name.ends_with(scope)) return false;
    return each.value != (family.own_trainer ? built_in_parameters().scoped(each.name, "", each.prior) : each.prior);
  };
  return std::any_of(parameters.all().begin(), parameters.all().end(), is_fitted);
}

std::string format_parameters(const ParameterSet& parameters) {
  std::string text(k_heading);
  for (const PlanParameter& each : parameters.all())
    text += fmt::format("{}\t{:.5g}\t{:g}\t{:g}\t{:g}\t{:g}\t{}\n", each.name, each.value, each.prior, each.spread,
                        each.low, each.high, each.meaning);
  for (const MeasuredRun& run : parameters.measured_runs())
    text += fmt::format("{}\t{:.4g}\t1\t0\t{:g}\t{:g}\t\n", name_run(run), run.ratio, k_min_ratio, k_max_ratio);
  return text;
}

namespace {

// A part with more FLOPs per byte needs larger products to be busy; the reference is an A100.
double saturation(const ParameterSet& p, double peak, const Machine& machine) {
  constexpr double k_reference = 312e12 / 2.0e12;
  return p.at("saturation") * peak / machine.memory_bandwidth / k_reference;
}

double share_of(const ParameterSet& p, const Machine& machine, std::string_view key, double otherwise) {
  return reached_share(p, machine, key).value_or(otherwise);
}

void resolve_products(Rates& rates, const ParameterSet& p, const Machine& machine, PlanPrecision precision) {
  const double peak = machine.peak(precision);
  const MeasuredRates& measured = machine.measured;
  rates.product_16 = machine.peak_16 * share_of(p, machine, "product_16", 1);
  const bool fp8 = precision == PlanPrecision::fp8, fp4 = precision == PlanPrecision::fp4;
  const char* key = fp8 ? "product_8" : fp4 ? "product_4" : "product_16";
  rates.product_low = peak * share_of(p, machine, key, 1);
  rates.saturation_16 = measured.saturation_16.value_or(saturation(p, machine.peak_16, machine));
  const auto& saturation_low = fp8 ? measured.saturation_8 : measured.saturation_16;
  rates.saturation_low = !fp4 && saturation_low ? *saturation_low : saturation(p, peak, machine);
  rates.misaligned = p.at("misaligned");
  rates.misaligned_head = p.at("misaligned_head");
}

void resolve_memory_bound(Rates& rates, const ParameterSet& p, const Machine& machine, const Workload& workload) {
  const bool fused = workload.family->fused_attention;
  const double core = fused
                          ? share_of(p, machine, "attention", 1) * p.scoped("attention_factor", workload.family->id, 1)
                          : p.at("unfused_attention");
  rates.attention = machine.peak_16 * core * (fused && workload.narrow_attention ? p.at("narrow_attention") : 1);
  rates.attention_start = p.at("attention_start");
  rates.attention_width = p.scoped("attention_width", machine.architecture, 0);
  constexpr int64_t k_usual_head = 128;
  if (workload.shape.head_dim < k_usual_head)
    rates.attention_backward = p.scoped("narrow_head_backward", machine.architecture, 1);
  rates.score_bytes = p.at("score_bytes");
  rates.memory = machine.memory_bandwidth * share_of(p, machine, "memory", 1);
  rates.hidden_bytes = p.at(workload.family->fused_elementwise ? "hidden_bytes" : "unfused_hidden_bytes");
  rates.inner_bytes = p.at("inner_bytes");
  rates.cast_bytes = p.at("cast_bytes");
  if (workload.scaled_by_row) rates.cast_bytes *= p.at("row_scaling");
  if (workload.scaled_by_block) rates.cast_bytes *= p.at("block_scaling");
  if (workload.precision == PlanPrecision::fp4) rates.cast_bytes *= p.at("fp4_scaling");
  if (!workload.compiled) rates.hidden_bytes *= p.at("eager"), rates.inner_bytes *= p.at("eager");
}

void resolve_exchanges(Rates& rates, const ParameterSet& p, const Machine& machine, const std::string& family) {
  rates.link = machine.link_bandwidth * share_of(p, machine, "link", 1);
  const PlanParameter* network = p.find_own("network", machine);
  rates.network = machine.network_bandwidth * (network != nullptr ? network->value : p.scoped("network", family, 1));
  rates.link_latency = p.at("link_latency");
  rates.exchange_latency = p.at("exchange_latency");
  rates.gather_latency = p.at("gather_latency");
  rates.context_cost = p.scoped("context_cost", family, 0);
  rates.tensor_overlap = p.scoped("tensor_overlap", family, 0);
  rates.data_overlap = p.scoped("data_overlap", family, 0);
  rates.sharded_overlap = p.scoped("sharded_overlap", family, rates.data_overlap);
  rates.data_leak = p.scoped("data_leak", family, 0);
  rates.transfer_share = p.at("transfer_share");
}

void resolve_experts(Rates& rates, const ParameterSet& p, const Machine& machine, const Workload& workload) {
  const bool fused = workload.dispatcher == Dispatcher::deepep || workload.dispatcher == Dispatcher::hybridep;
  rates.latent = p.at("latent_attention");
  rates.adapters = p.at("adapters");
  if (!workload.shape.experts) return;
  const std::string& family = workload.family->id;
  rates.grouped = share_of(p, machine, "grouped", 1);
  rates.grouped_saturation = p.scoped("grouped_saturation", machine.architecture, 1);
  rates.routed_bytes = p.at("routed_bytes");
  rates.expert_launch = p.scoped("expert_launch", family, 0);
  const bool narrow = workload.precision == PlanPrecision::fp8 || workload.precision == PlanPrecision::fp4;
  rates.cast_launch = narrow ? p.at("cast_launch") : 0;
  if (workload.graphs == Graphs::parts) rates.expert_launch *= p.at("graph_share");
  if (workload.graphs == Graphs::whole)
    rates.expert_launch *= p.at("whole_graph_share"), rates.cast_launch *= p.at("whole_graph_share");
  rates.token_link = machine.link_bandwidth * share_of(p, machine, fused ? "fused_token_link" : "token_link", 1);
  rates.token_network = machine.network_bandwidth * p.at(fused ? "fused_token_network" : "token_network");
  rates.expert_overlap = workload.overlaps_experts ? p.at("expert_overlap") : 0;
  rates.learned_load = p.at("learned_load");
  rates.scale *= p.scoped("sparse_scale", family, 1);
}

// Published runs say nothing of a machine that was measured itself.
bool has_own_figures(const ParameterSet& p, const Machine& machine) {
  const MeasuredRates& m = machine.measured;
  if (m.product_16 || m.product_8 || m.attention || m.memory || m.link || m.all_to_all) return true;
  const std::string own = "@" + machine_scope(machine);
  return std::ranges::any_of(p.all(), [&](const PlanParameter& each) { return each.name.ends_with(own); });
}

}  // namespace

Rates resolve_rates(const ParameterSet& p, const Machine& machine, const Workload& workload) {
  CHECK(workload.family != nullptr);
  const std::string& family = workload.family->id;
  Rates rates;
  resolve_products(rates, p, machine, workload.precision);
  resolve_memory_bound(rates, p, machine, workload);
  resolve_exchanges(rates, p, machine, family);
  if (!workload.family->overlaps_tensor || !workload.asynchronous_tensor) rates.tensor_overlap = 0;
  rates.layer_start = p.at("layer_start");
  rates.layer_overhead = p.scoped("layer_overhead", family, 0);
  rates.step_start = p.scoped("step_start", family, 0);
  rates.node_start = p.scoped("node_start", family, 0);
  rates.straggling = p.scoped("straggling", family, 0);
  rates.scale = p.scoped("scale", family, 1) *
                p.scoped(workload.shape.experts ? "sparse_release" : "release", workload.release, 1) *
                p.scoped("model", workload.shape.name, 1) * p.scoped("part", machine.id, 1);
  resolve_experts(rates, p, machine, workload);
  if (workload.shape.experts && !p.measured_runs().empty() && !has_own_figures(p, machine))
    rates.near_runs = NearRuns(p.measured_runs(), machine, workload);
  if (workload.family->own_trainer) rates.native = resolve_native_rates(p, machine, workload);
  return rates;
}

}  // namespace tprimat::planner
