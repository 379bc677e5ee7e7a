#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claim/claim_case.h"
#include "published/cells.h"
#include "published/validate.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

constexpr double k_close = 0.025;  // printed digits, padded vocabularies and other small differences of counting

bool is_close(double ratio, double factor) { return std::fabs(std::log(ratio / factor)) < k_close; }

// Of two stated figures, `first` over what follows from `second`.
struct Ratio {
  std::string first, second;
  double value = 1;
};

class Contradictions {
 public:
  explicit Contradictions(const ClaimCase& claim) : claim_(claim) {}

  // `factor`: of the ratio; `rate_factor`: by which the claim's tokens/s are too high.
  bool offer(const Ratio& ratio, Mistake mistake, double factor, double rate_factor, const std::string& meaning) {
    constexpr double k_worth = 0.04;  // of a factor's logarithm
    if (factor <= 0 || std::fabs(std::log(factor)) < k_worth || !is_close(ratio.value, factor)) return false;
    const double rate = claim_.rate / rate_factor;
    const double times = std::max(ratio.value, 1 / ratio.value);
    found_.push_back(
        {mistake,
         fmt::format("{} {} {} times the value implied by {}: {}", ratio.first, ratio.value > 1 ? "is" : "is 1 /",
                     format_significant(times, 3), ratio.second, meaning),
         factor, rate, claim_.facts().mfu(rate), 1, true});
    return true;
  }

  std::vector<Suspicion> take() { return std::move(found_); }

 private:
  const ClaimCase& claim_;
  std::vector<Suspicion> found_;
};

// Two rates, of which the first is too high.
void compare_rates(Contradictions& found, const ClaimCase& claim, const Ratio& ratio, bool of_claim) {
  const auto gpus = static_cast<double>(claim.facts().gpus);
  const double rate_factor = of_claim ? ratio.value : 1;
  if (found.offer(ratio, Mistake::double_length, 2, rate_factor, "tokens are counted with twice the sequence length"))
    return;
  if (gpus > 1 && found.offer(ratio, Mistake::aggregate_for_gpu, gpus, rate_factor,
                              fmt::format("it is the total of all {} GPUs", claim.facts().gpus)))
    return;
  found.offer(ratio, Mistake::node_for_gpu, k_gpus_per_node, rate_factor, "it is the total of a node of 8 GPUs");
}

struct StatedRates {
  std::optional<double> each, whole, step;  // tokens/s per GPU
};

StatedRates read_rates(const ClaimCase& claim, const PublishedRow& row) {
  StatedRates rates;
  const auto gpus = static_cast<double>(claim.facts().gpus);
  const auto each = parse_printed(row.cell("tokens_per_s_per_gpu")), whole = parse_printed(row.cell("tokens_per_s"));
  const auto step = parse_printed(row.cell("step_time_s"));
  const double tokens =
      static_cast<double>(claim.facts().global_batch) * static_cast<double>(claim.facts().sequence_length);
  if (each) rates.each = each->value;
  if (whole && gpus > 0) rates.whole = whole->value / gpus;
  if (step && tokens > 0 && gpus > 0) rates.step = tokens / step->value / gpus;
  return rates;
}

void compare_all_rates(Contradictions& found, const ClaimCase& claim, const PublishedRow& row) {
  const StatedRates rates = read_rates(claim, row);
  const auto compare = [&](const char* a, const std::optional<double>& first, const char* b,
                           const std::optional<double>& second) {
    if (!first || !second || is_close(*first / *second, 1)) return;
    const bool higher = *first > *second;
    const Ratio ratio{higher ? a : b, higher ? b : a, higher ? *first / *second : *second / *first};
    compare_rates(found, claim, ratio, is_close((higher ? *first : *second) / claim.rate, 1));
  };
  compare("tokens/s per GPU", rates.each, "the job's tokens/s", rates.whole);
  compare("tokens/s per GPU", rates.each, "the step time", rates.step);
  compare("the job's tokens/s", rates.whole, "the step time", rates.step);
}

// FLOP/s per GPU that the claim's TFLOP/s or MFU mean, beside its tokens/s.
struct StatedFlops {
  std::string name;
  double flops_per_second = 0;
  bool of_peak = false;  // an MFU
};

bool offer_counts(Contradictions& found, const ClaimCase& claim, const StatedFlops& stated) {
  const CountedWork work = claim.facts().work();
  const double per_token = stated.flops_per_second / claim.rate;
  const auto offer = [&](Mistake mistake, double flops, const char* meaning) {
    const double expected = flops_by(work, claim.convention);
    if (mistake == Mistake::recompute_counted && per_token < expected) return false;
    return is_close(per_token, flops) &&
           found.offer({stated.name, "the rate", per_token / expected}, mistake, per_token / expected, 1, meaning);
  };
  const bool sparse = claim.facts().is_sparse();
  if (sparse && (offer(Mistake::experts_dense, flops_by(work, Convention::six_n_total), "all experts are counted") ||
                 offer(Mistake::experts_dense, flops_by(work, Convention::experts_dense), "all experts are counted")))
    return true;
  if (claim.convention_stated)
    for (const Convention other : {Convention::full, Convention::causal, Convention::six_n, Convention::six_n_matmul})
      if (other != claim.convention &&
          offer(Mistake::other_convention, flops_by(work, other), "its convention is not the stated one"))
        return true;
  if (!counts_model_alone(claim.convention)) return false;
  const double causal = flops_by(work, Convention::causal), full = flops_by(work, Convention::full);
  for (const Convention repeated : {Convention::recompute_full, Convention::recompute_selective})
    for (const double base : {causal, full})
      if (offer(Mistake::recompute_counted, flops_by(work, repeated) / causal * base, "recomputed FLOPs are counted"))
        return true;
  return false;
}

