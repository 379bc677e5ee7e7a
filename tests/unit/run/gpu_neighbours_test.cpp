#include "run/gpus_of_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "unit/run/shared_gpu.h"

namespace tprimat::suite {
namespace {

TEST(GpuNeighbours, AreThoseBeforeAndThoseLeft) {
  const auto gpu = std::make_shared<SharedGpu>();
  const std::vector<std::shared_ptr<const GpuLibrary>> libraries = {gpu};
  const GpuNeighbours alone(libraries, Platform::nvd);
  EXPECT_TRUE(alone.report(0.0).empty());
  gpu->holders_ = {{999999901, 2e9}, {::getpid(), 1e9}};
  EXPECT_EQ(alone.report(0.0),
            std::vector<std::string>{"new processes still hold GPU memory after the run: process 999999901 on GPU 0, "
                                     "2.00 GB"});
  EXPECT_EQ(
      GpuNeighbours(libraries, Platform::nvd).report(0.0),
      std::vector<std::string>{"other processes held GPU memory when the run started and may have slowed it down: "
                               "process 999999901 on GPU 0, 2.00 GB"});
  EXPECT_TRUE(GpuNeighbours(libraries, Platform::cpu).report(0.0).empty());
}

}  // namespace
}  // namespace tprimat::suite
