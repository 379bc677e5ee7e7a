#include "planner/plan_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

constexpr size_t k_max_reasons = 5;

double calibrated_straggling(const PlanRequest& request, const ParameterSet& parameters) {
  Workload workload;
  workload.family = request.family, workload.precision = request.precision;
  return resolve_rates(parameters, request.machine, workload).straggling;
}

struct SolvedCase {
  PlanReport report;
  std::vector<FrontierPlan> frontier;
};

// Nothing for a training that never ends.
std::optional<FrontierPlan> frontier_plan(const RankedLayout& plan, const PlanCase& each,
                                          const Straggling& straggling) {
  const TrainingOutlook training = foresee_training(plan, each.terms, straggling);
  if (!training.days) return std::nullopt;
  return FrontierPlan{each.request.machine.id, each.request.gpus, describe_plan(plan, each.request),
                      *training.days,          training.usd,      training.megawatt_hours};
}

// The least batch that has legal layouts; each of its multiples has them too.
std::optional<int64_t> find_legal_batch(PlanRequest request, const ParameterSet& parameters) {
  for (int64_t batch = 1; batch <= request.gpus; ++batch) {
    if (request.gpus % batch != 0) continue;
    request.global_batch = batch;
    if (search_layouts(request, parameters, 0).legal > 0) return batch;
  }
  return std::nullopt;
}

SolvedCase solve(const PlanCase& each, const ParameterSet& parameters, const ComparisonOptions& options) {
  const PlanRequest& request = each.request;
  const double per_doubling = calibrated_straggling(request, parameters);
  SearchOutcome outcome = search_layouts(request, parameters, options.most);
  std::vector<std::string> reasons;
  if (options.explains && !outcome.ranked.empty())
    reasons = explain_choice(request, parameters, outcome.ranked.front(), k_max_reasons);
  if (each.terms.node_noise) apply_node_noise(outcome, request.gpus, per_doubling, *each.terms.node_noise);
  const Straggling straggling = estimate_straggling(request.gpus, per_doubling, each.terms.node_noise);
  SolvedCase solved{make_plan_report(request, outcome), {}};
  solved.report.memory_source = each.memory_source;
  solved.report.published_best = find_published_best(request);
  solved.report.reasons = std::move(reasons);
  if (!outcome.ranked.empty()) solved.report.routing = compare_routing(outcome.ranked.front(), request, parameters);
  if (outcome.legal == 0) solved.report.batch_multiple = find_legal_batch(request, parameters);
  if (!outcome.ranked.empty())
    solved.report.training = foresee_training(outcome.ranked.front(), each.terms, straggling);
  for (const RankedLayout& plan : outcome.frontier)
    if (auto point = frontier_plan(plan, each, straggling)) solved.frontier.push_back(std::move(*point));
  return solved;
}

// The plans come with the fewest GPUs of each part first.
void add_efficiencies(std::vector<PlanReport>& plans) {
  std::map<std::string, const PlanReport*> fewest;
  for (PlanReport& plan : plans) {
    if (!plan.training) continue;
    const PlanReport* reference = fewest.try_emplace(plan.gpu, &plan).first->second;
    plan.efficiency =
        plan.ranked.front().tokens_per_second_per_gpu / reference->ranked.front().tokens_per_second_per_gpu;
  }
}

bool known(const std::vector<FrontierPlan>& all, std::optional<double> FrontierPlan::*figure) {
  return std::ranges::all_of(all, [&](const FrontierPlan& plan) { return (plan.*figure).has_value(); });
}

std::vector<double> weighed_figures(const FrontierPlan& plan, bool usd, bool energy) {
  std::vector<double> figures = {plan.days, plan.layout.memory_bytes};
  if (usd) figures.push_back(*plan.usd);
  if (energy) figures.push_back(*plan.megawatt_hours);
  return figures;
}

bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better |= a[i] < b[i];
  }
  return better;
}

