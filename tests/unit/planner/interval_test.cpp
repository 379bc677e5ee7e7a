#include "planner/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner_samples.h"

namespace tprimat::planner {
namespace {

constexpr ModelKind k_dense = ModelKind::dense;

MeasuredGroup group_of(const std::string& gpu, const std::string& family, int64_t rows) {
  const Machine& machine = *find_machine(gpu);
  return {machine.id, machine.architecture, family, "bf16", k_dense, rows};
}

// Errors of the sample's GPU and program, and of others at every distance, of so many rows each.
class Errors {
 public:
  double draw(double spread) { return std::exp(spread * normal_(random_)); }
  void add(Distance distance, const std::string& group, double spread, int rows) {
    for (int i = 0; i < rows; ++i) kept_out.push_back({{k_dense, distance, group}, draw(spread)});
  }
  std::vector<KeptOutRow> kept_out;

 private:
  std::mt19937 random_{7};
  std::normal_distribution<double> normal_;
};

const std::string k_near = "H100-SXM-80GB megatron_core";

double share_within(const PredictionInterval& interval, double spread) {
  Errors fresh;
  constexpr int k_rows = 4000;
  int within = 0;
  for (int i = 0; i < k_rows; ++i) {
    const double ratio = fresh.draw(spread);
    within += interval.low <= ratio && ratio <= interval.high ? 1 : 0;
  }
  return static_cast<double>(within) / k_rows;
}

TEST(PredictionInterval, HoldsFourFifthsOfRowsThatItHasNotSeen) {
  Errors errors;
  errors.add(Distance::same_program, k_near, 0.03, 200);
  errors.add(Distance::same_program, "A100-SXM-80GB fsdp2", 0.2, 60);
  const Workload sample = sample_workload();
  const auto table =
      make_intervals({group_of("H100", "megatron_core", 200), group_of("A100", "fsdp2", 60)}, errors.kept_out);
  const PredictionInterval near = table.interval_of(sample, *find_machine("H100"));
  EXPECT_EQ(near.rows, 200);
  EXPECT_NE(near.basis.find("200 rows of H100-SXM-80GB"), std::string::npos) << near.basis;
  EXPECT_NEAR(share_within(near, 0.03), 0.8, 0.05);
  Workload other = sample;
  other.family = find_family("fsdp2");
  EXPECT_NEAR(share_within(table.interval_of(other, *find_machine("A100")), 0.2), 0.8, 0.08);
}

TEST(PredictionInterval, FartherIsNeverNarrower) {
  Errors errors;
  errors.add(Distance::same_program, k_near, 0.1, 100);
  errors.add(Distance::same_architecture, "hopper", 0.01, 100);
  errors.add(Distance::other_kind, "NVIDIA", 0.3, 100);
  errors.add(Distance::unmeasured, "NVIDIA", 0.02, 100);
  std::vector<MeasuredGroup> measured = {group_of("H100", "megatron_core", 100)};
  PredictionInterval last;
  const auto expect_no_narrower = [&](const std::string& basis) {
    const PredictionInterval next =
        make_intervals(measured, errors.kept_out).interval_of(sample_workload(), *find_machine("H100"));
    EXPECT_LE(next.low, last.low) << basis;
    EXPECT_GE(next.high, last.high) << basis;
    EXPECT_NE(next.basis.find(basis), std::string::npos) << next.basis;
    last = next;
  };
  expect_no_narrower("100 rows of H100-SXM-80GB with Megatron-Core");
  measured[0].family = "fsdp2";
  expect_no_narrower("100 rows of hopper (dense)");
  measured[0].kind = ModelKind::sparse;
  expect_no_narrower("100 rows of hopper with other kinds");
  measured.clear();
  expect_no_narrower("other architectures, for lack of rows of hopper");
}

TEST(PredictionInterval, FewRowsHaveTheNextFartherOne) {
  Errors errors;
  errors.add(Distance::same_program, k_near, 0.1, 9);
  const std::vector<MeasuredGroup> measured = {group_of("H100", "megatron_core", 9)};
  const Machine& machine = *find_machine("H100");
  EXPECT_FALSE(make_intervals(measured, errors.kept_out).interval_of(sample_workload(), machine).is_known());
  errors.add(Distance::unmeasured, "NVIDIA", 0.2, 50);
  const auto far = make_intervals(measured, errors.kept_out).interval_of(sample_workload(), machine);
  EXPECT_NEAR(share_within(far, 0.2), 0.8, 0.08);
  // Two rows do not make a program measured.
  errors.add(Distance::same_program, k_near, 0.01, 100);
  EXPECT_EQ(make_intervals({group_of("H100", "megatron_core", 2)}, errors.kept_out)
                .place_of(sample_workload(), machine)
                .distance,
            Distance::unmeasured);
}

TEST(PredictionInterval, TheFileSaysAllOfIt) {
  Errors errors;
  errors.add(Distance::same_program, k_near, 0.05, 40);
  errors.add(Distance::unmeasured, "AMD", 0.3, 40);
  const auto table = make_intervals({group_of("H100", "megatron_core", 40)}, errors.kept_out);
  const std::string text = format_intervals(table);
  const IntervalTable read = parse_intervals(text);
  EXPECT_EQ(read.measured, table.measured);
  EXPECT_EQ(format_intervals(read), text);
}

TEST(PredictionInterval, TheBuiltInTableKnowsWhatWasMeasured) {
  const ParameterSet& parameters = built_in_parameters();
  const Machine& machine = *find_machine("H100");
  const PredictionInterval near = prediction_interval(sample_workload(), machine, parameters);
  EXPECT_GT(near.rows, 100);
  EXPECT_LT(near.low, 1);
  EXPECT_GT(near.high, 1);
  Machine unknown = machine;
  unknown.id = "X1", unknown.architecture = "unknown";
  const PredictionInterval far = prediction_interval(sample_workload(), unknown, parameters);
  EXPECT_LT(far.low, near.low);
  EXPECT_GT(far.high, near.high);
  EXPECT_EQ(far.rows, 0);
}

TEST(PredictionInterval, OfOurOwnTrainerIsNotKnown) {
  Workload workload = sample_workload();
  workload.family = find_family("native");
  EXPECT_FALSE(prediction_interval(workload, *find_machine("H100"), built_in_parameters()).is_known());
}

}  // namespace
}  // namespace tprimat::planner
