#include "planner/measured_runs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "planner/calibrate.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

Workload sparse_workload() {
  Workload w = sample_workload();
  w.shape = *find_model("qwen3_30b_a3b");
  w.sequence_length = 4096, w.release = "26.04", w.dispatcher = Dispatcher::hybridep;
  w.layout.tensor = 1, w.layout.data = 8, w.layout.expert = 8;
  return w;
}

double factor_of(const MeasuredRun& run, const Workload& workload, const char* gpu = "H100") {
  return NearRuns({run}, *find_machine(gpu), workload).factor(workload.layout);
}

TEST(MeasuredRuns, AreWrittenAndReadBack) {
  Workload w = sparse_workload();
  w.overlaps_experts = true, w.scaled_by_block = true, w.graphs = Graphs::parts;
  w.layout.recompute = Recompute::full, w.layout.pipeline = 4, w.layout.chunks = 3, w.layout.expert_tensor = 2;
  for (const auto& dispatcher : {std::optional<Dispatcher>(), std::optional(Dispatcher::alltoall)}) {
    w.dispatcher = dispatcher;
    const MeasuredRun run = measured_run(w, *find_machine("H100"), 1.25);
    const auto read = parse_run(name_run(run), 1.25);
    ASSERT_TRUE(read) << name_run(run);
    EXPECT_EQ(name_run(*read), name_run(run));
    EXPECT_DOUBLE_EQ(factor_of(*read, w), factor_of(run, w));
  }
}

TEST(MeasuredRuns, NothingElseIsRead) {
  const std::string name = name_run(measured_run(sparse_workload(), *find_machine("H100"), 1));
  ASSERT_TRUE(parse_run(name, 1));
  for (const std::string& other : {std::string("run@"), std::string("product_16@hopper"), name + ";1",
                                   name.substr(0, name.rfind(';')), name.substr(0, name.rfind(';')) + ";0",
                                   name.substr(0, name.rfind(';')) + ";-8", name.substr(0, name.rfind(';')) + ";9e9"})
    EXPECT_FALSE(parse_run(other, 1)) << other;
  for (const double ratio : {0.0, -1.0, 1e9, std::nan("")}) EXPECT_FALSE(parse_run(name, ratio)) << ratio;
}

// The same run again moves the prediction half of the way: a weight of 1 says that the model is right.
TEST(MeasuredRuns, TheNearestMovesAPredictionMost) {
  const Workload w = sparse_workload();
  const MeasuredRun same = measured_run(w, *find_machine("H100"), 1.44);
  EXPECT_NEAR(factor_of(same, w), 1.2, 1e-12);
  Workload other = w;
  other.layout.expert = 4;
  EXPECT_LT(factor_of(same, other), 1.2);
  EXPECT_GT(factor_of(same, other), 1);
  EXPECT_LT(factor_of(same, w, "B200"), factor_of(same, w, "H200"));
  EXPECT_LT(factor_of(same, w, "H200"), factor_of(same, w));
  other = w, other.shape.name = "another";
  EXPECT_EQ(factor_of(same, other), 1);
  other = w, other.family = find_family("fsdp2");
  EXPECT_EQ(factor_of(same, other), 1);
}

TEST(MeasuredRuns, NoneMovesAPredictionFar) {
  const Workload w = sparse_workload();
  EXPECT_NEAR(factor_of(measured_run(w, *find_machine("H100"), 1e9), w), std::sqrt(k_max_ratio), 1e-12);
  EXPECT_NEAR(factor_of(measured_run(w, *find_machine("H100"), 0), w), std::sqrt(k_min_ratio), 1e-12);
}

// What a published run cannot know: a machine that was measured itself, and how evenly tokens are routed.
TEST(MeasuredRuns, AreNotAskedWhereTheMachineItselfWasMeasured) {
  const Workload w = sparse_workload();
  Machine machine = *find_machine("H100");
  ParameterSet set = built_in_parameters();
  set.set_measured_runs({measured_run(w, machine, 1.44)});
  ParameterSet none = set;
  none.set_measured_runs({});
  EXPECT_NEAR(predict_seconds(set, machine, w) / predict_seconds(none, machine, w), 1.2, 1e-9);
  machine.measured.product_16 = 0.7 * machine.peak_16;
  EXPECT_EQ(predict_seconds(set, machine, w), predict_seconds(none, machine, w));
}

TEST(MeasuredRuns, OfAFileReplaceTheBuiltInOnes) {
  ParameterSet set = built_in_parameters();
  set.set_measured_runs({measured_run(sparse_workload(), *find_machine("H100"), 1.25)});
  const ParameterSet read = parse_parameters(format_parameters(set), "own.tsv");
  ASSERT_EQ(read.measured_runs().size(), 1u);
  EXPECT_EQ(format_parameters(read), format_parameters(set));
  EXPECT_EQ(parse_parameters("", "own.tsv").measured_runs().size(), built_in_parameters().measured_runs().size());
  const std::string line = name_run(set.measured_runs().front());
  EXPECT_THROW(parse_parameters(line + ";1\t1\t1\t0\t0.5\t2\t\n", "own.tsv"), Error);
}

// Fitted again without sparse rows, the set keeps its runs; with them it has theirs alone.
TEST(MeasuredRuns, AreThoseOfTheRowsThatWereFitted) {
  const Workload w = sparse_workload();
  const Machine machine = *find_machine("H100");
  const size_t built_in = built_in_parameters().measured_runs().size();
  ASSERT_GT(built_in, 0u);
  EXPECT_EQ(calibrate(built_in_parameters(), {}).measured_runs().size(), built_in);
  const Observation seen{w, machine, 2 * predict_seconds(built_in_parameters(), machine, w), {}};
  const ParameterSet fitted = calibrate(built_in_parameters(), {seen});
  ASSERT_EQ(fitted.measured_runs().size(), 1u);
  EXPECT_LT(std::fabs(std::log(predict_seconds(fitted, machine, w) / seen.seconds)),
            std::fabs(std::log(fitted.measured_runs().front().ratio)));
}

}  // namespace
}  // namespace tprimat::planner
