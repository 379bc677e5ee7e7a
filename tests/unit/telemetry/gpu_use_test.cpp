#include "telemetry/gpu_libraries.h"

#include <gtest/gtest.h>

#include <map>

namespace tprimat {
namespace {

using Variables = std::map<std::string, std::string>;

std::vector<int64_t> used_numbers(Platform platform, const Variables& variables, int64_t count = 100) {
  std::vector<GpuFacts> devices;
  for (const int64_t index : {0, 2, 3, 7})
    devices.push_back({platform, index, "some", {}, {}, {}});  // 1 does not answer
  const GpuUse use{platform,
                   [&](const std::string& name) {
                     const auto found = variables.find(name);
                     return found != variables.end() ? std::optional(found->second) : std::nullopt;
                   },
                   count};
  std::vector<int64_t> numbers;
  for (const GpuFacts& gpu : used_gpus(devices, use)) numbers.push_back(gpu.index);
  return numbers;
}

TEST(GpuUse, ListsCountTheDevicesThatAnswer) {
  using Numbers = std::vector<int64_t>;
  const auto nvidia = [](const std::string& list) {
    return used_numbers(Platform::nvd, {{"CUDA_VISIBLE_DEVICES", list}, {"HIP_VISIBLE_DEVICES", "0"}});
  };
  EXPECT_EQ(used_numbers(Platform::nvd, {}), (Numbers{0, 2, 3, 7}));
  EXPECT_EQ(used_numbers(Platform::nvd, {}, 2), (Numbers{0, 2}));
  EXPECT_EQ(nvidia("3,1"), (Numbers{7, 2}));
  EXPECT_EQ(nvidia(" 1 , 2 "), (Numbers{2, 3}));
  EXPECT_EQ(nvidia(""), Numbers{});
  EXPECT_EQ(nvidia("1,9,2"), Numbers{2});  // CUDA sees nothing from the first wrong number on
  EXPECT_EQ(nvidia("-1"), Numbers{});
  EXPECT_EQ(nvidia("GPU-8932f937"), (Numbers{0, 2, 3, 7}));
  EXPECT_EQ(nvidia("99999999999999999999"), (Numbers{0, 2, 3, 7}));
}

TEST(GpuUse, OnAmdTheListsCountOneInTheOther) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(used_numbers(Platform::amd, {{"ROCR_VISIBLE_DEVICES", "3,2,1"}, {"HIP_VISIBLE_DEVICES", "2,0"}}),
            (Numbers{2, 7}));
  EXPECT_EQ(used_numbers(Platform::amd, {{"HIP_VISIBLE_DEVICES", "1"}, {"CUDA_VISIBLE_DEVICES", "2"}}), Numbers{2});
  EXPECT_EQ(used_numbers(Platform::amd, {{"CUDA_VISIBLE_DEVICES", "2"}}), Numbers{3});
}

TEST(GpuUse, OtherPlatformsAreNotUsed) {
  const GpuUse use{Platform::nvd, [](const std::string&) { return std::nullopt; }};
  EXPECT_TRUE(used_gpus({{Platform::amd, 0, "some", {}, {}, {}}}, use).empty());
}

}  // namespace
}  // namespace tprimat
