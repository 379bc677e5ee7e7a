#include "why/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "unit/why/sample_traces.h"
#include "why/make_ledger.h"

namespace tprimat::results {
namespace {

SideInput side(const std::string& label) {
  SideInput input{.label = label};
  input.ranks.push_back(sample_trace(sample_step()));
  return input;
}

RunResult result_of(const SideInput& input, const std::string& recompute) {
  RunResult result;
  result.model_info.name = "sample";
  const double step = static_cast<double>(input.ranks[0].marks[0].span.length()) * 1e-9;
  StepStatistics statistics;
  statistics.count = 20, statistics.mean = statistics.median = step;
  statistics.ci95_low = 0.99 * step, statistics.ci95_high = 1.01 * step;
  result.statistics = statistics;
  result.step_times.assign(20, step);
  result.training_config.recompute = recompute;
  return result;
}

bool has_note(const Ledger& ledger, const std::string& text) {
  return std::ranges::find(ledger.notes, text) != ledger.notes.end();
}

TEST(MakeLedger, RefusesASideWithoutATrace) { EXPECT_THROW(make_ledger({"A"}, {"B"}), Error); }

// ROCm numbers the devices of the machine and lists those of the process.
TEST(MakeLedger, NamesADeviceThatTheTraceListsByAnotherNumber) {
  SideInput a = side("A");
  a.ranks[0].device_names = {{7, "AMD Instinct MI300X"}};
  EXPECT_EQ(make_ledger(a, side("B")).a.device, "AMD Instinct MI300X");
}

TEST(MakeLedger, SaysWhyItNamesNoCause) {
  const Ledger ledger = make_ledger(side("A"), side("B"));
  EXPECT_TRUE(has_note(ledger, "no cause is named: the 95 % interval of the gap includes zero"));
  EXPECT_TRUE(ledger.findings.empty());
}

TEST(MakeLedger, StatesSettingsThatDifferWithoutACause) {
  SideInput a = side("A"), b = side("B");
  a.result = result_of(a, "none"), b.result = result_of(b, "full");
  EXPECT_TRUE(has_note(make_ledger(a, b), "the settings differ: recompute none in A, full in B"));
}

}  // namespace
}  // namespace tprimat::results
