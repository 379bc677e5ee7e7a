#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "doctor/installer.h"
#include "doctor_fixture.h"
#include "unit/telemetry/folder_fixture.h"

namespace tprimat::suite {
namespace {

DoctorFacts machine_with(std::optional<Installation> installation, std::vector<Framework> asked) {
  DoctorFacts facts = sound_cpu_machine();
  facts.frameworks = {
      {Framework::native, "native C++ trainer", {Platform::cpu}, Installation{"0.1.0", "built in"}, "", {}},
      {Framework::tran,
       "HF Transformers",
       {Platform::nvd, Platform::cpu},
       std::move(installation),
       "run tprimat doctor --install tran",
       {}}};
  facts.request.frameworks = std::move(asked);
  return facts;
}

TEST(FrameworkChecks, WhatIsNotAskedForMayBeAbsent) {
  const auto findings = check_frameworks(machine_with(std::nullopt, {}));
  const auto found = find_finding(findings, "tran (HF Transformers) is not installed");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, MachineSeverity::note);
  EXPECT_EQ(found->remedy, "run tprimat doctor --install tran");
  EXPECT_TRUE(find_finding(findings, "native (native C++ trainer) 0.1.0, built in"));
}

TEST(FrameworkChecks, WhatIsAskedForIsMissing) {
  EXPECT_EQ(worst_of(check_frameworks(machine_with(std::nullopt, {Framework::tran}))), MachineSeverity::missing);
  const Installation installation{"5.0", "/opt/tran"};
  EXPECT_EQ(worst_of(check_frameworks(machine_with(installation, {Framework::tran}))), MachineSeverity::ok);
  const auto unknown = check_frameworks(machine_with(installation, {Framework::mgds}));
  EXPECT_EQ(severity_of(unknown, "this version cannot launch Megatron-DeepSpeed"), MachineSeverity::missing);
  DoctorFacts elsewhere = machine_with(installation, {Framework::native});
  elsewhere.request.platform = Platform::nvd;
  EXPECT_EQ(severity_of(check_frameworks(elsewhere), "does not run on NVIDIA"), MachineSeverity::missing);
}

TEST(FrameworkChecks, WhatIsInstalledMayLackAPart) {
  DoctorFacts facts = machine_with(std::nullopt, {});
  facts.frameworks[0].lacking = Problem{"native lacks libtprimat_nvd.so", "", "build it"};
  const auto noted = find_finding(check_frameworks(facts), "native lacks libtprimat_nvd.so");
  ASSERT_TRUE(noted);
  EXPECT_EQ(noted->severity, MachineSeverity::note);
  EXPECT_EQ(noted->remedy, "build it");
  facts.request.frameworks = {Framework::native};
  EXPECT_EQ(severity_of(check_frameworks(facts), "native lacks libtprimat_nvd.so"), MachineSeverity::missing);
}

TEST(GpuLibraryChecks, SayWhatTheTrainerWouldLackOnAGpu) {
  DoctorFacts facts = machine_with(std::nullopt, {});
  facts.gpu_libraries = {{"cuBLASLt", "matrix products", false, "", "", "cannot be loaded", "install it"},
                         {"cuDNN", "attention", true, "", "", "cannot be loaded", "pip install nvidia-cudnn-cu13"},
                         {"NCCL", "several ranks", true, "/lib/libnccl.so.2", "2.27.7", "", ""}};
  const auto findings = check_gpu_libraries(facts);
  EXPECT_EQ(severity_of(findings, "cuBLASLt (matrix products): cannot be loaded"), MachineSeverity::warning);
  EXPECT_EQ(severity_of(findings, "cuDNN (attention): cannot be loaded"), MachineSeverity::warning);
  EXPECT_EQ(severity_of(findings, "NCCL (several ranks): 2.27.7, /lib/libnccl.so.2"), MachineSeverity::ok);
  facts.request.frameworks = {Framework::native};
  EXPECT_EQ(severity_of(check_gpu_libraries(facts), "cuBLASLt (matrix products)"), MachineSeverity::missing);
  EXPECT_EQ(severity_of(check_gpu_libraries(facts), "cuDNN (attention)"), MachineSeverity::warning);
}

TEST(ToolChecks, NameThePackage) {
  DoctorFacts facts = sound_cpu_machine();
  facts.tools = {{"mpirun", "the native trainer on several ranks", "openmpi-bin", {}},
                 {"gnuplot", "plots", "gnuplot-nox", "/usr/bin/gnuplot"}};
  const auto findings = check_tools(facts);
  EXPECT_EQ(find_finding(findings, "no mpirun")->remedy, "sudo apt-get install openmpi-bin");
  EXPECT_EQ(severity_of(findings, "gnuplot, for plots"), MachineSeverity::ok);
}

TEST(Diagnosis, DecidesTheExitStatus) {
  DoctorFacts facts = sound_cpu_machine();
  EXPECT_EQ(exit_status_of(diagnose(facts)), ExitStatus::done);
  EXPECT_EQ(summarise(diagnose(facts)), "fit to measure");
  facts.host.busy_share = 0.9;
  facts.host.smt = true;
  EXPECT_EQ(exit_status_of(diagnose(facts)), ExitStatus::done);
  EXPECT_EQ(summarise(diagnose(facts)), "fit to measure, with 1 warning and 1 note");
  facts.output.writable = false;
  EXPECT_EQ(exit_status_of(diagnose(facts)), ExitStatus::work_failed);
  EXPECT_EQ(summarise(diagnose(facts)), "not fit to measure: 1 broken, with 1 warning and 1 note");
  facts.request.platform = Platform::amd;
  EXPECT_EQ(exit_status_of(diagnose(facts)), ExitStatus::missing_component);
}

TEST(Diagnosis, ShowsTheWorstOfAnAreaFirst) {
  DoctorFacts facts = sound_cpu_machine();
  facts.host.smt = true;
  facts.host.busy_share = 0.9;
  const std::string text = render_diagnosis(diagnose(facts), true);
  EXPECT_EQ(text,
            "fit to measure, with 1 warning and 1 note\n\nprocessor  warning  other processes keep 7.2 of 8 hardware "
            "threads busy\n                    -> wait, or stop them; `top` lists them\n           note     SMT is on: "
            "two threads on one core are slower than on two cores\n");
  EXPECT_NE(render_diagnosis(diagnose(facts), false).find("clock source: tsc"), std::string::npos);
}

class OneCommandRunner : public ProcessRunner {
 public:
  explicit OneCommandRunner(int code) : code_(code) {}
  std::unique_ptr<ChildProcess> start(const Command& command) override {
    seen = command;
    return std::make_unique<Child>(code_);
  }
  Command seen;