// A factor against any usual way to count.
void offer_factors(Contradictions& found, const ClaimCase& claim, const StatedFlops& stated) {
  const CountedWork work = claim.facts().work();
  const auto gpus = static_cast<double>(claim.facts().gpus);
  std::vector<Convention> ways = {claim.convention};
  if (!claim.convention_stated) ways = {Convention::full, Convention::causal, Convention::six_n};
  for (const Convention way : ways) {
    const Ratio ratio{stated.name, "the rate", stated.flops_per_second / claim.rate / flops_by(work, way)};
    if (found.offer(ratio, Mistake::sparse_peak, 2, 1, "the peak with sparsity, twice the dense peak, is its basis"))
      return;
    if (stated.of_peak && found.offer(ratio, Mistake::sparse_peak, 0.5, 1, "the peak with sparsity is its denominator"))
      return;
    if (found.offer(ratio, Mistake::double_length, 0.5, 2, "tokens are counted with twice the sequence length")) return;
    if (gpus <= 1) continue;
    if (found.offer(ratio, Mistake::aggregate_for_gpu, gpus, 1, "it is the total of all GPUs")) return;
    if (found.offer(ratio, Mistake::aggregate_for_gpu, 1 / gpus, gpus, "the tokens are the total of all GPUs")) return;
    if (found.offer(ratio, Mistake::node_for_gpu, k_gpus_per_node, 1, "it is the total of a node of 8 GPUs")) return;
    if (found.offer(ratio, Mistake::node_for_gpu, 1 / k_gpus_per_node, k_gpus_per_node,
                    "the tokens are the total of a node of 8 GPUs"))
      return;
  }
}

bool is_of_convention(const FigureCheck& check, Convention stated) {
  const std::string found = check.convention.value_or("");
  return found == enum_name(stated) || (stated == Convention::causal && found == "megatron") ||
         (stated == Convention::recompute_full && found.ends_with("repeated"));
}

// Whether the figure follows from the rate as the claim says that it is counted, or in any usual way.
bool follows(const ClaimCase& claim, const StatedFlops& stated, const std::optional<FigureCheck>& check) {
  const double expected = flops_by(claim.facts().work(), claim.convention) * claim.rate;
  if (is_close(stated.flops_per_second / expected, 1)) return true;
  if (!check) return false;
  if (check->verdict == Standing::lacking) return !claim.convention_stated;
  return check->verdict != Standing::unexplained &&
         (!claim.convention_stated || is_of_convention(*check, claim.convention));
}

void compare_flops(Contradictions& found, const ClaimCase& claim, const StatedFlops& stated,
                   const std::optional<FigureCheck>& check) {
  if (follows(claim, stated, check)) return;
  if (!offer_counts(found, claim, stated)) offer_factors(found, claim, stated);
}

// TFLOP/s over MFU is the peak that both mean.
void compare_peaks(Contradictions& found, const ClaimCase& claim) {
  if (!claim.teraflops || !claim.utilization) return;
  const double peak = *claim.teraflops * 1e12 / *claim.utilization;
  const Ratio ratio{"the peak behind TFLOP/s and MFU", "the datasheet", peak / claim.facts().peak()};
  found.offer(ratio, Mistake::sparse_peak, 2, 1, "it is the peak with sparsity");
}

}  // namespace

std::vector<Suspicion> find_contradictions(const ClaimCase& claim, const PublishedRow& row) {
  Contradictions found(claim);
  compare_all_rates(found, claim, row);
  compare_peaks(found, claim);
  if (claim.is_counted()) return found.take();
  const RowCheck checks = validate_row(row);
  const auto check_of = [&](const char* column) -> std::optional<FigureCheck> {
    const auto at = std::ranges::find(checks.figures, column, &FigureCheck::figure);
    return at == checks.figures.end() ? std::nullopt : std::optional(*at);
  };
  if (claim.teraflops)
    compare_flops(found, claim, {"TFLOP/s per GPU", *claim.teraflops * 1e12, false}, check_of("tflops_per_gpu"));
  if (claim.utilization)
    compare_flops(found, claim, {"MFU", *claim.utilization * claim.facts().peak(), true}, check_of("mfu_pct"));
  return found.take();
}

}  // namespace tprimat::planner
