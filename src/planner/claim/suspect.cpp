#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claim/claim_case.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// How often a claim is right, and how often each mistake is made, by judgement.
constexpr double k_right = 0.35;
// Claims well above all that is published are right less often.
constexpr double k_record = 1.15, k_record_right = 0.4;
// Those that others of the kind exceed by far are right more often.
constexpr double k_reached = 0.8, k_reached_right = 2;

struct Candidate {
  Mistake mistake = Mistake::sparse_peak;
  double factor = 1;
  double prior = 0;
};

// Student's t with four degrees of freedom: claims have heavy tails.
double density(double off, double spread) {
  const double x = off / spread;
  return std::pow(1 + x * x / 4, -2.5);
}

void add_counted(std::vector<Candidate>& all, const ClaimCase& claim) {
  const CountedWork work = claim.facts().work();
  const double counted = flops_by(work, claim.convention);
  all.push_back({Mistake::sparse_peak, 2, 0.1});
  if (claim.kind == FigureKind::utilization) all.push_back({Mistake::sparse_peak, 0.5, 0.01});
  if (claim.convention == Convention::causal)
    all.push_back({Mistake::other_convention, flops_by(work, Convention::full) / counted, 0.03});
  if (counts_model_alone(claim.convention) && claim.facts().recompute != Recompute::none)
    all.push_back({Mistake::recompute_counted,
                   flops_by(work, Convention::recompute_full) / flops_by(work, Convention::causal), 0.03});
  if (!claim.facts().is_sparse()) return;
  for (const Convention dense : {Convention::experts_dense, Convention::six_n_total})
    if (counts_model_alone(claim.convention))
      all.push_back({Mistake::experts_dense, flops_by(work, dense) / counted, 0.08});
}

void add_aggregates(std::vector<Candidate>& all, const ClaimCase& claim, double agreeing) {
  if (claim.kind != FigureKind::tokens && claim.kind != FigureKind::teraflops) return;
  const auto gpus = static_cast<double>(claim.facts().gpus);
  const double seldom = claim.is_counted() ? 0.2 : agreeing;  // TFLOP/s are mostly stated per GPU
  if (gpus > 1) all.push_back({Mistake::aggregate_for_gpu, gpus, 0.06 * seldom});
  if (gpus > k_gpus_per_node) all.push_back({Mistake::node_for_gpu, k_gpus_per_node, 0.03 * seldom});
}

// Of a rate far below the belief: those that bring it near.
void add_tiny(std::vector<Candidate>& all, const ClaimCase& claim, const RateBelief& belief) {
  constexpr double k_prior = 0.1, k_near = 3;  // standard deviations
  if (claim.rate >= least_believed(belief)) return;
  const auto offer = [&](Mistake mistake, double factor) {
    if (std::fabs(belief.log_off(claim.rate / factor)) < k_near * belief.spread)
      all.push_back({mistake, factor, k_prior});
  };
  const auto gpus = static_cast<double>(claim.facts().gpus);
  if (claim.kind == FigureKind::utilization) offer(Mistake::fraction_as_percent, 0.01);
  if (gpus > 1) offer(Mistake::divided_twice, 1 / gpus);
  if (gpus != k_gpus_per_node) offer(Mistake::divided_twice, 1 / k_gpus_per_node);
  if (claim.kind != FigureKind::utilization) offer(Mistake::in_thousands, 0.001);
}

std::vector<Candidate> candidates_of(const ClaimCase& claim, const ClaimContext& context) {
  constexpr double k_agreeing = 0.1;  // two figures seldom have the same mistake
  const double agreeing = context.agrees ? k_agreeing : 1;
  const RunFacts& facts = claim.facts();
  std::vector<Candidate> all;
  if (claim.is_counted())
    add_counted(all, claim);
  else
    all.push_back({Mistake::sparse_peak, 2, 0.01});  // tokens/s that follow from an MFU
  add_aggregates(all, claim, agreeing);
  all.push_back({Mistake::double_length, 2, claim.is_counted() ? 0.01 : 0.08 * agreeing});
  constexpr double k_fp8_speed = 1.35, k_fp8_prior = 0.06;  // the speed where the planner has none
  constexpr double k_adapters_speed = 1.5, k_balance = 1.4;
  if (facts.precision == PlanPrecision::bf16 && facts.machine.peak_8 > 0)
    all.push_back({Mistake::fp8_as_bf16, context.fp8_speed.value_or(k_fp8_speed), k_fp8_prior});
  if (!facts.trains_adapters) all.push_back({Mistake::adapters_as_full, k_adapters_speed, 0.01});
  if (facts.routing == Routing::learned) all.push_back({Mistake::balanced_routing, k_balance, 0.03});
  add_tiny(all, claim, *context.belief);
  return all;
}

