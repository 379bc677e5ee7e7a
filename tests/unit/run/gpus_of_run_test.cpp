#include "run/gpus_of_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "run/telemetry_report.h"
#include "telemetry/sensors.h"
#include "unit/run/shared_gpu.h"

namespace tprimat::suite {
namespace {

class EightGpus : public SharedGpu {
 public:
  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> all;
    for (int64_t i = 0; i < 8; ++i) all.push_back({Platform::nvd, i, "H200", {}, {}, {}});
    return all;
  }
};

std::vector<std::string> watched_gpus(const PlannedRun& run) {
  std::vector<std::string> names;
  for (const auto& sensor : open_sensors({::getpid(), 1, {std::make_shared<EightGpus>()}, gpus_of(run)}))
    if (is_gpu_source(sensor->name())) names.push_back(sensor->name());
  return names;
}

TEST(GpusOfRun, AreThoseThatItsRanksTake) {
  PlannedRun run;
  run.platform = run.request.platform = Platform::nvd;
  run.spec.parallel.data = 2;
  EXPECT_EQ(watched_gpus(run), (std::vector<std::string>{"nvml:0", "nvml:1"}));
  run.request.settings.visible_devices = "5,3,1";
  EXPECT_EQ(watched_gpus(run), (std::vector<std::string>{"nvml:5", "nvml:3"}));
  run.request.launch.nodes = 2;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:5"});
  run.platform = run.request.platform = Platform::cpu;
  EXPECT_EQ(watched_gpus(run).size(), 8u);  // they are not the run's, and say who else works
}

TEST(GpusOfRun, ContainersDoNotInheritWhatIsVisible) {
  ::setenv("CUDA_VISIBLE_DEVICES", "6", 1);
  PlannedRun run;
  run.platform = run.request.platform = Platform::nvd;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:6"});
  run.plan.place = Whereabouts::this_machine;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:0"});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace tprimat::suite
