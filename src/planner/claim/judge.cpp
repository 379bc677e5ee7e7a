#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claim/claim_case.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

constexpr size_t k_max_nearest = 5;

// Everything that a verdict rests on.
struct Judgement {
  const ClaimCase& claim;
  std::vector<Neighbour> nearest;
  PlannedRate planned;
  std::optional<RateBelief> belief;
  Suspected suspected;
  std::vector<Suspicion> contradictions;
};

// Both, each by its weight; where they disagree, the wider for it.
std::optional<RateBelief> join_beliefs(const std::optional<RateBelief>& planned,
                                       const std::optional<RateBelief>& published) {
  if (!planned || !published) return planned ? planned : published;
  const double a = 1 / (planned->spread * planned->spread), b = 1 / (published->spread * published->spread);
  const double middle = (a * std::log(planned->middle) + b * std::log(published->middle)) / (a + b);
  const double apart = std::fabs(std::log(planned->middle / published->middle)) / 2;
  constexpr double k_min_share = 0.6;  // whatever their weights: one of them is wrong
  const double share = std::max(k_min_share, 2 * std::min(a, b) / (a + b));
  return RateBelief{std::exp(middle), std::hypot(1 / std::sqrt(a + b), apart * share)};
}

std::optional<RateBelief> published_belief(const RunFacts& facts, const std::vector<Neighbour>& nearest) {
  const auto mfu = believe_neighbours(nearest);
  if (!mfu) return std::nullopt;
  return RateBelief{mfu->middle * facts.peak() / flops_by(facts.work(), Convention::causal), mfu->spread};
}

std::string name_basis(const Judgement& judged, const std::optional<RateBelief>& published) {
  std::string text;
  if (judged.planned.belief) text = "the planner";
  if (!published) return text;
  const size_t rows = std::min<size_t>(judged.nearest.size(), 12);
  return text + fmt::format("{}{} nearest published runs", text.empty() ? "" : " and ", rows);
}

std::vector<ConventionLine> convention_lines(const ClaimCase& claim) {
  std::vector<ConventionLine> lines;
  const double peak = claim.facts().peak();
  for (const CountedFlops& each : count_conventions(claim.facts().work())) {
    const double flops = each.flops_per_token * claim.rate;
    lines.push_back({each.convention, std::string(meaning_of(each.convention)), each.flops_per_token, flops / 1e12,
                     flops / peak, counts_model_alone(each.convention)});
  }
  return lines;
}

std::vector<NearRun> near_runs(const std::vector<Neighbour>& nearest) {
  std::vector<NearRun> lines;
  for (const Neighbour& each : nearest) {
    if (lines.size() >= k_max_nearest) break;
    const PublishedRun& run = *each.run;
    lines.push_back({run.id, run.facts.model, run.facts.machine.id, run.source, run.tokens_per_second_per_gpu, run.mfu,
                     each.differences});
  }
  return lines;
}

// Weights, gradients and moments in the narrowest formats that trainings use: bytes per parameter.
constexpr double k_min_bytes = 4, k_min_adapter_bytes = 0.5;

std::string lacks_memory(const RunFacts& facts, const PublishedRow& row) {
  if (facts.gpus < 1 || row.cell("notes").find("ffload") != std::string::npos) return "";
  const double least = facts.parameters * (facts.trains_adapters ? k_min_adapter_bytes : k_min_bytes);
  const double have = facts.machine.memory_bytes * static_cast<double>(facts.gpus);
  if (least <= have) return "";
  return fmt::format("its parameters need at least {} for weights, gradients and optimizer; {} {} {} {}",
                     format_gb(least), facts.gpus, facts.machine.id, facts.gpus == 1 ? "has" : "have", format_gb(have));
}

