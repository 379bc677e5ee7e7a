#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "launch/installed.h"
#include "run/outcome.h"
#include "run/version_notes.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

// Two checkouts of Megatron-LM on a machine with one NVIDIA GPU, and two environments of Transformers.
class InstallationsTest : public SuiteTest {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    ::setenv("TPRIMAT_FRAMEWORKS", (output_ / "frameworks").c_str(), 1);
    put_gpu();
    add_megatron("a", 15);
    add_megatron("b", 16);
    setup(Framework::mega).installations = {{"a", (output_ / "a").string(), "", ""},
                                            {"b", (output_ / "b").string(), "", ""}};
    request_.platform = Platform::nvd;
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    SuiteTest::TearDown();
  }

  FrameworkSetup& setup(Framework framework) { return experiment_.framework_setups[framework]; }
  void add_megatron(const std::string& name, int minor) const {
    write_file_atomically(output_ / name / "pretrain_gpt.py", "# not run\n");
    write_file_atomically(output_ / name / "megatron/core/package_info.py",
                          "MAJOR = 0\nMINOR = " + std::to_string(minor) + "\nPATCH = 1\n");
  }
  SuitePlan plan_suite_of(const std::vector<FrameworkChoice>& frameworks) {
    request_.frameworks = frameworks;
    return plan_suite(experiment_, request_, machine_);
  }
  std::string refusal(const std::vector<FrameworkChoice>& frameworks, ExitStatus status = ExitStatus::usage) {
    try {
      plan_suite_of(frameworks);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      return error.what();
    }
    return "nothing";
  }

  const FrameworkChoice a_{Framework::mega, "a"}, b_{Framework::mega, "b"};
};

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

TEST_F(InstallationsTest, AlternateUnderNamesOfTheirOwn) {
  experiment_.runs = 2;
  const SuitePlan suite = plan_suite_of({a_, b_});
  std::vector<std::string> results, logs;
  for (const PlannedRun& run : suite.runs) {
    results.push_back(name_of(run.plan.result_path));
    logs.push_back(name_of(run.plan.log_path));
  }
  EXPECT_EQ(results, (std::vector<std::string>{"train_nvd_mega@a_gpt_r1.json", "train_nvd_mega@b_gpt_r1.json",
                                               "train_nvd_mega@a_gpt_r2.json", "train_nvd_mega@b_gpt_r2.json"}));
  EXPECT_EQ(logs[1], "training_mega@b_gpt_r1.log");
  EXPECT_EQ(describe(suite.runs[1]), "mega@b gpt on nvd, strategy single, run 1 of 2");
}

TEST_F(InstallationsTest, AreStartedFromTheirFoldersAndHashedApart) {
  const SuitePlan suite = plan_suite_of({a_, b_, Framework::mega});
  ASSERT_EQ(suite.runs.size(), 3u);
  const PlannedRun &a = suite.runs[0], &b = suite.runs[1], &other = suite.runs[2];
  EXPECT_EQ(a.plan.working_directory, (output_ / "a").string());
  EXPECT_EQ(b.plan.working_directory, (output_ / "b").string());
  EXPECT_EQ(a.framework_version, "0.15.1");
  EXPECT_EQ(b.framework_version, "0.16.1");
  EXPECT_EQ(a.launch_facts.installation, (InstallationFacts{"a", (output_ / "a").string(), {}, {}}));
  EXPECT_NE(a.config_hash, b.config_hash);
  EXPECT_FALSE(other.installation);
  EXPECT_FALSE(other.launch_facts.installation);
}

TEST_F(InstallationsTest, AnUnknownOneIsRefusedWithTheKnownOnes) {
  const std::string text = refusal({{Framework::mega, "c"}, a_});
  EXPECT_NE(text.find("--framework: mega has no installation 'c'; it has a, b"), std::string::npos) << text;
  EXPECT_NE(refusal({{Framework::mgds, "a"}}).find("has no installations of mgds, so there is no mgds@a"),
            std::string::npos);
  EXPECT_NE(refusal({a_, a_}).find("'mega@a' is named twice"), std::string::npos);
}

TEST_F(InstallationsTest, WithoutTheFrameworkIsNamed) {
  request_.presence = Presence::installed;
  setup(Framework::mega).installations[1].folder = "/nowhere";
  SuitePlan suite = plan_suite_of({a_, b_});
  EXPECT_EQ(suite.runs.size(), 1u);
  ASSERT_EQ(suite.unavailable.size(), 1u);
  EXPECT_EQ(suite.unavailable[0].what, "there is no Megatron-LM in /nowhere");
  EXPECT_EQ(suite.unavailable[0].where, "frameworks.mega.installations.b");
  EXPECT_NE(refusal({b_}, ExitStatus::missing_component).find("there is no Megatron-LM in /nowhere"),
            std::string::npos);
}

