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

RunResult sparse_result() {
  RunResult run = sample_result();
  run.model_info.shape->experts = Experts{.count = 32, .per_token = 4, .ffn_hidden_size = 32};
  run.gpu_info.device_count = run.training_config.num_gpus = 8;
  summarise_run(run, {.peak = PeakInfo{"test", 1e12, "by hand"}});
  return run;
}

TEST(Consistency, NoFigureFollowsFromAnImpossibleShape) {
  const RunResult run = sparse_result();
  EXPECT_TRUE(find_contradictions(run).empty());
  const auto denies = [&](void (*change)(ModelSpec&), const char* said) {
    RunResult other = run;
    change(*other.model_info.shape);
    const auto found = find_contradictions(other);
    return std::ranges::any_of(found, [&](const Contradiction& each) {
      return each.kind == Contradiction::Kind::shape && each.what == "the stated shape is impossible:" &&
             each.stated.find(said) != std::string::npos;
    });
  };
  EXPECT_TRUE(denies([](ModelSpec& m) { m.experts->layer_interval = 0; }, "layer_interval"));
  EXPECT_TRUE(denies([](ModelSpec& m) { m.experts->capacity_factor = -1; }, "capacity_factor"));
  EXPECT_TRUE(denies([](ModelSpec& m) { m.prediction_layers = -5; }, "prediction_layers"));
  EXPECT_TRUE(denies([](ModelSpec& m) { m.prediction_layers = int64_t{1} << 62; }, "prediction_layers"));
  EXPECT_TRUE(denies([](ModelSpec& m) { m.experts->per_token = 0; }, "per_token"));
}

TEST(Consistency, AFigureLiesWithinItsInterval) {
  RunResult run = sparse_result();
  EXPECT_FALSE(has_kind(run, Contradiction::Kind::figure));
  run.derived.mfu->low = run.derived.mfu->high = 0.75;
  EXPECT_TRUE(has_kind(run, Contradiction::Kind::figure));
}

TEST(Consistency, ExpertsAreSplitOverTheRanksOfAStage) {
  RunResult run = sparse_result();
  ParallelismConfig& layout = run.parallelism_config;
  const auto fits = [&](int64_t parts, int64_t tensor) {
    layout.expert_model_parallel_size = parts, layout.expert_tensor_parallel_size = tensor;
    return !has_kind(run, Contradiction::Kind::layout);
  };
  EXPECT_TRUE(fits(8, 1));
  EXPECT_TRUE(fits(4, 2));
  EXPECT_TRUE(fits(1, 8));
  EXPECT_FALSE(fits(64, 1));
  EXPECT_FALSE(fits(3, 1));
  EXPECT_FALSE(fits(8, 8));
  EXPECT_FALSE(fits(int64_t{1} << 62, 4));
  layout.pipeline_model_parallel_size = 2;
  EXPECT_TRUE(fits(4, 1));
  EXPECT_FALSE(fits(8, 1));
  layout.pipeline_model_parallel_size.reset();
  run.gpu_info.device_count.reset(), run.training_config.num_gpus.reset();
  EXPECT_TRUE(fits(16, 1)) << "the ranks are not known";
  EXPECT_FALSE(fits(3, 1)) << "it does not divide 32 experts";
  layout.tensor_model_parallel_size = 2, layout.data_parallel_size = 4;
  EXPECT_TRUE(fits(8, 1));
  EXPECT_FALSE(fits(16, 1));
}

}  // namespace
}  // namespace tprimat