std::string name_figure(const ClaimCase& claim, double factor) {
  if (claim.kind == FigureKind::utilization) return fmt::format("{} MFU", format_percent(*claim.utilization / factor));
  if (claim.kind == FigureKind::teraflops) return format_significant(*claim.teraflops / factor, 4) + " TFLOP/s per GPU";
  return format_count(claim.rate / factor) + " tokens/s per GPU";
}

std::string explain(const ClaimCase& claim, const Candidate& candidate) {
  const int64_t gpus = claim.facts().gpus;
  switch (candidate.mistake) {
    case Mistake::sparse_peak:
      return candidate.factor < 1 ? "the denominator is the peak with sparsity, twice the dense peak"
                                  : "the figure is based on the peak with sparsity, twice the dense peak";
    case Mistake::recompute_counted: return "recomputed FLOPs count as the model's (HFU instead of MFU)";
    case Mistake::other_convention: return "attention is counted over the whole sequence, not only over earlier tokens";
    case Mistake::experts_dense: return "all experts are counted, not only the active ones";
    case Mistake::aggregate_for_gpu: return fmt::format("the figure is the total of all {} GPUs", gpus);
    case Mistake::node_for_gpu: return "the figure is the total of a node of 8 GPUs";
    case Mistake::double_length: return "tokens are counted with twice the sequence length";
    case Mistake::fp8_as_bf16: return "the products ran in FP8, not in BF16";
    case Mistake::adapters_as_full: return "only adapters or a part of the weights are trained";
    case Mistake::fraction_as_percent: return "MFU is stated as a fraction, not in percent";
    case Mistake::divided_twice: return "the rate of a GPU is divided by the number of GPUs once more";
    case Mistake::in_thousands: return "the figure is in thousands";
    case Mistake::unexplained: return "no known mistake explains it";
    case Mistake::balanced_routing: break;
  }
  return "routing was balanced by force, not learned";
}

Suspicion suspicion_of(const ClaimCase& claim, const Candidate& candidate) {
  const double rate = claim.rate / candidate.factor;
  const std::string sentence =
      fmt::format("{}; corrected: {}", explain(claim, candidate), name_figure(claim, candidate.factor));
  return {candidate.mistake, sentence, candidate.factor, rate, claim.facts().mfu(rate), 0, false};
}

}  // namespace

Suspected suspect(const ClaimCase& claim, const ClaimContext& context) {
  Suspected suspected;
  const std::optional<RateBelief>& belief = context.belief;
  const double share_of_best = context.share_of_best;
  if (!belief) return suspected;
  const double off = belief->log_off(claim.rate);
  const bool is_reached = share_of_best > 0 && share_of_best < k_reached;
  const double weight = share_of_best > k_record ? k_record_right : is_reached ? k_reached_right : 1;
  suspected.truth = k_right * weight * density(off, belief->spread);
  double whole = suspected.truth;
  for (const Candidate& candidate : candidates_of(claim, context)) {
    Suspicion each = suspicion_of(claim, candidate);
    each.likelihood = candidate.prior * density(off - std::log(candidate.factor), belief->spread);
    whole += each.likelihood;
    if (candidate.factor != 1) suspected.all.push_back(std::move(each));
  }
  suspected.truth /= whole;
  for (Suspicion& each : suspected.all) each.likelihood /= whole;
  std::ranges::stable_sort(suspected.all, std::ranges::greater{}, &Suspicion::likelihood);
  return suspected;
}

}  // namespace tprimat::planner