std::string beyond_limit(const ClaimReport& report) {
  if (report.mfu <= report.limit_mfu) return "";
  const std::string most =
      report.limit_mfu < 1 && report.mfu <= 1
          ? fmt::format("at most {} is possible ({})", format_percent(report.limit_mfu, 0), report.limit_basis)
          : "at most 100 % is possible";
  return fmt::format("its causal model FLOPs alone take {} of the dense peak, and {}", format_percent(report.mfu, 0),
                     most);
}

// Whether the first suspicion explains the claim better than that it is right.
bool is_explained(const Judgement& judged, double off) {
  constexpr double k_far = 0.14;  // 15 %: nearer figures are not worth an accusation
  if (judged.suspected.all.empty() || std::fabs(off) < k_far) return false;
  const Suspicion& first = judged.suspected.all.front();
  return first.likelihood > judged.suspected.truth;
}

bool is_beyond_all(const Judgement& judged, const ClaimReport& report, double off) {
  constexpr double k_margin = 1.1, k_deviations = 3, k_far = 0.34;  // 40 %
  const bool above = !report.standing || report.standing->share > k_margin;
  return above && off > std::max(k_far, k_deviations * judged.belief->spread);
}

std::string compare_expected(const ClaimReport& report) {
  if (!report.expected) return "no comparable run is published, and the planner has no prediction";
  const ExpectedRate& e = *report.expected;
  const std::string range =
      fmt::format("{} to {} tokens/s per GPU expected", format_count(e.low), format_count(e.high));
  const double rate = report.tokens_per_second_per_gpu;
  if (rate < e.low) return fmt::format("slow: {}", range);
  return rate > e.high ? fmt::format("fast: {}", range) : fmt::format("within the {}", range);
}

void conclude(ClaimReport& report, ClaimVerdict verdict, std::string reason) {
  report.verdict = verdict;
  report.reason = std::move(reason);
}

void conclude_suspicious(ClaimReport& report, const Judgement& judged, double off) {
  const double times = std::exp(std::fabs(off));
  const std::string what = off > 0 ? fmt::format("{} times the expected rate", format_significant(times, 3))
                                   : fmt::format("only 1 / {} of the expected rate", format_significant(times, 3));
  const std::string why =
      judged.suspected.all.empty() ? "no known mistake explains it" : judged.suspected.all.front().sentence;
  conclude(report, ClaimVerdict::suspicious, fmt::format("{}; {}", what, why));
}

void find_verdict(ClaimReport& report, const Judgement& judged, const PublishedRow& row) {
  const RunFacts& facts = judged.claim.facts();
  if (const std::string lacks = lacks_memory(facts, row); !lacks.empty())
    return conclude(report, ClaimVerdict::impossible, lacks);
  if (const std::string beyond = beyond_limit(report); !beyond.empty())
    return conclude(report, ClaimVerdict::impossible, beyond);
  if (!judged.contradictions.empty())
    return conclude(report, ClaimVerdict::suspicious, judged.contradictions.front().sentence);
  const double off = judged.belief ? judged.belief->log_off(judged.claim.rate) : 0;
  if (judged.belief && (is_explained(judged, off) || is_beyond_all(judged, report, off)))
    return conclude_suspicious(report, judged, off);
  report.slow = report.expected && report.tokens_per_second_per_gpu < report.expected->low;
  const std::string expected = compare_expected(report);
  if (report.standing && report.standing->share > 1)
    return conclude(report, ClaimVerdict::record,
                    fmt::format("above all {} published runs of its kind; {}", report.standing->rows, expected));
  conclude(report, ClaimVerdict::typical, expected);
}

// Those that a reader should see: all that contradictions show, and of the others the likely ones of a verdict.
void fill_suspicions(ClaimReport& report, const Judgement& judged) {
  constexpr double k_worth = 0.02;
  report.suspicions = judged.contradictions;
  if (report.verdict == ClaimVerdict::typical || report.verdict == ClaimVerdict::record) return;
  for (const Suspicion& each : judged.suspected.all)
    if (each.likelihood >= k_worth &&
        std::ranges::find(report.suspicions, each.mistake, &Suspicion::mistake) == report.suspicions.end())
      report.suspicions.push_back(each);
}