TEST_F(InstallationsTest, OfAnImageNeedALauncherThatStartsOne) {
  setup(Framework::mega).installations[1] = {"b", "/workspace/Megatron-LM", "rocm/megatron-lm:v25.9", "/opt/py"};
  EXPECT_NE(refusal({a_, b_}).find("mega@b is an image, but the launcher local starts no container"),
            std::string::npos);
  experiment_.launch.launcher = Launcher::docker;
  experiment_.launch.docker.image = "ours:1";
  const SuitePlan suite = plan_suite_of({a_, b_});
  ASSERT_EQ(suite.runs.size(), 2u);
  const auto holds = [](const PlannedRun& run, const std::string& word) {
    return std::ranges::count(run.plan.command, word) > 0;
  };
  EXPECT_TRUE(holds(suite.runs[0], "ours:1"));
  EXPECT_TRUE(holds(suite.runs[0], (output_ / "a").string() + ":" + (output_ / "a").string()) ||
              holds(suite.runs[0], output_.string() + ":" + output_.string()))
      << "a checkout of this machine is mounted";
  EXPECT_TRUE(holds(suite.runs[1], "rocm/megatron-lm:v25.9"));
  EXPECT_TRUE(holds(suite.runs[1], "/opt/py"));
  EXPECT_TRUE(holds(suite.runs[1], "/workspace/Megatron-LM/pretrain_gpt.py"));
  EXPECT_FALSE(holds(suite.runs[1], "/workspace/Megatron-LM:/workspace/Megatron-LM"));
  EXPECT_FALSE(suite.runs[1].framework_version) << "the image has it";
}

TEST_F(InstallationsTest, OfSlurmAreImagesOfPyxis) {
  setup(Framework::mega).installations[1] = {"b", "", "b.sqsh", ""};
  experiment_.launch.launcher = Launcher::slurm;
  experiment_.launch.slurm.start = SlurmStart::srun;
  const SuitePlan suite = plan_suite_of({b_});
  EXPECT_EQ(std::ranges::count(suite.runs.at(0).plan.command, "--container-image=b.sqsh"), 1);
}

// The environment of this machine would not run there, and its image's Python would run for both.
TEST_F(InstallationsTest, APythonEnvironmentDoesNotGoIntoAContainer) {
  setup(Framework::tran).installations = {{"a", "/opt/a", "", ""}, {"b", "/opt/b", "tran:2", ""}};
  experiment_.launch.launcher = Launcher::docker;
  const std::string text = refusal({{Framework::tran, "a"}});
  EXPECT_NE(text.find("tran@a is a Python environment of this machine, but the launcher docker starts an image"),
            std::string::npos)
      << text;
  const SuitePlan suite = plan_suite_of({{Framework::tran, "b"}});
  EXPECT_EQ(std::ranges::count(suite.runs.at(0).plan.command, "/opt/b/bin/python3"), 1);
}

TEST_F(InstallationsTest, AProfileIsNamedAfterIt) {
  request_.profile = ProfileRequest();
  EXPECT_EQ(name_of(plan_suite_of({a_}).runs.at(0).profile->trace), "profile_cuda_gpt_single_mega@a");
}

TEST_F(InstallationsTest, WhatBothRefuseIsSaidOnce) {
  experiment_.platforms[Platform::nvd].precision = Precision::tf32;
  request_.frameworks = {a_, b_, Framework::native};
  const SuitePlan suite = plan_suite(experiment_, request_, machine_);
  EXPECT_EQ(suite.unavailable.size(), 1u);
}

TEST_F(InstallationsTest, AVersionThatWasNotCheckedIsSaidOnce) {
  experiment_.runs = 2;
  const auto problems = list_unchecked_versions(plan_suite_of({a_, b_}));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "mega@a");
  EXPECT_NE(problems[0].what.find("Megatron-LM 0.15.1 is installed, but the plan was checked against 0.16.1"),
            std::string::npos);
  const SuitePlan suite = plan_suite_of({a_, Framework::native});
  EXPECT_TRUE(describe_version(suite.runs[0]).starts_with("checked against: Megatron-LM 0.16.1"))
      << describe_version(suite.runs[0]);
  EXPECT_TRUE(describe_version(suite.runs[0]).ends_with("; installed: 0.15.1"));
  EXPECT_EQ(describe_version(suite.runs.back()), "");
}

TEST_F(InstallationsTest, ResultsStateLabelAndVersionAndWarn) {
  const SuiteReport report = run([&] {
    SuitePlan suite = plan_suite_of({a_, b_});
    for (PlannedRun& planned : suite.runs) {
      planned.plan.command = {FAKE_TRAINER, std::to_string(planned.spec.steps), "5"};
      planned.plan.environment["TPRIMAT_STEPS"] = planned.plan.steps_path =
          planned.request.paths.folder + "/steps.jsonl";
      planned.plan.working_directory = output_.string();
    }
    return suite;
  }());
  ASSERT_EQ(report.outcomes.size(), 2u);
  EXPECT_EQ(report.outcomes[0].installation, "a");
  EXPECT_NE(render_report(report).find("mega@b"), std::string::npos);
  const auto warns = [](const RunOutcome& outcome) {
    return std::ranges::any_of(outcome.warnings, [](const std::string& warning) {
      return warning.find("the plan was checked against") != std::string::npos;
    });
  };
  EXPECT_TRUE(warns(report.outcomes[0]));
  EXPECT_FALSE(warns(report.outcomes[1]));
  const std::string text = file_text(report.outcomes[0].result_path);
  EXPECT_NE(text.find("\"framework_installation\": \"a\""), std::string::npos);
  EXPECT_NE(text.find("\"framework_version\": \"0.15.1\""), std::string::npos);
}

}  // namespace
}  // namespace tprimat::suite
