// How a run ended: a reader judges the series itself, so the status in the file is compared on its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/archive/sealed_run.h"

namespace tprimat::results {
namespace {

struct Ending {
  const char *status, *reason, *kind;  // nullptr: not stated
};

class StatusTest : public ::testing::Test {
 protected:
  // The run as it was after `steps` steps.
  void stop_after(size_t steps) {
    std::vector<StepRecord> records = sealed_steps(sealed_spec());
    records.resize(steps);
    files_[k_run_result] = print_json(run_result_to_json(sealed_result(sealed_spec(), records)));
    files_[k_run_steps] = lines_of(records);
    files_[k_run_log] = sealed_log(sealed_spec(), records);
  }
  void end_log_with(const std::string& line) { files_[k_run_log] += line + "\n"; }

  std::vector<std::string> broken_facts(const Ending& ending) {
    Json json = parse_json(files_[k_run_result], "");
    const auto set = [&](const char* key, const char* value) {
      if (value == nullptr)
        json.erase(key);
      else
        json[key] = value;
    };
    set("status", ending.status);
    set("status_reason", ending.reason);
    set("failure_kind", ending.kind);
    Files files = files_;
    files[k_run_result] = print_json(json);
    std::vector<std::string> facts;
    for (const Broken& each : seal_and_verify_in_memory(files).broken) facts.push_back(each.what);
    return facts;
  }
  void expect_holds(const Ending& ending) {
    const auto facts = broken_facts(ending);
    EXPECT_TRUE(facts.empty()) << ending.status << ": " << facts.front();
  }
  void expect_broken(const Ending& ending, const std::string& fact) {
    const auto facts = broken_facts(ending);
    EXPECT_NE(std::find(facts.begin(), facts.end(), fact), facts.end())
        << (ending.status == nullptr ? "no status" : ending.status) << ", " << fact;
  }

  Files files_ = sealed_run();
};

constexpr const char* k_time_limit = "stopped after its time limit of 2.000 s";

TEST_F(StatusTest, OfARunThatFailed) {
  stop_after(20);
  expect_holds({"failed", k_time_limit, "time_limit"});
  expect_broken({"complete", nullptr, nullptr}, "status");
  expect_broken({"complete", k_time_limit, "time_limit"}, "status_reason");
  expect_broken({"interrupted", k_time_limit, nullptr}, "failure_kind");
  expect_broken({"invalid", k_time_limit, "time_limit"}, "failure_kind");
  expect_broken({"failed", k_time_limit, "out_of_memory"}, "failure_kind");
  expect_broken({"failed", "out of memory: tried to allocate 2 GiB", "time_limit"}, "failure_kind");
  expect_broken({"failed", nullptr, "time_limit"}, "status_reason");
  expect_holds({"failed", "hung: no step for 20 s after step 20, where the median step takes 1.000 s", "hung"});
  expect_holds({"failed", "killed by signal 9 (SIGKILL)", "killed"});
  expect_holds({"failed", "killed by signal 9 (SIGKILL): the kernel ran out of memory", "host_out_of_memory"});
}

TEST_F(StatusTest, OfARunThatWasInterrupted) {
  stop_after(20);
  expect_holds({"interrupted", "stopped by the user", nullptr});
  expect_broken({"failed", "stopped by the user", "killed"}, "failure_kind");
  expect_broken({"complete", nullptr, nullptr}, "status");
}

TEST_F(StatusTest, OfARunThatIsInvalid) {
  stop_after(20);
  expect_holds({"invalid", "stopped after step 20 of 30", "steps_missing"});
  expect_broken({"invalid", "stopped after step 29 of 30", "steps_missing"}, "status_reason");
  expect_broken({"invalid", "stopped after step 20 of 30", "nan_loss"}, "failure_kind");
  expect_broken({nullptr, nullptr, nullptr}, "has a schema_version but no status");
}

TEST_F(StatusTest, OfARunWhoseLogShowsItsEnd) {
  stop_after(20);
  end_log_with("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB");
  expect_holds({"failed", "out of memory: tried to allocate 2 GiB", "out_of_memory"});
  expect_broken({"failed", "out of memory: tried to allocate 9 GiB", "out_of_memory"}, "status_reason");
  expect_broken({"failed", "device error: xid 79", "device_error"}, "failure_kind");
  files_ = sealed_run();  // all of its steps
  expect_holds({"complete", nullptr, nullptr});
  end_log_with("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB");
  expect_broken({"complete", nullptr, nullptr}, "status");
}

TEST_F(StatusTest, OfALossThatIsNoNumber) {
  Json json = parse_json(files_[k_run_result], "");
  for (size_t i = 25; i < 30; ++i) json["loss_values"][i] = nullptr;
  files_[k_run_result] = print_json(json);
  expect_broken({"complete", nullptr, nullptr}, "status");
}

TEST_F(StatusTest, QuotesTheLastLinesOfALog) {
  stop_after(3);
  end_log_with("the disk of node 7 is gone");
  expect_holds({"failed", "exit status 5: the disk of node 7 is gone", "error"});
  expect_broken({"failed", "exit status 5: somebody pulled the plug", "error"}, "status_reason");
}

}  // namespace
}  // namespace tprimat::results
