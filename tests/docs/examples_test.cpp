// The examples of CONTRIBUTING.md do what the page says.
#include <gtest/gtest.h>

#include "extract/dialect.h"
#include "launch/frameworks.h"
#include "result/metrics.h"

namespace tprimat {

extern const Metric k_tokens_per_joule;
namespace logs {
Dialect acme_dialect();
}
namespace suite {
FrameworkModule acme_module();
}

namespace {

TEST(Example, ADialectReadsItsLineAndNothingElse) {
  const logs::Dialect dialect = logs::acme_dialect();
  const auto reader = dialect.make_reader();
  logs::LogBuilder log;
  int64_t number = 0;
  for (const std::string_view text : {"acme: step=12 loss=3.4567 seconds=0.512", "acme: step=13 loss=nan",
                                      "acme: step=x loss=1", "acme: step=-4 loss=1", "acme: step="})
    EXPECT_FALSE(reader->read_line(logs::LogLine{.text = text, .number = ++number}, log));
  ASSERT_EQ(log.log().steps.size(), 2U);
  const logs::ExtractedStep &first = log.log().steps[0], &second = log.log().steps[1];
  EXPECT_EQ(first.step, 12);
  EXPECT_EQ(*first.loss, 3.4567);
  EXPECT_EQ(*first.time_seconds, 0.512);
  EXPECT_TRUE(std::isnan(*second.loss));
  EXPECT_FALSE(second.time_seconds);
  EXPECT_EQ(second.time_source, TimeSource::none);
  EXPECT_GT(reader->confidence(log.log()), 0.9);
}

TEST(Example, AMetricIsReadOrAbsent) {
  RunResult run;
  EXPECT_FALSE(k_tokens_per_joule.read(run));
  run.derived.joules_per_token = Estimate{0.25, {}, {}};
  EXPECT_EQ(k_tokens_per_joule.read(run)->value, 4);
}

TEST(Example, AFrameworkStartsItsTrainingAndRefusesTheRest) {
  const suite::FrameworkModule module = suite::acme_module();
  EXPECT_FALSE(module.find({}));
  suite::LaunchRequest request;
  request.checkout.installation = "/opt/acme";
  request.platform = Platform::nvd;
  request.spec.steps = 7;
  request.paths = {"/tmp/run", "/tmp/run.log", "/tmp/run.json", "/"};
  ASSERT_TRUE(module.find(request.checkout));
  const suite::LaunchPlan plan = suite::plan_launch(module, request);
  EXPECT_EQ(plan.working_directory, "/opt/acme");
  const auto& command = plan.command;
  const auto at = std::find(command.begin(), command.end(), "--steps");
  ASSERT_NE(at, command.end());
  EXPECT_EQ(at[1], "7");
  request.spec.parallel.pipeline = 2;
  EXPECT_THROW(suite::plan_launch(module, request), Error);
}

}  // namespace
}  // namespace tprimat
