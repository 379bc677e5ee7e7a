// Who chose the experts, how tokens reached them and what their routers lost: of runs of the suite and of logs.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "extract/course.h"
#include "extract/logged_figures.h"
#include "unit/archive/sealed_run.h"

namespace tprimat::results {
namespace {

std::string read_fixture(const std::string& name) {
  return read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + name);
}

// torchtitan prints its configuration first.
std::string forced_torchtitan() {
  return R"([rank0]:[titan] 2026-01-15 09:00:01,000 - root - INFO - Running with args: )"
         R"({"debug": {"moe_force_load_balance": true}})"
         "\n" +
         read_fixture("torchtitan/experts.log");
}

void edit(Files& files, const char* name, const std::function<void(Json& result)>& change) {
  Json json = parse_json(files.at(name), name);
  change(json);
  files[name] = print_json(json);
}

void expect_holds(const Files& files, const std::string& what) {
  const Verification found = seal_and_verify_in_memory(files);
  EXPECT_TRUE(found.broken.empty()) << what << "\n" << list_all(found);
  EXPECT_EQ(found.logs, 1) << what;
}

void expect_broken(const Files& files, const Broken& wanted) {
  const Verification found = seal_and_verify_in_memory(files);
  EXPECT_TRUE(std::ranges::any_of(found.broken,
                                  [&](const Broken& each) {
                                    return each.what == wanted.what && each.stated == wanted.stated &&
                                           each.derived == wanted.derived && each.witness == wanted.witness;
                                  }))
      << wanted.what << ":\n"
      << list_all(found);
}

TEST(SealedRouting, HonestResultsOfSparseLogsHold) {
  for (const char* name : {"megatron/experts.log", "megatron_bridge/experts.log", "hf_trainer/mixtral.log",
                           "megatron_deepspeed/moe_loss.log", "steps/experts.log", "torchtitan/experts.log"})
    expect_holds(seal_log(read_fixture(name)), name);
  expect_holds(seal_log(forced_torchtitan()), "forced balance");
}

TEST(SealedRouting, LossesOfRoutersAreThoseOfTheLog) {
  Files files = seal_log(read_fixture("steps/experts.log"));
  edit(files, k_other_result, [](Json& json) { json["experts"]["load_values"][1] = 1.25; });
  expect_broken(files, {k_other_result, "step 2, load of the fullest expert", "1.25", "1.5", k_other_log});
  edit(files, k_other_result, [](Json& json) { json["experts"].erase("load_values"); });
  expect_broken(files, {k_other_result, "step 2, load of the fullest expert", "nothing", "1.5", k_other_log});
}

TEST(SealedRouting, AMeanFollowsFromItsSeries) {
  Files files = seal_log(read_fixture("steps/experts.log"));
  edit(files, k_other_result, [](Json& json) { json["experts"]["load"] = 1.25; });
  expect_broken(files, {k_other_result, "experts.load", "1.25", "1.5", ""});
}

TEST(SealedRouting, ForcedBalanceOfALogIsNotRelabelled) {
  const Files honest = seal_log(forced_torchtitan());
  Files files = honest;
  edit(files, k_other_result, [](Json& json) { json["experts"]["routing"] = "learned"; });
  expect_broken(files, {k_other_result, "experts.routing", "learned", "balanced", k_other_log});
  edit(files, k_other_result, [](Json& json) { json["experts"] = Json::object(); });
  expect_broken(files, {k_other_result, "experts.routing", "nothing", "balanced", k_other_log});
  files = honest;
  edit(files, k_other_result, [](Json& json) { json["experts"]["dispatcher"] = "hybridep"; });
  expect_broken(files, {k_other_result, "experts.dispatcher", "hybridep", "nothing", k_other_log});
}

TEST(SealedRouting, ForcedBalanceOfALogIsNotLeftOut) {
  Files files = seal_log(read_fixture("megatron/experts.log"));
  edit(files, k_other_result, [](Json& json) {
    json.erase("experts");
    json["effective_config"].erase("moe_router_force_load_balancing");
  });
  expect_broken(files, {k_other_result, "experts.routing", "nothing", "balanced", k_other_log});
}

TEST(SealedRouting, ARunHasTheRoutingOfItsSpecification) {
  Files files = sealed_run();
  edit(files, k_run_result, [](Json& json) { json["experts"]["routing"] = "balanced"; });
  expect_broken(files, {k_run_result, "experts.routing", "balanced", "learned", k_run_spec});
  edit(files, k_run_result, [](Json& json) { json["experts"]["dispatcher"] = "hybridep"; });
  expect_broken(files, {k_run_result, "experts.dispatcher", "hybridep", "alltoall", k_run_spec});
  edit(files, k_run_result, [](Json& json) { json.erase("experts"); });
  expect_broken(files, {k_run_result, "experts.routing", "nothing", "learned", k_run_spec});
}

// A framework prints no losses of routers as they are added: their factors come from its settings.
TEST(SealedRouting, ALogThatASuiteFollowed) {
  const std::string log = read_fixture("megatron/experts.log");
  const RunResult extracted = extract_in_memory(log);
  const logs::ReadLog read = logs::read_log_text(log, {});
  RunResult run;
  run.platform = Platform::nvd;
  run.framework = Framework::mega;
  run.model_info = extracted.model_info;
  run.training_config = extracted.training_config;
  run.parallelism_config = extracted.parallelism_config;
  run.source.log = "/x/logs/a.log";
  run.source.format = "log";
  for (const StepRecord& record : logs::make_step_records(read)) {
    run.step_times.push_back(record.time_seconds);
    run.loss_values.push_back(record.loss.value());
    run.learning_rates.push_back(record.learning_rate.value());
    run.grad_norms.push_back(record.grad_norm.value());
  }
  logs::add_logged_figures(run, read);
  summarise_run(run, {});
  ASSERT_TRUE(run.experts && run.experts->aux_loss_values);
  Files files = {{k_other_log, log}, {k_other_result, print_json(run_result_to_json(run))}};
  expect_holds(files, "as followed");
  edit(files, k_other_result, [](Json& json) { json["experts"]["routing"] = "learned"; });
  expect_broken(files, {k_other_result, "experts.routing", "learned", "balanced", k_other_log});
}

}  // namespace
}  // namespace tprimat::results
