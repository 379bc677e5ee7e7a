#include "claim/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/format.h"

namespace tprimat::planner {
namespace {

// Standard deviations of the logarithm of MFU that a difference of settings brings, by judgement and checked by
// bench/claims: what a release of software or a tuned batch moves even where all settings are alike comes first.
constexpr double k_same = 0.12;
constexpr double k_framework = 0.10, k_release_of_family = 0.05;
constexpr double k_model = 0.08, k_per_size = 0.10;  // another model; per factor e of its active parameters
constexpr double k_per_expert_width = 0.18;          // per factor e of an expert's weights
constexpr double k_precision = 0.30, k_half_formats = 0.02;
constexpr double k_part = 0.12, k_architecture = 0.30, k_vendor = 0.45;
constexpr double k_per_doubled_gpus = 0.025, k_per_doubled_length = 0.06;
constexpr double k_recompute = 0.15, k_tuning = 0.12, k_routing = 0.25, k_adapters = 0.5;
constexpr double k_unstated = 0.06, k_open_precision = 0.25;
constexpr double k_fewer_layers = 0.35;  // embedding and head weigh more in a proxy
constexpr double k_too_far = 0.75;

bool is_amd(const Machine& machine) { return machine.id.starts_with("MI"); }

// Adds up what differs.
class Differences {
 public:
  void add(double spread, std::string sentence = "") {
    variance_ += spread * spread;
    if (!sentence.empty()) all_.push_back(std::move(sentence));
  }
  double spread() const { return std::sqrt(variance_); }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  double variance_ = k_same * k_same;
  std::vector<std::string> all_;
};

double log_ratio(double a, double b) { return a > 0 && b > 0 ? std::fabs(std::log(a / b)) : 0; }
double doublings(double a, double b) { return log_ratio(a, b) / std::log(2.0); }

// Narrow experts keep products small and send more per FLOP.
double experts_apart(const ModelSpec& claim, const ModelSpec& run) {
  if (!claim.experts || !run.experts) return 0;
  const auto width = [](const ModelSpec& m) {
    return static_cast<double>(m.experts->ffn_hidden_size) * static_cast<double>(m.hidden_size);
  };
  return k_per_expert_width * log_ratio(width(claim), width(run));
}

void compare_models(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.shape.name == run.shape.name && claim.parameters == run.parameters) return;
  const double apart = log_ratio(claim.active_parameters, run.active_parameters);
  found.add(std::hypot(k_model, std::hypot(k_per_size * apart, experts_apart(claim.shape, run.shape))),
            fmt::format("{} ({} parameters)", printable(run.model.substr(0, 40)), format_si(run.parameters, "")));
}

void compare_machines(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.machine.id == run.machine.id) return;
  const bool alike = claim.machine.architecture == run.machine.architecture;
  const bool vendor = is_amd(claim.machine) == is_amd(run.machine);
  found.add(alike ? k_part : vendor ? k_architecture : k_vendor, run.machine.id);
}

void compare_precisions(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.precision_stated != run.precision_stated) found.add(k_open_precision, "precision not stated");
  if (claim.precision == run.precision) return;
  const auto is_half = [](PlanPrecision p) { return p == PlanPrecision::bf16 || p == PlanPrecision::fp16; };
  const bool halves = is_half(claim.precision) && is_half(run.precision);
  found.add(halves ? k_half_formats : k_precision, std::string(enum_name(run.precision)));
}

void compare_sizes(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.gpus > 0 && run.gpus > 0 && claim.gpus != run.gpus)
    found.add(k_per_doubled_gpus * doublings(static_cast<double>(claim.gpus), static_cast<double>(run.gpus)),
              fmt::format("{} GPUs", run.gpus));
  if (claim.sequence_length != run.sequence_length)
    found.add(k_per_doubled_length *
                  doublings(static_cast<double>(claim.sequence_length), static_cast<double>(run.sequence_length)),
              fmt::format("sequence length {}", run.sequence_length));
}

void compare_programs(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.framework == run.framework) return;
  const bool alike = claim.family != nullptr && claim.family == run.family;
  const std::string name =
      run.framework.empty() ? "program not stated" : "by " + printable(run.framework.substr(0, 30));
  if (claim.framework.empty() || run.framework.empty())
    found.add(k_unstated, name);
  else
    found.add(alike ? k_release_of_family : k_framework, name);
}

