// How often intervals and verdicts are right, by simulation: the tables of docs/method.md.
// Usage: bench_coverage [ROUNDS] [SEED]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "block_bootstrap.h"
#include "simulation.h"
#include "text/format.h"

namespace tprimat::simulation {
namespace {

struct Plan {
  int rounds = 2000;
  uint64_t seed = 1;
};

std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

Interval interval_of_bootstrap(const std::vector<double>& values) {
  return *bootstrap_mean(values, {.replicates = 1000, .confidence = 0.95, .seed = 1});
}

void print_table(const char* title, const TextTable& table) {
  std::printf("%s\n\n%s\n", title, render_text(table).c_str());
  std::fflush(stdout);
}

std::vector<size_t> all_but_first(size_t columns) {
  std::vector<size_t> right;
  for (size_t i = 1; i < columns; ++i) right.push_back(i);
  return right;
}

// A column per correlation: coverage of ours, and of the block bootstrap.
void show_means(const Plan& plan) {
  constexpr double k_memories[] = {0, 0.3, 0.6, 0.8, 0.9};
  TextTable table{{"steps"}, {}, {}};
  for (const double memory : k_memories) table.header.push_back(fmt::format("rho {}", memory));
  for (const double memory : k_memories) table.header.push_back(fmt::format("bootstrap {}", memory));
  table.right = all_but_first(table.header.size());
  for (const size_t steps : {20, 30, 50, 100, 200, 500}) {
    std::vector<std::string> row{fmt::format("{}", steps)};
    for (const double memory : k_memories)
      row.push_back(
          percent(cover_mean({.steps = steps, .memory = memory}, interval_of_product, plan.rounds, plan.seed).share));
    for (const double memory : k_memories)
      row.push_back(percent(
          cover_mean({.steps = steps, .memory = memory}, interval_of_bootstrap, std::max(plan.rounds / 4, 1), plan.seed)
              .share));
    table.rows.push_back(row);
  }
  engine::print_table("One run: its 95 % interval holds the true mean in % of rounds (noise 5 %)", table);
}

// Half width of the interval of somebody who knows the process, relative to a mean of 1.
double oracle_half_width(const Scenario& scenario) {
  const double n = static_cast<double>(scenario.steps);
  double correlations = 1;
  for (size_t lag = 1; lag < scenario.steps; ++lag)
    correlations += 2 * (1 - static_cast<double>(lag) / n) * std::pow(scenario.memory, static_cast<double>(lag));
  return 1.96 * scenario.noise * std::sqrt(correlations / n);
}

void show_widths(const Plan& plan) {
  TextTable table{{"steps", "rho 0", "rho 0.3", "rho 0.6", "rho 0.8", "rho 0.9"}, {}, {1, 2, 3, 4, 5}};
  for (const size_t steps : {20, 30, 50, 100, 200, 500}) {
    std::vector<std::string> row{fmt::format("{}", steps)};
    for (const double memory : {0.0, 0.3, 0.6, 0.8, 0.9}) {
      const Scenario scenario{.steps = steps, .noise = 0.01, .memory = memory};
      const double width = cover_mean(scenario, interval_of_product, plan.rounds, plan.seed).half_width;
      row.push_back(fmt::format("{:.2f}", width / oracle_half_width(scenario)));
    }
    table.rows.push_back(row);
  }
  engine::print_table("One run: half width over that of somebody who knows the process (noise 1 %)", table);
}

void show_shapes(const Plan& plan) {
  struct Shape {
    const char* name;
    Scenario scenario;
  };
  const Shape shapes[] = {{"10 % of steps 30 % slower", {.noise = 0.01, .slow_share = 0.1}},
                          {"the same in spells of 5", {.noise = 0.01, .slow_share = 0.1, .slow_stay = 0.8}},
                          {"half of the steps 30 % slower", {.noise = 0.01, .slow_share = 0.5}},
                          {"drift of 2 %", {.noise = 0.01, .drift = 0.02}},
                          {"drift of 5 %, rho 0.6", {.noise = 0.01, .memory = 0.6, .drift = 0.05}}};
  TextTable table{{"steps"}, {}, {}};
  for (const Shape& shape : shapes) table.header.emplace_back(shape.name);
  table.right = all_but_first(table.header.size());
  for (const size_t steps : {20, 50, 100, 200, 500}) {
    std::vector<std::string> row{fmt::format("{}", steps)};
    for (const Shape& shape : shapes) {
      Scenario scenario = shape.scenario;
      scenario.steps = steps;
      row.push_back(percent(cover_mean(scenario, interval_of_product, plan.rounds, plan.seed).share));
    }
    table.rows.push_back(row);
  }
  engine::print_table("One run of other shapes (noise 1 %)", table);
}

std::vector<std::string> describe(const Scenario& scenario, const PairRates& equal, const PairRates& beyond) {
  const size_t other = scenario.other_runs > 0 ? scenario.other_runs : scenario.runs;
  return {fmt::format("{} and {}", scenario.runs, other),
          fmt::format("{}", scenario.steps),
          fmt::format("{}", scenario.memory),
          fmt::format("{:.1f}", scenario.run_spread * 100),
          percent(equal.coverage),
          percent(equal.winners()),
          percent(equal.same),
          percent(beyond.same),
          fmt::format("{:.2f}", equal.half_width * 100)};
}

void show_pairs(const Plan& plan) {
  TextTable table{{"runs", "steps", "rho", "spread between runs %", "covered", "winner of equals", "same of equals",
                   "same of 1.5 % apart", "half width %"},
                  {},
                  {}};
  table.right = all_but_first(table.header.size());
  std::vector<Scenario> scenarios;
  for (const size_t runs : {1, 2, 3, 5, 10})
    for (const double spread : {0.0, 0.003, 0.01, 0.02, 0.03})
      scenarios.push_back({.runs = runs, .steps = 100, .noise = 0.02, .memory = 0.6, .run_spread = spread});
  for (const size_t runs : {1, 3})
    scenarios.push_back({.runs = runs, .steps = 20, .noise = 0.02, .memory = 0.9, .run_spread = 0.01});
  for (const auto& [a, b] : {std::pair{1, 3}, {1, 5}, {2, 5}, {2, 10}, {3, 10}})
    scenarios.push_back({.runs = static_cast<size_t>(a),
                         .steps = 100,
                         .noise = 0.02,
                         .memory = 0.6,
                         .run_spread = 0.01,
                         .other_runs = static_cast<size_t>(b)});
  for (const Scenario& scenario : scenarios)
    table.rows.push_back(describe(scenario, judge_pairs(scenario, 1, plan.rounds, plan.seed),
                                  judge_pairs(scenario, 1.015, plan.rounds, plan.seed)));
  engine::print_table("Pairs: % of rounds (noise of a step 2 %, smallest effect 1 %)", table);
}

void show_power(const Plan& plan) {
  TextTable table{{"runs a side", "spread between runs %", "faster by 1 %", "2 %", "3 %", "5 %", "10 %"}, {}, {}};
  table.right = all_but_first(table.header.size());
  for (const size_t runs : {1, 3, 5, 10})
    for (const double spread : {0.0, 0.003, 0.01}) {
      const Scenario scenario{.runs = runs, .steps = 50, .noise = 0.01, .run_spread = spread};
      std::vector<std::string> row{fmt::format("{}", runs), fmt::format("{:.1f}", spread * 100)};
      for (const double gain : {0.01, 0.02, 0.03, 0.05, 0.1})
        row.push_back(percent(judge_pairs(scenario, 1 + gain, plan.rounds, plan.seed).faster));
      table.rows.push_back(row);
    }
  engine::print_table("Power: a true difference is called faster in % of rounds (50 steps, noise of a step 1 %)",
                      table);
}

void show_discoveries(const Plan& plan) {
  TextTable table{{"contenders", "true gap %", "false among winners %", "unadjusted %", "found %"}, {}, {}};
  table.right = all_but_first(table.header.size());
  for (const size_t contenders : {5, 10, 20})
    for (const double speed : {1.0, 1.03}) {
      const Scenario scenario{.runs = 5, .steps = 50, .noise = 0.01, .run_spread = 0.01};
      const Discoveries found = discover(scenario, contenders, speed, std::max(1, plan.rounds / 10));
      table.rows.push_back({fmt::format("{}", contenders), fmt::format("{:.0f}", (speed - 1) * 100),
                            fmt::format("{:.2f}", found.false_share * 100),
                            fmt::format("{:.2f}", found.false_share_unadjusted * 100), percent(found.found)});
    }
  engine::print_table("All pairs: the half of them against the other half (5 runs a side, spread between runs 1 %)",
                      table);
}

template <class Work>
double microseconds(int times, Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / times;
}

void show_cost(const Plan& plan) {
  std::mt19937_64 random(plan.seed);
  double sink = 0;
  TextTable table{{"steps", "interval, us", "block bootstrap of 4000, us"}, {}, {1, 2}};
  for (const size_t steps : {20, 100, 500, 5000}) {
    const std::vector<double> run = draw_run({.steps = steps, .memory = 0.5}, 1, random);
    const double ours = microseconds(2000, [&] { sink += interval_of_product(run).low; });
    const double bootstrap = microseconds(10, [&] { sink += bootstrap_mean(run)->low; });
    table.rows.push_back({fmt::format("{}", steps), fmt::format("{:.1f}", ours), fmt::format("{:.0f}", bootstrap)});
  }
  const Scenario scenario{.runs = 5};
  const results::RateEvidence a = draw_side(scenario, 1, random), b = draw_side(scenario, 1.01, random);
  const double pair = microseconds(2000, [&] { sink += *to_estimate(*measure_ratio(a, b)).low; });
  table.rows.push_back({"a pair of 5 runs", fmt::format("{:.1f}", pair), "-"});
  engine::print_table(sink > 0 ? "Cost of one run's interval" : "", table);
}

}  // namespace

int run(int count, char** arguments) {
  Plan plan;
  if (count > 1) plan.rounds = std::atoi(arguments[1]);
  if (count > 2) plan.seed = static_cast<uint64_t>(std::atoll(arguments[2]));
  if (plan.rounds < 1) {
    std::fprintf(stderr, "usage: bench_coverage [ROUNDS] [SEED], ROUNDS at least 1\n");
    return 2;
  }
  show_means(plan);
  show_widths(plan);
  show_shapes(plan);
  show_pairs(plan);
  show_power(plan);
  show_discoveries(plan);
  show_cost(plan);
  return 0;
}

}  // namespace tprimat::simulation

int main(int count, char** arguments) { return tprimat::simulation::run(count, arguments); }
