#include "run/peak_source.h"

#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

TEST_F(SuiteTest, OfAGpuInTheCatalogueTheConfiguredPeakCountsOnlyOnRequest) {
  put_gpu();
  PlannedRun planned = plan({}).runs.front();
  planned.setup.peak_flops_override[Precision::bf16] = 494e12;
  const SuiteContext context = around();
  SilentReporter reporter;
  PeakSource source(context, reporter);
  EXPECT_EQ(source.find(planned)->peak.id, "catalogue:H200-SXM-141GB:bf16");
  planned.setup.peak_origin = PeakOrigin::mine;
  EXPECT_EQ(source.find(planned)->peak.flops_per_second, 494e12);
  EXPECT_TRUE(source.find(planned)->peak.id.starts_with("config:"));
}

TEST_F(SuiteTest, AConfiguredPeakDoesNotCountOnAnotherGpu) {
  put_gpu();
  PlannedRun planned = plan({}).runs.front();
  planned.setup.peak_flops_override[Precision::bf16] = 494e12;
  planned.setup.peak_origin = PeakOrigin::mine;
  machine_.gpus.front().name = "NVIDIA H100 80GB HBM3";
  const SuiteContext context = around();
  SilentReporter reporter;
  PeakSource source(context, reporter);
  const auto found = source.find(planned);
  EXPECT_EQ(found->peak.id, "catalogue:H100-SXM-80GB:bf16");
  EXPECT_EQ(found->warning,
            "the configuration's peak is that of H200, but this machine has NVIDIA H100 80GB HBM3: MFU uses the "
            "hardware catalogue's");
  planned.setup.device_model = "H100";
  EXPECT_EQ(source.find(planned)->peak.flops_per_second, 494e12);
}

TEST_F(SuiteTest, AConfiguredPeakCountsUnderAPartOfTheName) {
  put_gpu();
  PlannedRun planned = plan({}).runs.front();
  planned.setup.peak_flops_override[Precision::bf16] = 300e12;
  planned.setup.peak_origin = PeakOrigin::mine;
  planned.setup.device_model = "A100";  // of which the catalogue has several
  machine_.gpus.front().name = "NVIDIA A100-SXM4-80GB";
  const SuiteContext context = around();
  SilentReporter reporter;
  EXPECT_EQ(PeakSource(context, reporter).find(planned)->peak.flops_per_second, 300e12);
}

}  // namespace
}  // namespace tprimat::suite