 private:
  class Child : public ChildProcess {
   public:
    explicit Child(int code) : code_(code) {}
    pid_t pid() const override { return 1; }
    std::optional<ExitReason> poll(double, const LineSink& sink) override {
      sink("installing");
      return ExitReason{ExitReason::Kind::exited, code_};
    }
    void stop() override {}

   private:
    int code_;
  };
  int code_;
};

using InstallerTest = FolderTest;

TEST_F(InstallerTest, WritesWhatTheProgramCarriesAndRunsIt) {
  OneCommandRunner runner(0);
  std::string heard;
  install_framework(Framework::tran, root_, runner, [&](std::string_view line) { heard += line; });
  EXPECT_EQ(runner.seen.argv, (std::vector<std::string>{"bash", (root_ / "setup.sh").string(), "tran"}));
  EXPECT_EQ(heard, "installing");
  const std::filesystem::path source = std::filesystem::path(TPRIMAT_SOURCE_DIR) / "frameworks";
  for (const char* file : {"setup.sh", "requirements/tran.txt", "requirements/deep.txt"})
    EXPECT_EQ(read_file(root_ / file), read_file(source / file)) << file;
}

TEST_F(InstallerTest, SaysWhatCannotBeInstalled) {
  OneCommandRunner failing(3);
  EXPECT_FALSE(can_install(Framework::native));
  for (const Framework framework : {Framework::native, Framework::tran}) {
    try {
      install_framework(framework, root_, failing, [](std::string_view) {});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      const bool known = framework == Framework::tran;
      EXPECT_EQ(error.status(), known ? ExitStatus::work_failed : ExitStatus::missing_component);
      EXPECT_NE(std::string(error.what()).find(known ? "exit status 3" : "no package list"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tprimat::suite