// By what they are weighed by, so that layouts that are as good are marked too.
bool is_on_frontier(const PlanComparison& comparison, const PlanReport& plan, const PlanLine& line) {
  return std::ranges::any_of(comparison.frontier, [&](const FrontierPlan& each) {
    return each.gpu == plan.gpu && each.gpus == plan.gpus && each.layout.step_seconds == line.step_seconds &&
           each.layout.memory_bytes == line.memory_bytes;
  });
}

void mark_frontier(PlanComparison& comparison) {
  for (PlanReport& plan : comparison.plans)
    for (std::vector<PlanLine>* lines : {&plan.ranked, &plan.frontier})
      for (PlanLine& line : *lines) line.on_frontier = is_on_frontier(comparison, plan, line);
}

void fill_answer(PlanAnswer& answer, const PlanReport& plan) {
  answer.found = true;
  answer.gpu = plan.gpu, answer.gpus = plan.gpus;
  answer.days = plan.training->days, answer.usd = plan.training->usd;
}

std::string name_plan(const PlanReport& plan) {
  const TrainingOutlook& training = *plan.training;
  return fmt::format("{} x {} ({}{})", plan.gpus, plan.gpu, format_days(*training.days),
                     training.usd ? ", " + format_usd(*training.usd) : "");
}

using PlanRefs = std::vector<const PlanReport*>;

template <class Holds>
PlanRefs select(const PlanRefs& plans, const Holds& holds) {
  PlanRefs those;
  std::ranges::copy_if(plans, std::back_inserter(those), holds);
  return those;
}

bool trains_all_tokens(const PlanReport* plan) { return plan->training && plan->training->days; }

// Why none of them trains all tokens.
std::string name_obstacle(const PlanRefs& plans) {
  const auto any = [&](auto holds) { return std::ranges::any_of(plans, holds); };
  if (any([](const PlanReport* plan) { return plan->fitting > 0; }))
    return std::string("the training never finishes: ") + k_never_ends;
  if (any([](const PlanReport* plan) { return plan->legal > 0; })) return "no layout fits into memory";
  const std::string remedy = plans.empty() ? "" : name_legal_batch(*plans.front());
  return fmt::format("no layout of this batch is legal{}{}", remedy.empty() ? "" : ": ", remedy);
}

template <class Figure>
const PlanReport* least_plan(const PlanRefs& plans, Figure figure) {
  const auto found = std::ranges::min_element(
      plans, [&](const PlanReport* a, const PlanReport* b) { return figure(*a) < figure(*b); });
  return found == plans.end() ? nullptr : *found;
}

double days_of(const PlanReport& plan) { return *plan.training->days; }
double usd_of(const PlanReport& plan) { return *plan.training->usd; }

// Of one part: the fewest GPUs that train the tokens in time.
PlanAnswer answer_target(const std::string& gpu, const PlanRefs& asked, double target_days) {
  PlanAnswer answer;
  const PlanRefs plans = select(asked, trains_all_tokens);
  const PlanRefs in_time = select(plans, [&](const PlanReport* plan) { return days_of(*plan) <= target_days; });
  if (const PlanReport* fewest = least_plan(in_time, [](const PlanReport& plan) { return plan.gpus; })) {
    fill_answer(answer, *fewest);
    answer.sentence = name_plan(*fewest) + " is the smallest that finishes in time";
  } else if (const PlanReport* quickest = least_plan(plans, days_of)) {
    answer.sentence = fmt::format("no number of {} finishes in time; the fastest is {}", gpu, name_plan(*quickest));
  } else {
    answer.sentence = fmt::format("{}: {}", gpu, name_obstacle(asked));
  }
  answer.sentence = fmt::format("in {}: {}", format_days(target_days), answer.sentence);
  return answer;
}

