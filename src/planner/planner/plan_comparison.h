#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/machine_from_probe.h"
#include "planner/plan_report.h"

namespace tprimat::planner {

// How the batch goes with the number of GPUs: strong keeps it, weak lets it grow from that of the fewest.
enum class Scaling { strong, weak };

struct PlanCase {
  PlanRequest request;
  TrainingTerms terms;
  std::string memory_source = "";  // of the machine's memory; empty: the catalogue
};

struct ComparisonOptions {
  size_t most = 10;  // layouts of each case
  bool explains = false;
  std::optional<Scaling> scaling;
  std::optional<double> target_days, budget_usd;
  std::vector<std::string> assumptions;  // what nobody stated
  std::vector<MachineFigure> machine;    // of a machine that a probe measured
  std::vector<std::string> machine_notes;
};

// A layout that no other of any case beats in everything that is known of all.
struct FrontierPlan {
  std::string gpu;
  int64_t gpus = 0;
  PlanLine layout;
  double days = 0;
  std::optional<double> usd, megawatt_hours;

  static constexpr auto fields() {
    using F = FrontierPlan;
    return field_list(field("gpu", &F::gpu, "part"), field("gpus", &F::gpus, "number of GPUs"),
                      field("layout", &F::layout, "which"), field("days", &F::days, "time to train all tokens"),
                      field("usd", &F::usd, "for that"),
                      field("megawatt_hours", &F::megawatt_hours, "energy to train all tokens, upper bound"));
  }
};

// What was asked, and which plan answers it.
struct PlanAnswer {
  std::string sentence;
  bool found = false;
  std::string gpu;              // of the plan, where there is one
  std::optional<int64_t> gpus;  // of the plan
  std::optional<double> days, usd;

  static constexpr auto fields() {
    using A = PlanAnswer;
    return field_list(
        field("sentence", &A::sentence, "question and answer"), field("found", &A::found, "a plan meets the target"),
        field("gpu", &A::gpu, "of that plan; empty if there is none"), field("gpus", &A::gpus, "of that plan"),
        field("days", &A::days, "of that plan"), field("usd", &A::usd, "of that plan"));
  }
};

struct PlanComparison {
  std::vector<PlanReport> plans;  // in the order of the cases
  double tokens = 0;              // to train
  std::optional<Scaling> scaling;
  std::vector<std::string> frontier_of;  // what the frontier weighs: "days", "memory_bytes", "usd", "megawatt_hours"
  std::vector<FrontierPlan> frontier;    // quickest training first
  std::vector<PlanAnswer> answers;
  std::vector<std::string> assumptions;
  std::vector<MachineFigure> machine;      // of one that a probe measured; empty: no probe
  std::vector<std::string> machine_notes;  // what the probe leaves open

  bool ends() const;         // some plan trains all tokens
  bool is_answered() const;  // some plan satisfies what was asked, or where nothing was asked trains all tokens

  static constexpr auto fields() {
    using C = PlanComparison;
    return field_list(field("plans", &C::plans, "one per GPU model and number of GPUs"),
                      field("tokens", &C::tokens, "to train"),
                      field("scaling", &C::scaling, "strong: constant batch; weak: the batch grows with the GPUs"),
                      field("frontier_of", &C::frontier_of, "figures that the frontier compares"),
                      field("frontier", &C::frontier, "layouts that no other beats in every such figure"),
                      field("answers", &C::answers, "to --target-days and --budget"),
                      field("assumptions", &C::assumptions, "assumptions for values not given"),
                      field("machine", &C::machine, "figures of the machine that a probe measured"),
                      field("machine_notes", &C::machine_notes, "what the probe leaves open"));
  }
};

PlanComparison compare_plans(const std::vector<PlanCase>& cases, const ParameterSet& parameters,
                             const ComparisonOptions& options);

// Of `all`, those that no other beats: no worse in everything, better in something. What is not known of every plan
// does not count.
std::vector<FrontierPlan> pareto_frontier(std::vector<FrontierPlan> all);

// One line per case, marks, answers; and of a single number of GPUs the layouts of each case.
std::string render_plan_comparison(const PlanComparison& comparison);

// The reasons why `best` is the fastest layout, as sentences. Each choice is compared with the fastest layout that
// chooses otherwise and is free in all else. Choices that would be faster with all else equal but do not fit in memory
// come first, then the largest differences. Differences below 1 % of a step are left out; at most `most` are returned.
std::vector<std::string> explain_choice(const PlanRequest& request, const ParameterSet& parameters,
                                        const RankedLayout& best, size_t most);

}  // namespace tprimat::planner
