// A result file is a log, too: what it says of its model is kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "text/json.h"

namespace tprimat::logs {
namespace {

RunResult result_of_fixture(const std::string& name, const KnownFacts& known = {}) {
  return make_result(read_log(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + name, {}), name,
                     known);
}

RunResult extracted_again(const RunResult& result, const KnownFacts& known = {}) {
  return make_result(read_log_text(print_json(run_result_to_json(result)), {}), "a.json", known);
}

bool warns(const RunResult& result, std::string_view words) {
  return std::ranges::any_of(result.warnings, [&](const std::string& each) { return contains(each, words); });
}

TEST(ExtractedAgain, KeepsShapeAndExperts) {
  KnownFacts known;
  known.device = "H100";
  const RunResult first = result_of_fixture("megatron/experts.log", known), again = extracted_again(first);
  ASSERT_TRUE(first.model_info.shape && first.experts && first.derived.mfu);
  EXPECT_EQ(again.source.format, "result");
  EXPECT_EQ(again.model_info.shape, first.model_info.shape);
  ASSERT_TRUE(again.experts && again.derived.mfu);
  EXPECT_EQ(again.experts->routing, first.experts->routing);
  EXPECT_EQ(again.experts->aux_loss_values, first.experts->aux_loss_values);
  EXPECT_NEAR(again.derived.mfu->value, first.derived.mfu->value, 1e-9);
}

TEST(ExtractedAgain, AMissingFactThatIsNowGivenIsMissingNoLonger) {
  const RunResult first = result_of_fixture("megatron/experts.log");
  EXPECT_TRUE(warns(first, "no MFU of this mixture of experts"));
  EXPECT_TRUE(warns(extracted_again(first), "no MFU of this mixture of experts"));
  KnownFacts known;
  known.device = "H100";
  const RunResult again = extracted_again(first, known);
  EXPECT_TRUE(again.derived.mfu);
  EXPECT_FALSE(warns(again, "no MFU of this mixture of experts"));
}

TEST(ExtractedAgain, AModelThatTheUserNamesHasItsOwnShape) {
  KnownFacts known;
  known.model = "Llama 3.1 8B";
  const RunResult again = extracted_again(result_of_fixture("megatron/experts.log"), known);
  ASSERT_TRUE(again.model_info.shape);
  EXPECT_FALSE(again.model_info.shape->is_sparse());
  known.model = "mine";
  EXPECT_TRUE(extracted_again(result_of_fixture("megatron/experts.log"), known).model_info.shape);
}

TEST(KnownDevice, AnotherNameOfThePartIsNoContradiction) {
  KnownFacts known;
  known.device = "H100";
  const RunResult same = result_of_fixture("torchtitan/experts.log", known);
  EXPECT_EQ(same.gpu_info.device_name, "NVIDIA H100 80GB HBM3");
  EXPECT_FALSE(warns(same, "but --device is"));
  known.device = "MI300X";
  EXPECT_TRUE(warns(result_of_fixture("torchtitan/experts.log", known), "but --device is MI300X"));
}

}  // namespace
}  // namespace tprimat::logs
