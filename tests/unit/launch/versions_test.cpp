#include <gtest/gtest.h>

#include <algorithm>

#include "launch/container.h"
#include "launch/frameworks.h"

namespace tprimat::suite {
namespace {

const FrameworkModule& module_of(Framework framework) { return *find_framework(framework); }

TEST(CheckedVersions, AreStatedByEveryUpstreamFramework) {
  for (const FrameworkModule& module : framework_modules()) {
    const bool states = !module.checked.program.empty();
    EXPECT_EQ(states, module.id != Framework::native && !module.checked.versions.empty()) << module.long_name;
    for (const std::string_view version : module.checked.versions) {
      EXPECT_FALSE(version.empty());
      EXPECT_FALSE(find_unchecked_version(module, std::string(version))) << version;
    }
  }
  EXPECT_EQ(describe_checked(module_of(Framework::native)), "");
  EXPECT_EQ(describe_checked(module_of(Framework::deep)),
            "DeepSpeed 0.19.8 (with PyTorch 2.13.0, Transformers 5.23.0)");
}

TEST(CheckedVersions, AnotherOneIsSaid) {
  const auto warning = find_unchecked_version(module_of(Framework::mega), "0.15.0");
  ASSERT_TRUE(warning);
  EXPECT_TRUE(warning->starts_with("Megatron-LM 0.15.0 is installed, but the plan was checked against 0.16.1"))
      << *warning;
  EXPECT_TRUE(find_unchecked_version(module_of(Framework::fsdp), "2.13.1"));
  EXPECT_FALSE(find_unchecked_version(module_of(Framework::native), "0.2.0")) << "its plan is its own";
}

TEST(CheckedVersions, ABuildForOneAcceleratorIsTheSame) {
  EXPECT_FALSE(find_unchecked_version(module_of(Framework::fsdp), "2.13.0+rocm7.2"));
}

TEST(CheckedVersions, OfACommitTheFirstDigitsCount) {
  const FrameworkModule& primus = module_of(Framework::prim);
  EXPECT_FALSE(find_unchecked_version(primus, "93acc72f0b1c"));
  EXPECT_TRUE(find_unchecked_version(primus, "93acc7aaaaaa"));
}

TEST(CheckedVersions, WhatIsNotKnownIsNotJudged) {
  EXPECT_FALSE(find_unchecked_version(module_of(Framework::mgds), ""));
  EXPECT_FALSE(find_unchecked_version(module_of(Framework::mgds), std::string(k_unknown_version)));
}

TEST(Checkouts, OfAnImageAreNotMounted) {
  LaunchRequest request;
  request.paths.folder = "/out/runs/x";
  request.checkout.installation = "/workspace/Megatron-LM";
  const auto is_mounted = [&] { return std::ranges::count(folders_needed(request), "/workspace/Megatron-LM") == 1; };
  EXPECT_TRUE(is_mounted());
  request.checkout.in_image = true;
  EXPECT_FALSE(is_mounted());
}

}  // namespace
}  // namespace tprimat::suite
