// What the model's shape denies, and what it only seems to deny.
#include "result/consistency.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "result/summary.h"
#include "sample_result.h"

namespace tprimat {
namespace {

bool has_kind(const RunResult& result, Contradiction::Kind kind) {
  const auto found = find_contradictions(result);
  return std::any_of(found.begin(), found.end(), [&](const Contradiction& each) { return each.kind == kind; });
}

TEST(Consistency, CountThatALogMayStateIsNoOtherModel) {
  RunResult run = sample_result();
  run.model_info.shape->tied_embeddings = true;
  run.model_info.shape->vocab_size = 400;
  run.gpu_info.device_count = run.training_config.num_gpus = 8;
  summarise_run(run, {});
  const ModelSpec& shape = *run.model_info.shape;
  const int64_t all = count_parameters(shape).total(), embedding = shape.vocab_size * shape.hidden_size;
  const auto is_other_model = [&](int64_t stated) {
    RunResult other = run;
    other.model_info.num_parameters = stated;
    return has_kind(other, Contradiction::Kind::shape);
  };
  EXPECT_FALSE(is_other_model(all));
  EXPECT_FALSE(is_other_model(all + embedding));  // the first and the last stage of a pipeline hold a copy each
  EXPECT_FALSE(is_other_model(all / 8));          // one device's shard
  EXPECT_TRUE(is_other_model(all / 3));
  EXPECT_TRUE(is_other_model(2 * all));
}

}  // namespace
}  // namespace tprimat
