#include "run/plan_summary.h"

#include <gtest/gtest.h>

#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

class PlanSummary : public SuiteTest {
 protected:
  PlannedRun first() {
    request_.own_program = "/usr/bin/tprimat";
    request_.presence = Presence::any;
    return plan_suite(experiment_, request_, machine_).runs.at(0);
  }
  static std::string summary_of(const PlannedRun& run) { return render_summary(run, forecast(run, {}, {})); }
  static void expect_line(const std::string& text, const std::string& line) {
    EXPECT_NE(text.find("#   " + line + "\n"), std::string::npos) << line << "\n" << text;
  }
};

TEST_F(PlanSummary, SaysWhatTrainsInADozenLines) {
  experiment_.optimizer.schedule = ScheduleKind::cosine;
  experiment_.optimizer.min_learning_rate = 1e-4;
  experiment_.optimizer.warmup_steps = 5;
  const PlannedRun run = first();
  const std::string text = summary_of(run);
  EXPECT_TRUE(text.starts_with("# native gpt on cpu, strategy single\n#   model          gpt (Tiny gpt): 115 008 "))
      << text;
  expect_line(text, "layout         TP 1, PP 1, CP 1, DP 1: 1 rank");
  expect_line(text, "batch          MBS 2 x GA 2 x DP 1 = GBS 4, sequences of 32 tokens");
  expect_line(text, "learning rate  0.001, cosine to 0.0001");
  expect_line(text, "warm-up        5 of 20 steps");
  expect_line(text, "precision      bf16, recompute none");
  expect_line(text, "data set       synthetic");
  expect_line(text, "result         " + run.plan.result_path);
  EXPECT_NE(text.find("#   memory         the heaviest rank needs"), std::string::npos) << text;
  EXPECT_NE(text.find("#   writes         " + output_.string() + "/runs/train_cpu_native_gpt: train_spec.json ("),
            std::string::npos)
      << text;
}

TEST_F(PlanSummary, SaysHowStateIsDividedAndWhatDeviates) {
  PlannedRun run = first();
  ParallelSpec& layout = run.spec.parallel;
  layout.tensor = 2, layout.data = 4, layout.virtual_pipeline = 2, layout.zero_stage = 1;
  layout.sequence_parallel = true;
  run.spec.global_batch_size = 16;
  run.spec.offload = Offload::optimizer;
  run.request.launch.nodes = 2;
  run.plan.deviations = {{"zero_stage", "0", "3", "it shards\ntouch mark"}};
  run.plan.mounts = {"/a:/b:ro"};
  const std::string text = summary_of(run);
  expect_line(text, "layout         TP 2, PP 1, VP 2, CP 1, DP 4, ZeRO-1, SP: 8 ranks on 2 nodes");
  expect_line(text, "batch          MBS 2 x GA 2 x DP 4 = GBS 16, sequences of 32 tokens");
  expect_line(text, "learning rate  0.001, constant");
  expect_line(text, "precision      bf16, recompute none, offload optimizer");
  expect_line(text, "deviates       zero_stage: 0 becomes 3, because it shards touch mark");
  expect_line(text, "mounts         /a:/b:ro");
}

TEST_F(PlanSummary, FilesAreOnALinePerFolder) {
  PlannedRun run = first();
  run.plan.files = {{"/x/a.json", std::string(1200, ' ')}, {"/x/y/b.py", "1"}, {"/x/c.json", ""}};
  const std::string text = summary_of(run);
  expect_line(text, "writes         /x: a.json (1.20 kB), c.json (0 B)");
  expect_line(text, "writes         /x/y: b.py (1 B)");
}

TEST_F(PlanSummary, TheWholeScriptHasTheFilesAndTheShortOneSaysHowToGetThem) {
  PlannedRun run = first();
  const Forecast known = forecast(run, {}, {});
  const std::string brief = render_dry_run(run, known, false), whole = render_dry_run(run, known, true);
  EXPECT_EQ(whole, render_summary(run, known) + render_shell(run.plan));
  EXPECT_NE(brief.find("--verbose"), std::string::npos) << brief;
  EXPECT_EQ(brief.find("cat >"), std::string::npos) << brief;
  EXPECT_TRUE(brief.ends_with(render_command(run.plan)));
  EXPECT_TRUE(render_shell(run.plan).ends_with(render_command(run.plan)));
  run.plan.files.clear();
  EXPECT_EQ(render_dry_run(run, known, false), render_dry_run(run, known, true));
}

}  // namespace
}  // namespace tprimat::suite
