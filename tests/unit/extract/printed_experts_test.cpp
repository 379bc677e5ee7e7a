// What a framework printed of experts, against what a result of its log says.
#include <gtest/gtest.h>

#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

RunResult result_of_sparse_log(const std::string& name) {
  return make_result(read_log(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + name, {}), name, {});
}

TEST(SparseResult, APrintedEpThatTheResultDenies) {
  RunResult result = result_of_sparse_log("megatron/experts.log");
  std::vector<Contradiction> found;
  compare_printed_settings(result, found);
  EXPECT_TRUE(found.empty()) << found.front().what << found.front().stated;
  result.parallelism_config.expert_model_parallel_size = 8;
  result.parallelism_config.expert_tensor_parallel_size = 2;
  compare_printed_settings(result, found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(contains(found[0].what, "expert_model_parallel_size"));
  EXPECT_EQ(found[0].derived, "4");
}

TEST(SparseResult, ForcedBalanceThatTheResultDenies) {
  for (const char* name :
       {"moe_router_force_load_balancing", "debug.moe_force_load_balance", "training.debug_moe_force_load_balance",
        "debug_moe_force_load_balance", "moe_force_load_balance", "model_args.moe_args._debug_force_load_balance"}) {
    RunResult result = result_of_sparse_log("torchtitan/experts.log");
    result.experts.emplace().routing = Routing::balanced;
    (*result.effective_config)[name] = "true";
    std::vector<Contradiction> found;
    compare_printed_settings(result, found);
    EXPECT_TRUE(found.empty()) << name << ": " << found.front().what;
    result.experts->routing = Routing::learned;
    compare_printed_settings(result, found);
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].what, std::string(name) + ", which the framework printed");
    EXPECT_EQ(found[0].stated, "learned");
  }
}

TEST(SparseResult, APrintedEpOfADenseModel) {
  RunResult result = result_of_sparse_log("megatron/experts.log");
  result.model_info.shape->experts.reset();
  std::vector<Contradiction> found;
  compare_printed_settings(result, found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].stated, "a dense model");
}

}  // namespace
}  // namespace tprimat::logs
