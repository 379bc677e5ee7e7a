#include "extract/logged_routing.h"

#include <gtest/gtest.h>

#include "spec/model_catalogue.h"

namespace tprimat::logs {
namespace {

std::vector<std::string> warnings_of(const std::string& balancing) {
  RunResult result;
  result.model_info.shape = find_model("mixtral_8x7b").value();
  result.model_info.shape->experts->balancing = LoadBalancing::none;
  fill_experts(result, {}, {{"moe_router_load_balancing_type", balancing}}, {});
  return result.warnings;
}

// A shape that states no balancing, or another, must not pass for what the log says.
TEST(LoggedBalancing, WithoutANameInAShapeIsSaid) {
  for (const char* named : {"none", "None", "aux_loss", "seq_aux_loss", "['aux_loss']", "[]"})
    EXPECT_TRUE(warnings_of(named).empty()) << named;
  for (const char* other : {"sinkhorn", "global_aux_loss", "['aux_loss', 'seq_aux_loss']"})
    EXPECT_EQ(warnings_of(other),
              std::vector<std::string>{"the shape states the balancing of the experts as none, for it has no name for "
                                       "moe_router_load_balancing_type " +
                                       std::string(other)});
}

}  // namespace
}  // namespace tprimat::logs
