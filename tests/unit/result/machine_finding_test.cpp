#include "result/machine_finding.h"

#include <gtest/gtest.h>

#include "result/result_file.h"
#include "unit/result/sample_result.h"

namespace tprimat {
namespace {

MachineFinding finding(MachineSeverity severity, const std::string& code) {
  return {severity, "processor", "what " + code, "remedy", code};
}

TEST(DoctorReport, KeepsWarningsTheWorstFirstAndCountsTheOthers) {
  const DoctorReport report = make_doctor_report(
      {finding(MachineSeverity::ok, ""), finding(MachineSeverity::warning, "a"), finding(MachineSeverity::broken, "b"),
       finding(MachineSeverity::note, ""), finding(MachineSeverity::warning, "c")});
  EXPECT_EQ(report.passed, 2);
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0].code, "b");
  EXPECT_EQ(report.findings[1].code, "a");
  EXPECT_EQ(report.findings[2].code, "c");
  EXPECT_FALSE(report.left_out);
}

TEST(DoctorReport, IsBounded) {
  std::vector<MachineFinding> many(100, finding(MachineSeverity::warning, "gpu_shared"));
  many.push_back(finding(MachineSeverity::broken, "gpu_errors"));
  many[0].what = std::string(298, 'x') + "\u00e4\u00e4" + std::string(9000, 'y');
  const DoctorReport report = make_doctor_report(many);
  EXPECT_EQ(report.findings.size(), 32u);
  EXPECT_EQ(report.left_out, 69);
  EXPECT_EQ(report.findings[0].code, "gpu_errors");
  EXPECT_EQ(report.findings[1].what, std::string(297, 'x') + "...");
  many[0].what = std::string(296, 'x') + "\u00e4\u00e4" + std::string(9000, 'y');
  EXPECT_EQ(make_doctor_report(many).findings[1].what, std::string(296, 'x') + "...") << "no half of a character";
}

TEST(DoctorReport, IsReadBackAsWritten) {
  RunResult result = sample_result();
  EXPECT_FALSE(run_result_to_json(result).contains("doctor"));
  result.doctor = make_doctor_report({finding(MachineSeverity::warning, "governor")});
  const RunResult again = run_result_from_json(run_result_to_json(result), "r.json");
  ASSERT_TRUE(again.doctor);
  ASSERT_EQ(again.doctor->findings.size(), 1u);
  EXPECT_EQ(again.doctor->findings[0].code, "governor");
  EXPECT_EQ(again.doctor->findings[0].severity, MachineSeverity::warning);
}

TEST(MachineFinding, IsDescribedInALine) {
  EXPECT_EQ(describe(finding(MachineSeverity::warning, "x")), "processor: what x -> remedy");
  EXPECT_EQ(describe({MachineSeverity::warning, "memory", "little", "", {}}), "memory: little");
}

}  // namespace
}  // namespace tprimat