void compare_settings(Differences& found, const RunFacts& claim, const RunFacts& run) {
  if (claim.has_fewer_layers != run.has_fewer_layers)
    found.add(k_fewer_layers, run.has_fewer_layers ? "fewer layers than the model" : "all layers");
  if (claim.trains_adapters != run.trains_adapters)
    found.add(k_adapters, run.trains_adapters ? "adapters (LoRA)" : "all weights trained");
  if (claim.fine_tunes != run.fine_tunes) found.add(k_tuning, run.fine_tunes ? "fine-tuning" : "pre-training");
  if (claim.recompute && run.recompute && claim.recompute != run.recompute)
    found.add(k_recompute, fmt::format("{} recomputation", enum_name(*run.recompute)));
  if (!claim.is_sparse()) return;
  if (claim.routing && run.routing && claim.routing != run.routing)
    found.add(k_routing, fmt::format("{} routing", enum_name(*run.routing)));
  else if (claim.routing != run.routing)
    found.add(k_unstated, run.routing ? fmt::format("{} routing", enum_name(*run.routing)) : "routing not stated");
}

Neighbour compare_with(const RunFacts& claim, const PublishedRun& run) {
  Differences found;
  compare_models(found, claim, run.facts);
  compare_machines(found, claim, run.facts);
  compare_precisions(found, claim, run.facts);
  compare_sizes(found, claim, run.facts);
  compare_programs(found, claim, run.facts);
  compare_settings(found, claim, run.facts);
  return {&run, found.spread(), found.take()};
}

bool is_of_kind(const RunFacts& claim, const RunFacts& run) {
  return claim.is_sparse() == run.is_sparse() && claim.trains_adapters == run.trains_adapters &&
         claim.fine_tunes == run.fine_tunes && claim.has_fewer_layers == run.has_fewer_layers &&
         claim.machine.id == run.machine.id && claim.precision == run.precision;
}

struct Weighted {
  double value = 0, weight = 0;
};

double weighted_median(std::vector<Weighted> all) {
  std::ranges::sort(all, {}, &Weighted::value);
  double whole = 0, sum = 0;
  for (const Weighted& each : all) whole += each.weight;
  for (const Weighted& each : all)
    if ((sum += each.weight) >= whole / 2) return each.value;
  return all.back().value;
}

}  // namespace

std::vector<Neighbour> find_neighbours(const RunFacts& facts, const std::vector<PublishedRun>& runs) {
  std::vector<Neighbour> nearest;
  for (const PublishedRun& run : runs) {
    if (facts.is_sparse() != run.facts.is_sparse()) continue;
    Neighbour neighbour = compare_with(facts, run);
    if (neighbour.spread < k_too_far) nearest.push_back(std::move(neighbour));
  }
  std::ranges::stable_sort(nearest, {}, &Neighbour::spread);
  return nearest;
}

std::optional<MfuBelief> believe_neighbours(const std::vector<Neighbour>& nearest) {
  constexpr size_t k_max_rows = 12;
  constexpr double k_floor = 0.15, k_deviations_per_mad = 1.4826;
  if (nearest.empty()) return std::nullopt;
  std::vector<Weighted> logs;
  for (size_t i = 0; i < std::min(k_max_rows, nearest.size()); ++i)
    logs.push_back({std::log(nearest[i].run->mfu), 1 / (nearest[i].spread * nearest[i].spread)});
  const double middle = weighted_median(logs);
  const auto rows = static_cast<int64_t>(logs.size());
  for (Weighted& each : logs) each.value = std::fabs(each.value - middle);
  const double apart = k_deviations_per_mad * weighted_median(logs);
  const double own = nearest.front().spread;
  return MfuBelief{std::exp(middle), std::max(k_floor, std::hypot(apart, own)), rows};
}

std::vector<const PublishedRun*> runs_of_kind(const RunFacts& facts, const std::vector<PublishedRun>& runs) {
  constexpr double k_like_size = 2.5;
  constexpr size_t k_enough = 3;
  std::vector<const PublishedRun*> alike, all;
  for (const PublishedRun& run : runs) {
    if (!is_of_kind(facts, run.facts)) continue;
    all.push_back(&run);
    if (log_ratio(facts.parameters, run.facts.parameters) <= std::log(k_like_size)) alike.push_back(&run);
  }
  return alike.size() >= k_enough ? alike : all;
}

std::optional<PublishedStanding> standing_of(const RunFacts& facts, double tokens_per_second_per_gpu,
                                             const std::vector<PublishedRun>& runs) {
  const std::vector<const PublishedRun*> kind = runs_of_kind(facts, runs);
  if (kind.empty() || facts.peak() <= 0) return std::nullopt;
  const PublishedRun* best = *std::ranges::max_element(kind, {}, &PublishedRun::mfu);
  const double mfu = facts.mfu(tokens_per_second_per_gpu);
  return PublishedStanding{mfu, best->mfu, mfu / best->mfu, static_cast<int64_t>(kind.size()), best->id};
}

std::string describe_standing(const PublishedStanding& standing) {
  const std::string runs = standing.rows == 1
                               ? "the published run of this kind reaches"
                               : fmt::format("the best of {} published runs of this kind reaches", standing.rows);
  return fmt::format("{} MFU: {} of what {}", format_percent(standing.mfu), format_percent(standing.share, 0), runs);
}

}  // namespace tprimat::planner
