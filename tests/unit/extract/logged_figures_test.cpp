#include "extract/logged_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tprimat::logs {
namespace {

// Steps `first` to 8 of Megatron-LM, each with its number as its rate.
std::string log_from(int64_t first) {
  std::string text;
  for (int64_t step = first; step <= 8; ++step)
    text += fmt::format(
        " iteration {:8}/       8 | consumed samples: {:12} | elapsed time per iteration (ms): 500.0 | throughput per "
        "GPU (TFLOP/s/GPU): {}.0 | learning rate: 1.0E-04 | global batch size: 4 | lm loss: 4.0E+00 | loss scale: 1.0 "
        "| grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        step, 4 * step, step);
  return text;
}

TEST(LoggedFigures, OfATrainingThatLoadedACheckpointBeginAtItsFirstStep) {
  RunResult result;
  result.training_config.loaded_step = 5;
  result.step_times = {0.5, 0.5, 0.5};
  add_logged_figures(result, read_log_text(log_from(6), {}));
  ASSERT_TRUE(result.reported && result.reported->tflops_per_gpu);
  EXPECT_EQ(*result.reported->tflops_per_gpu, (std::vector<double>{6, 7, 8}));
  ASSERT_TRUE(result.steps && result.steps->numbers);
  EXPECT_EQ(*result.steps->numbers, (std::vector<int64_t>{6, 7, 8}));
}

}  // namespace
}  // namespace tprimat::logs