PlanAnswer answer_budget(const PlanRefs& asked, double budget) {
  PlanAnswer answer;
  const PlanRefs plans = select(asked, trains_all_tokens);
  const PlanRefs priced = select(plans, [](const PlanReport* plan) { return plan->training->usd.has_value(); });
  const PlanRefs within = select(priced, [&](const PlanReport* plan) { return usd_of(*plan) <= budget; });
  if (const PlanReport* quickest = least_plan(within, days_of)) {
    fill_answer(answer, *quickest);
    answer.sentence = name_plan(*quickest) + " is the fastest within the budget";
  } else if (const PlanReport* cheapest = least_plan(priced, usd_of)) {
    answer.sentence = fmt::format("none is within the budget; the cheapest is {}", name_plan(*cheapest));
  } else {
    answer.sentence = plans.empty() ? name_obstacle(asked) : "no layout with a known price fits into memory";
  }
  answer.sentence = fmt::format("for {}: {}", format_usd(budget), answer.sentence);
  return answer;
}

void answer_questions(PlanComparison& comparison, const ComparisonOptions& options) {
  PlanRefs all;
  std::vector<PlanRefs> by_gpu;
  for (const PlanReport& plan : comparison.plans) {
    if (all.empty() || all.back()->gpu != plan.gpu) by_gpu.emplace_back();
    by_gpu.back().push_back(&plan);
    all.push_back(&plan);
  }
  if (options.target_days)
    for (const PlanRefs& plans : by_gpu)
      comparison.answers.push_back(answer_target(plans.front()->gpu, plans, *options.target_days));
  if (options.budget_usd) comparison.answers.push_back(answer_budget(all, *options.budget_usd));
  for (PlanAnswer& answer : comparison.answers)
    answer.sentence = fmt::format("{} tokens {}", format_tokens(comparison.tokens), answer.sentence);
}

}  // namespace

std::vector<FrontierPlan> pareto_frontier(std::vector<FrontierPlan> all) {
  const bool usd = known(all, &FrontierPlan::usd), energy = known(all, &FrontierPlan::megawatt_hours);
  std::vector<std::vector<double>> figures;
  for (const FrontierPlan& plan : all) figures.push_back(weighed_figures(plan, usd, energy));
  std::vector<FrontierPlan> frontier;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::ranges::none_of(figures, [&](const auto& other) { return beats(other, figures[i]); }))
      frontier.push_back(std::move(all[i]));
  std::ranges::stable_sort(frontier, [](const FrontierPlan& a, const FrontierPlan& b) { return a.days < b.days; });
  return frontier;
}

bool PlanComparison::is_answered() const {
  if (answers.empty()) return ends();
  return std::ranges::any_of(answers, [](const PlanAnswer& answer) { return answer.found; });
}

bool PlanComparison::ends() const {
  return std::ranges::any_of(plans, [](const PlanReport& plan) { return trains_all_tokens(&plan); });
}

PlanComparison compare_plans(const std::vector<PlanCase>& cases, const ParameterSet& parameters,
                             const ComparisonOptions& options) {
  PlanComparison comparison;
  CHECK(!cases.empty());
  comparison.scaling = options.scaling;
  comparison.tokens = cases.front().terms.tokens;
  std::vector<FrontierPlan> all;
  for (const PlanCase& each : cases) {
    SolvedCase solved = solve(each, parameters, options);
    comparison.plans.push_back(std::move(solved.report));
    all.insert(all.end(), solved.frontier.begin(), solved.frontier.end());
  }
  comparison.frontier_of = {"days", "memory_bytes"};
  if (known(all, &FrontierPlan::usd)) comparison.frontier_of.emplace_back("usd");
  if (known(all, &FrontierPlan::megawatt_hours)) comparison.frontier_of.emplace_back("megawatt_hours");
  comparison.frontier = pareto_frontier(std::move(all));
  mark_frontier(comparison);
  if (options.scaling) add_efficiencies(comparison.plans);
  answer_questions(comparison, options);
  comparison.assumptions = options.assumptions;
  comparison.machine = options.machine, comparison.machine_notes = options.machine_notes;
  return comparison;
}

}  // namespace tprimat::planner
