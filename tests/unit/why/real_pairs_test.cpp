#include <gtest/gtest.h>

#include <algorithm>

#include "example_data.h"
#include "why/make_ledger.h"
#include "why/totals_ledger.h"

// Pairs of traces of others, whose differences by class an independent program computed (MANIFEST.tsv).
namespace tprimat::results {
namespace {

using logs::KernelClass;

const std::filesystem::path k_pairs = TPRIMAT_SHARED_DATA "/trace_pairs";

class RealPairs : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(k_pairs); }
};

SideInput read_side(const std::string& file) {
  SideInput side;
  side.label = std::filesystem::path(file).stem().stem().string();
  side.files = {file};
  side.ranks.push_back(logs::read_trace(k_pairs / file, logs::TraceContent::everything));
  return side;
}

double milliseconds(const Ledger& ledger, Cause cause) {
  return ledger.terms[static_cast<size_t>(cause)].seconds * 1e3;
}

double class_milliseconds(const Ledger& ledger, KernelClass kernel_class) {
  double sum = 0;
  for (const LedgerClass& each : ledger.classes)
    if (each.kernel_class == kernel_class) sum += (each.b_seconds - each.a_seconds) * 1e3;
  return sum;
}

void expect_closed(const Ledger& ledger) {
  double sum = 0;
  for (const LedgerTerm& term : ledger.terms) sum += term.seconds;
  EXPECT_NEAR(sum, ledger.gap_seconds, 1e-9);
  EXPECT_LE(std::abs(milliseconds(ledger, Cause::unexplained)), 0.05 * std::abs(ledger.gap_seconds) * 1e3);
}

Ledger read_pair(const std::string& a, const std::string& b) {
  const Ledger ledger = make_ledger(read_side(a), read_side(b));
  expect_closed(ledger);
  return ledger;
}

TEST_F(RealPairs, QwenIsFasterByItsElementwiseKernels) {
  const Ledger ledger = read_pair("tracelens_qwen05b/h100.json.gz", "tracelens_qwen05b/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -4.412, 0.001);
  EXPECT_NEAR(milliseconds(ledger, Cause::products), 4.094, 0.25);
  EXPECT_NEAR(milliseconds(ledger, Cause::attention), 1.840, 0.25);
  EXPECT_NEAR(milliseconds(ledger, Cause::memory_bound), -8.3, 0.3);
  EXPECT_NEAR(class_milliseconds(ledger, KernelClass::elementwise), -8.145, 0.05);
  ASSERT_EQ(ledger.findings.size(), 3u);
  EXPECT_TRUE(ledger.findings[0].starts_with("memory-bound operations: -8.4 ms")) << ledger.findings[0];
  EXPECT_TRUE(ledger.findings[1].starts_with("matrix products: +4.3 ms")) << ledger.findings[1];
}

TEST_F(RealPairs, TimesformersHostIsLater) {
  const Ledger ledger = read_pair("tracelens_timesformer/h100.json.gz", "tracelens_timesformer/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 8.144, 0.001);
  EXPECT_NEAR(milliseconds(ledger, Cause::memory_bound), -38.4, 1.0);
  EXPECT_NEAR(milliseconds(ledger, Cause::launch), 46.3, 0.5);
  EXPECT_NEAR(class_milliseconds(ledger, KernelClass::softmax), -26.925, 0.05);
  const auto& details = ledger.terms[static_cast<size_t>(Cause::launch)].details;
  EXPECT_EQ(details.front().what, "host before the first operation of a step");
  EXPECT_NEAR(details.front().seconds * 1e3, 50.6, 0.6);
}

TEST_F(RealPairs, VisionTransformerIsLaunchBound) {
  const Ledger ledger = read_pair("tracelens_vit_nsfw/h100.json.gz", "tracelens_vit_nsfw/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -0.441, 0.001);
  EXPECT_LT(milliseconds(ledger, Cause::launch), -0.7);
  EXPECT_GT(ledger.terms[static_cast<size_t>(Cause::launch)].a_seconds, 0.75 * ledger.a.step_seconds);
  ASSERT_FALSE(ledger.findings.empty());
  EXPECT_TRUE(ledger.findings[0].starts_with("launch gaps")) << ledger.findings[0];
}

TEST_F(RealPairs, ResnetWaitsForInput) {
  const Ledger ledger =
      read_pair("kineto_resnet50_workers/workers0.json.gz", "kineto_resnet50_workers/workers4.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -35.137, 0.01);
  EXPECT_NEAR(milliseconds(ledger, Cause::products), 0.563, 0.05);
  EXPECT_LT(milliseconds(ledger, Cause::data), -34.0);
  ASSERT_FALSE(ledger.findings.empty());
  EXPECT_TRUE(ledger.findings[0].starts_with("input data")) << ledger.findings[0];
}

TEST_F(RealPairs, DlrmHasSeveralCauses) {
  const Ledger ledger = read_pair("hta_dlrm/a100_rank3of8.json.gz", "hta_dlrm/v100_rank1of2.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 46.576, 0.01);
  EXPECT_NEAR(class_milliseconds(ledger, KernelClass::matmul), 21.461, 0.1);
  EXPECT_NEAR(milliseconds(ledger, Cause::products), 21.461, 0.5);
  EXPECT_GT(milliseconds(ledger, Cause::memory_bound), 15.0);
  EXPECT_GT(milliseconds(ledger, Cause::one_sided), 5.0);
  EXPECT_EQ(ledger.findings.size(), 3u);
}

TEST_F(RealPairs, MoreThreadsOfRcclExposeCommunicationAndIdleTime) {
  const auto read = [](const std::string& threads) {
    const std::string folder = (k_pairs / "rccl_threads_28ch_rank0" / threads).string();
    return TotalsInput{threads, folder, logs::read_recorded_totals(folder)};
  };
  const Ledger ledger = make_totals_ledger(read("256thread"), read("512thread"));
  expect_closed(ledger);
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 2075.617, 0.01);
  EXPECT_NEAR(milliseconds(ledger, Cause::communication), 1239.814, 0.01);
  EXPECT_NEAR(milliseconds(ledger, Cause::launch), 827.184, 0.01);
}

}  // namespace
}  // namespace tprimat::results
