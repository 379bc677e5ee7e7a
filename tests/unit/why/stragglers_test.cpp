#include "why/stragglers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "example_data.h"
#include "text/json.h"
#include "unit/why/pipeline_fixture.h"
#include "why/operation_file.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

StragglerReport report_of(const test::PipelineShape& shape) {
  return find_stragglers(make_pipeline_replay(test::make_pipeline(shape), "test"));
}

TEST(Stragglers, EqualWorkersHaveNone) {
  const StragglerReport report = report_of({});
  EXPECT_DOUBLE_EQ(report.slowdown, 1.0);
  EXPECT_DOUBLE_EQ(report.replay_error(), 0.0);
  EXPECT_FALSE(report.last_stage_share.has_value());
  EXPECT_EQ(report.slowest.size(), 1u);
}

TEST(Stragglers, ASlowLastStageIsFound) {
  test::PipelineShape shape{.stages = 4, .micro_batches = 16, .dp_ranks = 2, .steps = 3};
  shape.seconds = [](const WorkerOperation& row) { return row.stage == 3 ? 1.5 : 1.0; };
  const StragglerReport report = report_of(shape);
  EXPECT_DOUBLE_EQ(report.measured_seconds, 32 * 1.5 + 6);
  EXPECT_NEAR(report.ideal_seconds, 1.125 * 38, 1e-9);
  EXPECT_EQ(report.stages.front().name, "stage 3");
  EXPECT_GT(report.stages.front().slowdown, report.stages.back().slowdown);
  EXPECT_GT(report.last_stage_share.value(), 0.95);
}

TEST(Stragglers, ASlowWorkerIsFound) {
  test::PipelineShape shape{.stages = 4, .micro_batches = 16, .dp_ranks = 3, .steps = 2};
  shape.seconds = [](const WorkerOperation& row) { return row.stage == 1 && row.dp_rank == 2 ? 2.0 : 1.0; };
  const StragglerReport report = report_of(shape);
  ASSERT_EQ(report.slowest.size(), 1u);
  EXPECT_EQ(report.slowest[0].dp_rank, 2);
  EXPECT_EQ(report.slowest[0].stage, 1);
  EXPECT_GT(report.slowest_workers_share.value(), 0.95);
  EXPECT_LT(report.last_stage_share.value(), 0.05);
  EXPECT_EQ(report.replicas.front().name, "replica 2");
}

// Two production jobs; the figures are those of the published analysis.
void expect_published(const std::string& job) {
  const std::string folder = std::string(TPRIMAT_SHARED_DATA "/trace_pairs/pipeline/straggler_") + job;
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  const auto read = [&](const std::string& name) { return parse_json(read_file(folder + "/" + name), name); };
  const Json result = read("result.json"), last = read("ms.json"), slowest = read("mw.json");
  const StragglerReport report =
      find_stragglers(make_pipeline_replay(load_operations(folder + "/trace.csv.gz"), "trace.csv.gz"));
  const auto mean_of = [&](std::string_view name) {
    double sum = 0;
    for (const auto& [step, seconds] : result.at(name).items()) sum += seconds.get<double>();
    return sum / static_cast<double>(result.at(name).size());
  };
  const auto expect = [](double found, double published) { EXPECT_NEAR(found / published, 1.0, 1e-4); };
  expect(report.measured_seconds, mean_of("step_t_base"));
  expect(report.no_delay_seconds, mean_of("step_t_nodelay"));
  expect(report.ideal_seconds, mean_of("step_t_noblk"));
  expect(report.slowdown, result.at("blocking_slowdown").get<double>());
  expect(report.launch_slowdown, result.at("launch_slowdown").get<double>());
  for (const StragglerPart& part : report.stages)
    expect(part.slowdown, result.at("blocking_decompose_by_stage").at(part.name.substr(6)).get<double>());
  for (const StragglerPart& part : report.replicas)
    expect(part.slowdown, result.at("blocking_decompose_by_dp_rank").at(part.name.substr(8)).get<double>());
  for (const StragglerPart& part : report.operations) {
    std::string name = part.name;
    if (name.ends_with("_messages")) name = name.substr(0, name.find('_')) + "_pp_comm";
    std::replace(name.begin(), name.end(), '_', '-');
    expect(part.slowdown, result.at("blocking_decompose_by_optype").at(name).get<double>());
  }
  EXPECT_NEAR(report.last_stage_share.value(), last.at("Ms").get<double>(), 1e-4);
  EXPECT_NEAR(report.slowest_workers_share.value(), slowest.at("Mw").get<double>(), 1e-4);
  expect(report.without_last_stage_seconds, last.at("trem").get<double>());
  expect(report.without_slowest_workers_seconds, slowest.at("trem").get<double>());
}

TEST(Stragglers, ALongLastStageOfAProductionJob) { expect_published("ST"); }
TEST(Stragglers, ASlowWorkerOfAProductionJob) { expect_published("AR"); }

}  // namespace
}  // namespace tprimat::results
