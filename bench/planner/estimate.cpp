// What the planner takes inside a process: one estimate of memory and time alone, and a layout within a search.
//   bench_planner [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "planner/search.h"
#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

struct Case {
  const char* model;
  int64_t gpus, sequence_length, global_batch;
};

planner::PlanRequest request_of(const Case& each) {
  planner::PlanRequest request;
  request.shape = find_counted_model(each.model)->spec;
  request.sequence_length = each.sequence_length;
  request.global_batch = each.global_batch;
  request.gpus = each.gpus;
  request.machine = *planner::find_machine("H100");
  request.family = planner::find_family("megatron_core");
  return request;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <class Work>
double median_seconds(int rounds, const Work& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = SteadyClock::now();
    work();
    seconds.push_back(seconds_since(start));
  }
  return median(seconds);
}

// Each layout as if it were asked for alone: rates from the parameters, memory, simulated time.
double seconds_per_estimate(const planner::PlanRequest& request, int rounds) {
  const planner::ParameterSet& parameters = planner::built_in_parameters();
  const std::vector<planner::RankedLayout> plans = planner::search_layouts(request, parameters, 200).ranked;
  double sum = 0;
  const double seconds = median_seconds(rounds, [&] {
    for (const planner::RankedLayout& plan : plans) {
      const planner::Rates rates = planner::resolve_rates(parameters, request.machine, plan.workload);
      sum += planner::estimate_memory(plan.workload, parameters).total() +
             planner::time_step(plan.workload, request.machine, rates).total();
    }
  });
  if (sum < 0) std::abort();  // so that nothing is left out
  return seconds / static_cast<double>(plans.size());
}

void measure(const Case& each, int rounds) {
  const planner::PlanRequest request = request_of(each);
  int64_t legal = 0;
  const double seconds = median_seconds(
      rounds, [&] { legal = planner::search_layouts(request, planner::built_in_parameters(), 10).legal; });
  fmt::print("{:14} {:6} GPUs: search of {:5} layouts {:6.2f} ms, {:5.2f} µs each; one estimate alone {:5.2f} µs\n",
             each.model, each.gpus, legal, 1e3 * seconds, 1e6 * seconds / static_cast<double>(legal),
             1e6 * seconds_per_estimate(request, rounds));
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  for (const tprimat::Case& each : {tprimat::Case{"llama3_8b", 64, 8192, 512},
                                    {"gpt_175b", 1024, 2048, 1536},
                                    {"llama3.1_405b", 16384, 8192, 2048},
                                    {"deepseek_v3", 2048, 4096, 8192}})
    tprimat::measure(each, rounds);
}
