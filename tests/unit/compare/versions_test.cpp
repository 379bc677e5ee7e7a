#include "compare/versions.h"

#include <gtest/gtest.h>

#include "compare/compare_runs.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

LoadedRun version(const std::string& file, const std::string& label, const std::string& installed, double step_time) {
  LoadedRun run = sample_run(file, Platform::nvd, Framework::mega, step_time);
  if (!label.empty()) run.result.framework_installation = label;
  if (!installed.empty()) run.result.framework_version = installed;
  return run;
}

Comparison compare(std::vector<LoadedRun> runs) { return compare_runs({std::move(runs), {}}, {}); }

TEST(Versions, AreNamedByTheirLabels) {
  const Comparison comparison = compare({version("a.json", "a", "0.15.0", 0.421), version("b.json", "b", "", 0.627)});
  const ModelGroup& group = comparison.groups.at(0);
  EXPECT_EQ(group.contenders[0].label, "mega@a");
  EXPECT_EQ(group.contenders[1].label, "mega@b");
  EXPECT_TRUE(group.pairs.at(0).versions);
  const std::string sentence = headline(comparison, group, group.pairs[0]);
  EXPECT_TRUE(sentence.starts_with("mega@a is 1.4")) << sentence;
  EXPECT_NE(sentence.find("two versions of Megatron-LM, not two platforms: a step takes 421.0 ms with mega@a and "
                          "627.0 ms with mega@b"),
            std::string::npos)
      << sentence;
}

TEST(Versions, WithoutLabelsAreNamedByTheVersionThatRan) {
  const auto group = compare({version("x/a.json", "", "0.15.0", 1), version("y/a.json", "", "0.16.1", 1)}).groups.at(0);
  EXPECT_EQ(group.contenders[0].label, "mega@0.15.0");
  EXPECT_EQ(group.contenders[1].label, "mega@0.16.1");
}

TEST(Versions, AreTheSubjectAndNoFault) {
  const Comparison comparison = compare({version("a.json", "a", "0.15.0", 1), version("b.json", "b", "0.16.1", 1.2)});
  const Pair& pair = comparison.groups.at(0).pairs.at(0);
  const Finding* finding = find_code(pair.findings, "versions");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::note);
  EXPECT_EQ(finding->sentence,
            "two versions of one framework are compared, not two platforms: installation a against b, version 0.15.0 "
            "against 0.16.1");
  EXPECT_EQ(find_code(pair.findings, "software"), nullptr);
  EXPECT_TRUE(pair.comparable);
  EXPECT_EQ(comparison_status(comparison), ExitStatus::done);
}

TEST(Versions, ImagesAreShown) {
  LoadedRun a = version("a.json", "a", "", 1), b = version("b.json", "b", "", 1);
  a.result.environment["container_image"] = "megatron:25.9", b.result.environment["container_image"] = "megatron:26.1";
  EXPECT_EQ(find_versions(a.result, b.result).back().subject, "megatron:26.1");
}

TEST(Versions, OneVersionIsNone) {
  LoadedRun a = version("a.json", "", "0.16.1", 1), b = version("b.json", "", "0.16.1", 1);
  EXPECT_TRUE(find_versions(a.result, b.result).empty());
  b.result.framework_version.reset();
  EXPECT_TRUE(find_versions(a.result, b.result).empty()) << "what is not known does not differ";
  b.result.framework_version = "not known";
  EXPECT_TRUE(find_versions(a.result, b.result).empty());
  EXPECT_EQ(version_name(b.result), "mega");
}

TEST(Versions, OnAnotherDeviceOrPlatformAreNot) {
  LoadedRun a = version("a.json", "a", "0.15.0", 1), b = version("b.json", "b", "0.16.1", 1);
  b.result.gpu_info.device_name = "NVIDIA H200";
  EXPECT_TRUE(find_versions(a.result, b.result).empty());
  const auto group = compare({a, b}).groups.at(0);
  EXPECT_FALSE(group.pairs.at(0).versions);
  EXPECT_NE(find_code(group.pairs[0].findings, "hardware_and_software"), nullptr);
}

TEST(Versions, OnTwoPlatformsAreNamedWithTheirs) {
  std::vector<LoadedRun> runs = {version("a.json", "a", "", 1), version("b.json", "b", "", 1)};
  runs.push_back(sample_run("c.json", Platform::amd, Framework::prim, 1));
  const auto contenders = compare(runs).groups.at(0).contenders;
  EXPECT_EQ(contenders[0].label, "NVIDIA mega@a");
  EXPECT_EQ(contenders[1].label, "NVIDIA mega@b");
  EXPECT_EQ(contenders[2].label, "AMD Primus");
}

TEST(Versions, OneLabelOfTwoVersionsShowsThese) {
  const auto contenders =
      compare({version("x/a.json", "a", "0.15.0", 1), version("y/a.json", "a", "0.16.1", 1)}).groups.at(0).contenders;
  EXPECT_EQ(contenders[0].label, "mega@a 0.15.0");
  EXPECT_EQ(contenders[1].label, "mega@a 0.16.1");
}

TEST(Versions, AreABaselineByName) {
  const Comparison comparison =
      compare_runs({{version("a.json", "a", "", 1), version("b.json", "b", "", 1)}, {}}, {.baseline = "mega@b"});
  EXPECT_EQ(comparison.groups.at(0).contenders[0].label, "mega@b");
}

// The same name in one folder, but another installation: no repetition.
TEST(Versions, AreNoRepetitionsOfOneAnother) {
  const auto group = compare({version("a_r1.json", "a", "", 1), version("a_r2.json", "b", "", 1)}).groups.at(0);
  EXPECT_EQ(group.contenders.size(), 2u);
}

}  // namespace
}  // namespace tprimat::results
