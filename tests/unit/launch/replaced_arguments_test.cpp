#include "launch/replaced_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launch/frameworks.h"
#include "unit/launch/changes.h"

namespace tprimat::suite {
namespace {

using Words = std::vector<std::string>;

std::string replaced(const Words& planned, const Words& added) {
  std::string text;
  for (const Deviation& each : list_replaced_arguments(planned, added, "here"))
    text += each.key + ": " + each.asked + " -> " + each.effective + " (" + each.reason + ")\n";
  return text;
}

TEST(ReplacedArguments, AreFlagsWithAnotherValue) {
  const Words planned = {"pretrain_gpt.py", "--lr", "0.0003", "--bf16", "--split", "100,0,0", "--data-path", "a"};
  EXPECT_EQ(replaced(planned, {"--distributed-backend", "gloo", "--transformer-impl", "local"}), "");
  EXPECT_EQ(replaced(planned, {"--lr", "0.001"}), "--lr: 0.0003 -> 0.001 (here states it)\n");
  EXPECT_EQ(replaced(planned, {"--lr=0.001"}), "--lr: 0.0003 -> 0.001 (here states it)\n");
  EXPECT_EQ(replaced(planned, {"--lr", "3e-4", "--bf16"}), "") << "the same value, the same switch";
  EXPECT_EQ(replaced(planned, {"--lr", "1", "--lr", "0.0003"}), "") << "the last one holds";
  EXPECT_EQ(replaced(planned, {"--data-path", "a", "b"}), "--data-path: a -> a b (here states it)\n");
  EXPECT_EQ(replaced({}, {"stray", "--x"}), "");
}

LaunchPlan plan_with(Framework framework, const Words& arguments) {
  LaunchRequest request = base_request(Platform::nvd);
  request.arguments = arguments;
  return plan_launch(require_framework(framework, Platform::nvd), request);
}

// Megatron's argparse takes the last of several values.
TEST(ReplacedArguments, FollowThePlansOwnAndAreDeviations) {
  for (const Framework framework : {Framework::mega, Framework::mgds}) {
    const LaunchPlan plan = plan_with(framework, {"--distributed-backend", "gloo", "--seq-length", "1024"});
    const Words tail(plan.command.end() - 4, plan.command.end());
    EXPECT_EQ(tail, (Words{"--distributed-backend", "gloo", "--seq-length", "1024"}));
    EXPECT_EQ(std::ranges::count(plan.command, "--seq-length"), 2);
    ASSERT_FALSE(plan.deviations.empty());
    const Deviation& last = plan.deviations.back();
    EXPECT_EQ(last.key, "--seq-length");
    EXPECT_EQ(last.asked, "2048");
    EXPECT_EQ(last.effective, "1024");
    EXPECT_EQ(last.reason, "frameworks." + std::string(enum_name(framework)) + ".arguments states it");
  }
}

TEST(ReplacedArguments, OfOurTrainerAreThoseOfItsSpecification) {
  const LaunchPlan plan = plan_with(Framework::native, {"--steps", "7", "--profile", "--device", "cpu"});
  ASSERT_EQ(plan.deviations.size(), 2u);
  EXPECT_EQ(plan.deviations[0].key, "--steps");
  EXPECT_EQ(plan.deviations[0].asked, "100");
  EXPECT_EQ(plan.deviations[1].key, "--device");
  EXPECT_EQ(plan.deviations[1].asked, "nvd");
  EXPECT_TRUE(plan_with(Framework::native, {"--steps", "100"}).deviations.empty());
}

}  // namespace
}  // namespace tprimat::suite