void fill_notes(ClaimReport& report, const ClaimCase& claim) {
  for (const std::string& each : claim.read.planned.assumptions) report.notes.push_back("assumed: " + each);
  if (claim.is_counted() && !claim.convention_stated)
    report.notes.push_back(fmt::format("assumed: FLOPs counted as {}", enum_name(claim.convention)));
  if (!claim.facts().precision_stated)
    report.notes.push_back(fmt::format("assumed: {}", enum_name(claim.facts().precision)));
}

void fill_facts(ClaimReport& report, const ClaimCase& claim) {
  const RunFacts& facts = claim.facts();
  report.gpu = facts.machine.id;
  report.sequence_length = facts.sequence_length;
  report.precision = facts.precision;
  report.tokens_per_second_per_gpu = claim.rate;
  report.mfu = facts.mfu(claim.rate);
  report.from = claim.from;
  const MfuLimit limit = limit_of(facts);
  report.limit_mfu = limit.mfu, report.limit_basis = limit.basis;
  report.conventions = convention_lines(claim);
  fill_notes(report, claim);
}

void fill_expected(ClaimReport& report, Judgement& judged, const std::optional<RateBelief>& published) {
  if (judged.planned.belief) {
    report.planned = judged.planned.belief->range(judged.planned.basis);
    report.layout = judged.planned.layout;
  } else {
    report.not_predicted = judged.planned.missing;
  }
  if (judged.belief) report.expected = judged.belief->range(name_basis(judged, published));
}

void fill_standing(ClaimReport& report, const ClaimCase& claim, const std::vector<PublishedRun>& runs) {
  report.standing = standing_of(claim.facts(), claim.rate, runs);
  if (!report.standing) return;
  const auto kind = runs_of_kind(claim.facts(), runs);
  report.rank = 1 + std::ranges::count_if(kind, [&](const PublishedRun* run) { return run->mfu > report.mfu; });
}

}  // namespace

ClaimReport judge_claim(const Claim& claim, const ClaimEvidence& evidence) {
  ClaimReport report;
  const ClaimCase read = read_case(claim);
  const RunFacts& facts = read.facts();
  report.model = claim.row.cell("model"), report.gpu = claim.row.cell("gpu");
  report.framework = facts.framework, report.gpus = facts.gpus;
  if (!read.read.missing.empty()) {
    report.missing = read.read.missing;
    return report;
  }
  fill_facts(report, read);
  Judgement judged{read, find_neighbours(facts, evidence.runs), plan_rate(read.read, evidence.parameters), {}, {}, {}};
  const auto published = published_belief(facts, judged.nearest);
  judged.belief = join_beliefs(judged.planned.belief, published);
  fill_standing(report, read, evidence.runs);
  judged.suspected = suspect(read, judged.belief, report.standing ? report.standing->share : 0);
  judged.contradictions = find_contradictions(read, claim.row);
  fill_expected(report, judged, published);
  report.nearest = near_runs(judged.nearest);
  find_verdict(report, judged, claim.row);
  fill_suspicions(report, judged);
  return report;
}

std::vector<PublishedRun> without_copies(const std::vector<PublishedRun>& runs, const PublishedRow& row) {
  const ReadFacts own = read_facts(row);
  const std::string source = row.cell("source"), repository = source.substr(0, source.find_first_of(" @"));
  std::vector<PublishedRun> kept;
  for (const PublishedRun& run : runs) {
    const bool alike = run.facts.shape.name == own.facts.shape.name && run.facts.parameters == own.facts.parameters &&
                       run.facts.machine.id == own.facts.machine.id;
    if (!alike || !run.source.starts_with(repository)) kept.push_back(run);
  }
  return kept;
}

}  // namespace tprimat::planner
