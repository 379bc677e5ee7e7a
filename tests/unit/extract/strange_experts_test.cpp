// Dumps of mixtures of experts with values that no run can have: nothing is taken from them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "extract/common/expert_settings.h"
#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

using Settings = std::map<std::string, std::string>;

bool warns(const RunResult& result, std::string_view words) {
  return std::ranges::any_of(result.warnings, [&](const std::string& each) { return contains(each, words); });
}

std::string replaced(std::string text, const std::string& name, const std::string& value) {
  const size_t line = text.find("  " + name);
  EXPECT_NE(line, std::string::npos) << name;
  return text.replace(line, text.find('\n', line) - line, "  " + name + " " + std::string(20, '.') + " " + value);
}

std::string experts_log(const std::string& dialect = "megatron") {
  return read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + dialect + "/experts.log");
}

RunResult result_with(const char* name, const char* value) {
  return make_result(read_log_text(replaced(experts_log(), name, value), {}), "a.log", {});
}

TEST(StrangeExperts, LossesUnderACoefficientBelowZeroAreNotKnown) {
  const std::string text = replaced(replaced(experts_log(), "moe_aux_loss_coeff", "-1"), "moe_z_loss_coeff", "-0.5");
  const RunResult result = make_result(read_log_text(text, {}), "a.log", {});
  ASSERT_TRUE(result.experts && result.model_info.shape);
  EXPECT_EQ(result.effective_config->at("moe_aux_loss_coeff"), "-1");
  EXPECT_FALSE(result.experts->aux_loss_values);
  EXPECT_FALSE(result.experts->z_loss_values);
}

TEST(StrangeExperts, NamesTheSettingThatIsNoNumber) {
  const RunResult narrow = result_with("moe_ffn_hidden_size", "0");
  EXPECT_FALSE(narrow.model_info.shape);
  EXPECT_TRUE(warns(narrow, "(32 experts), but its moe_ffn_hidden_size is 0, which is no size"));
  const RunResult uncounted = result_with("num_experts", "NaN");
  EXPECT_FALSE(uncounted.model_info.shape);
  EXPECT_TRUE(warns(uncounted, "(num_experts NaN), but it does not state the number of experts"));
}

TEST(StrangeExperts, AWidthThatIsNoSizeIsNotReplacedByTheDefault) {
  for (const char* name : {"moe_ffn_hidden_size", "moe_shared_expert_intermediate_size"})
    for (const char* value : {"-1", "NaN", "1e30"}) EXPECT_FALSE(result_with(name, value).model_info.shape) << value;
  EXPECT_FALSE(result_with("moe_ffn_hidden_size", "0").model_info.shape);
  EXPECT_TRUE(result_with("moe_shared_expert_intermediate_size", "0").model_info.shape);
  EXPECT_TRUE(result_with("moe_ffn_hidden_size", "None").model_info.shape);
}

// torchtitan's configuration leaves its model's routing alone, but the model was built with forced balance.
TEST(StrangeExperts, RoutingThatAnySettingForcesIsNotLearned) {
  std::string text = experts_log("torchtitan");
  const std::string mark = "load_balance_coeff=0.001";
  ASSERT_NE(text.find(mark), std::string::npos);
  text.insert(text.find(mark) + mark.size(), ", _debug_force_load_balance=True");
  text.insert(0,
              "[rank0]:[titan] 2026-01-15 09:00:00,900 - root - INFO - Running with configs: "
              "{\"debug\": {\"moe_force_load_balance\": false, \"seed\": 7}}\n");
  const RunResult result = make_result(read_log_text(text, {}), "a.log", {});
  EXPECT_EQ(result.effective_config->at("debug.moe_force_load_balance"), "false");
  ASSERT_TRUE(result.experts);
  EXPECT_EQ(result.experts->routing, Routing::balanced);
}

TEST(StrangeExperts, ACountThatIsNoNumberIsNotADenseModel) {
  for (const char* value : {"NaN", "99999999999999999999", "many", "[8, 16]"}) {
    const Settings settings = {{"num_experts", value}, {"expert_model_parallel_size", "4"}};
    EXPECT_EQ(find_routing(settings), fmt::format("num_experts {}", value));
    EXPECT_FALSE(stated_experts(settings)) << value;
  }
  for (const char* value : {"None", "null", "0", "1", "[1]"})
    EXPECT_EQ(find_routing({{"num_experts", value}, {"expert_model_parallel_size", "4"}}), "") << value;
}

}  // namespace
}  // namespace tprimat::logs
