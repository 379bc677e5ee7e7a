#include <gtest/gtest.h>

#include <cstdio>

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

void print(const Ledger& ledger) {
  printf("%s -> %s: %.3f to %.3f ms, gap %.3f\n", ledger.a.label.c_str(), ledger.b.label.c_str(),
         ledger.a.step_seconds * 1e3, ledger.b.step_seconds * 1e3, ledger.gap_seconds * 1e3);
  for (const LedgerTerm& term : ledger.terms) {
    printf("  %-16s %9.3f [%8.3f %8.3f]  %8.3f %8.3f\n", std::string(enum_name(term.cause)).c_str(), term.seconds * 1e3,
           term.low.value_or(0) * 1e3, term.high.value_or(0) * 1e3, term.a_seconds * 1e3, term.b_seconds * 1e3);
    if (getenv("DETAILS"))
      for (const LedgerDetail& d : term.details)
        printf("       %9.3f  %8.3f (%g) %8.3f (%g) %s\n", d.seconds * 1e3, d.a_seconds.value_or(0) * 1e3,
               d.a_calls.value_or(0), d.b_seconds.value_or(0) * 1e3, d.b_calls.value_or(0),
               d.what.substr(0, 150).c_str());
  }
  for (const LedgerClass& c : ledger.classes)
    printf("  class %-12s %8.3f %8.3f  %g %g\n", std::string(enum_name(c.kernel_class)).c_str(), c.a_seconds * 1e3,
           c.b_seconds * 1e3, c.a_calls, c.b_calls);
  for (const std::string& text : ledger.findings) printf("  * %s\n", text.c_str());
  for (const std::string& text : ledger.notes) printf("  - %s\n", text.c_str());
}

void expect_closed(const Ledger& ledger) {
  double sum = 0;
  for (const LedgerTerm& term : ledger.terms) sum += term.seconds;
  EXPECT_NEAR(sum, ledger.gap_seconds, 1e-9);
  EXPECT_LE(std::abs(milliseconds(ledger, Cause::unexplained)), 0.05 * std::abs(ledger.gap_seconds) * 1e3);
}

Ledger read_pair(const std::string& a, const std::string& b) {
  const Ledger ledger = make_ledger(read_side(a), read_side(b));
  print(ledger);
  expect_closed(ledger);
  return ledger;
}

TEST_F(RealPairs, QwenIsFasterByItsElementwiseKernels) {
  const Ledger ledger = read_pair("tracelens_qwen05b/h100.json.gz", "tracelens_qwen05b/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -4.412, 0.001);
  EXPECT_NEAR(milliseconds(ledger, Cause::products), 4.1, 0.3);
}

TEST_F(RealPairs, TimesformersHostIsLater) {
  const Ledger ledger = read_pair("tracelens_timesformer/h100.json.gz", "tracelens_timesformer/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 8.144, 0.001);
}

TEST_F(RealPairs, VisionTransformerIsLaunchBound) {
  const Ledger ledger = read_pair("tracelens_vit_nsfw/h100.json.gz", "tracelens_vit_nsfw/mi300x.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -0.441, 0.001);
}

TEST_F(RealPairs, ResnetWaitsForInput) {
  const Ledger ledger =
      read_pair("kineto_resnet50_workers/workers0.json.gz", "kineto_resnet50_workers/workers4.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, -35.137, 0.01);
}

TEST_F(RealPairs, DlrmHasSeveralCauses) {
  const Ledger ledger = read_pair("hta_dlrm/a100_rank3of8.json.gz", "hta_dlrm/v100_rank1of2.json.gz");
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 46.576, 0.01);
  EXPECT_NEAR(class_milliseconds(ledger, KernelClass::matmul), 21.461, 0.1);
}

TEST_F(RealPairs, MoreThreadsOfRcclExposeCommunicationAndIdleTime) {
  const auto read = [](const std::string& threads) {
    const std::string folder = (k_pairs / "rccl_threads_28ch_rank0" / threads).string();
    return TotalsInput{threads, folder, logs::read_recorded_totals(folder)};
  };
  const Ledger ledger = make_totals_ledger(read("256thread"), read("512thread"));
  print(ledger);
  expect_closed(ledger);
  EXPECT_NEAR(ledger.gap_seconds * 1e3, 2075.617, 0.01);
  EXPECT_NEAR(milliseconds(ledger, Cause::communication), 1239.814, 0.01);
  EXPECT_NEAR(milliseconds(ledger, Cause::launch), 827.184, 0.01);
}

}  // namespace
}  // namespace tprimat::results
