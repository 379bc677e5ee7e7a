#include "claim/claim_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "published/cells.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// Columns whose cells must be figures where they are filled.
std::string unreadable_figure(const PublishedRow& row) {
  for (const char* column :
       {"tokens_per_s_per_gpu", "tokens_per_s", "step_time_s", "tflops_per_gpu", "mfu_pct", "n_gpus"}) {
    const std::string cell = row.cell(column);
    const bool count = std::string_view(column) == "n_gpus";
    if (cell.empty() || (count ? count_cell(row, column).has_value() : parse_printed(cell).has_value())) continue;
    return fmt::format("{} '{}' is not a number{}", column, printable(cell.substr(0, 40)),
                       count ? " of GPUs" : " above 0, written with digits and a point");
  }
  return "";
}

std::optional<double> figure_in(const PublishedRow& row, std::string_view column) {
  const auto printed = parse_printed(row.cell(column));
  return printed ? std::optional(printed->value) : std::nullopt;
}

// As the program's authors count where nobody says how: attention to the whole sequence, the first definition of MFU,
// which takes a figure for the lowest rate.
Convention usual_convention(const ReadFacts& read, FigureKind kind) {
  const Family* family = read.facts.family;
  if (family == nullptr) return Convention::full;
  const bool repeats = family->dropout && read.facts.recompute != Recompute::none;  // arXiv 2104.04473, eq. 3
  if (repeats && kind == FigureKind::teraflops) return Convention::recompute_full;
  return family->id == "meta" ? Convention::causal : Convention::full;
}

Convention convention_of(const Claim& claim, const ReadFacts& read, FigureKind kind) {
  return claim.convention.value_or(usual_convention(read, kind));
}

bool states_tokens(const PublishedRow& row) {
  return parse_printed(row.cell("tokens_per_s_per_gpu")) || parse_printed(row.cell("tokens_per_s"));
}

void read_counted(ClaimCase& read, const Claim& claim) {
  read.kind = read.teraflops ? FigureKind::teraflops : FigureKind::utilization;
  read.convention = convention_of(claim, read.read, read.kind);
  const double flops = flops_by(read.facts().work(), read.convention);
  read.rate = (read.teraflops ? *read.teraflops * 1e12 : *read.utilization * read.facts().peak()) / flops;
  read.from = fmt::format("{}, counted as {}", read.teraflops ? "TFLOP/s per GPU" : "MFU", enum_name(read.convention));
}

// The slowest of 16-bit and low-precision products, in which a token's FLOPs run.
double best_rate(const HardwareSpec& part, Precision precision, double peak) {
  const auto measured = part.achievable_flops.find(precision);
  return measured == part.achievable_flops.end() ? 0 : measured->second / peak;
}

}  // namespace

ClaimCase read_case(const Claim& claim) {
  ClaimCase read;
  read.read = read_facts(claim.row, claim.shape);
  if (const std::string unreadable = unreadable_figure(claim.row); !unreadable.empty()) read.read.missing = unreadable;
  if (!read.read.missing.empty()) return read;
  if (claim.workload) {
    read.read.planned.workload = *claim.workload, read.read.planned.machine = read.facts().machine;
    read.read.planned.missing.clear();
  }
  read.convention_stated = claim.convention.has_value();
  read.teraflops = figure_in(claim.row, "tflops_per_gpu");
  read.utilization = figure_in(claim.row, "mfu_pct");
  if (read.utilization) *read.utilization /= 100;
  read.convention = convention_of(claim, read.read, FigureKind::utilization);
  if (const auto rate = stated_rate(claim.row, read.facts())) {
    read.kind = states_tokens(claim.row) ? FigureKind::tokens : FigureKind::step_time;
    read.rate = *rate;
    read.from = read.kind == FigureKind::tokens ? "tokens/s" : "step time";
  } else if (read.teraflops || read.utilization) {
    read_counted(read, claim);
  } else {
    read.read.missing = "no rate: tokens/s, step time with batch, TFLOP/s or MFU";
  }
  if (read.read.missing.empty() && !(read.rate > 0 && std::isfinite(read.rate))) read.read.missing = "no possible rate";
  return read;
}

double RateBelief::log_off(double rate) const { return std::log(rate / middle); }

ExpectedRate RateBelief::range(std::string basis) const {
  constexpr double k_tenth = 1.2816;  // of a normal distribution, in standard deviations
  const double factor = std::exp(k_tenth * spread);
  return {middle, middle / factor, middle * factor, std::move(basis)};
}

double least_believed(const RateBelief& belief) { return belief.range("").low / 10; }

MfuLimit limit_of(const RunFacts& stated) {
  constexpr double k_margin = 1.05;     // parts and libraries differ from the one that was measured
  constexpr double k_unmeasured = 0.9;  // of a peak that no measurement stands beside
  RunFacts facts = stated;
  if (!facts.precision_stated)  // the fastest that it may have been
    for (const PlanPrecision each : {PlanPrecision::fp8, PlanPrecision::fp4})
      if (facts.machine.peak(each) > facts.peak()) facts.precision = each;
  const double scale = facts.peak() / stated.peak();
  const auto part = find_hardware(facts.machine.id);
  const double peak = facts.peak();
  const double half = part ? best_rate(*part, Precision::bf16, facts.machine.peak_16) : 0;
  const double low = part && facts.precision == PlanPrecision::fp8 ? best_rate(*part, Precision::fp8, peak) : 0;
  const bool is_half = facts.precision == PlanPrecision::bf16 || facts.precision == PlanPrecision::fp16;
  if (is_half && half > 0)
    return {std::max(std::min(1.0, k_margin * half), 0.75), "the highest measured rate of its matrix products"};
  if (is_half) return {k_unmeasured, "nine tenths of the dense peak"};
  const double share = fp8_share(break_down(facts.shape, {facts.sequence_length, true, 0}));
  const double fast = low > 0 ? std::max(std::min(1.0, k_margin * low), 0.75) : k_unmeasured;
  const double slow = facts.machine.peak_16 / peak * k_unmeasured;
  return {scale / (share / fast + (1 - share) / slow),
          fmt::format("products in {}, attention and head in 16 bits", enum_name(facts.precision))};
}

}  // namespace tprimat::planner
