// Trainings of which one rank fails: every rank ends, with a sentence.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/gpu/nccl_communicator.h"
#include "data/token_source.h"
#include "device/gpu/context.h"
#include "device/gpu/device.h"
#include "emulator/host_nccl.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"
#include "train/engine.h"
#include "world.h"

namespace tprimat::engine::gpu {
namespace {

Backend own_gpu() {
  std::shared_ptr<Accelerator> device = make_device(0);
  return {device,          device.get(),           &gpu_ops<float>(),  &gpu_ops<bf16>(),
          &gpu_ops<f16>(), &make_gpu_communicator, &product_settings()};
}

TrainSpec shared_training() {
  TrainSpec spec;
  ModelSpec& model = spec.model;
  model.name = model.full_name = "tiny";
  model.num_layers = 1;
  model.hidden_size = 16;
  model.ffn_hidden_size = 16;
  model.num_attention_heads = model.num_key_value_heads = 1;
  model.head_dim = 16;
  model.vocab_size = 31;
  model.max_position_embeddings = 16;
  spec.precision = Precision::fp32;
  spec.sequence_length = 8;
  spec.micro_batch_size = 1;
  spec.global_batch_size = world().size();
  spec.parallel.data = world().size();
  spec.parallel.zero_stage = 2;
  spec.steps = 2;
  spec.threads = 1;
  return spec;
}

// The training on all ranks, `before_second` between its steps, and what it failed of.
struct FailingTraining {
  std::function<void()> before_second = [] {};

  std::string run() const {
    const Backend backend = own_gpu();
    try {
      const TrainSpec spec = shared_training();
      const auto engine = make_engine(spec, world().split(0, world().rank()), backend);
      const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed,
                                                        DataSplit::train, spec.steps * spec.global_batch_size});
      engine->run_step(1, *tokens);
      before_second();
      engine->run_step(2, *tokens);
    } catch (const Error& error) {
      given_up = context().given_up;
      host::nccl_habits().breaks_events = false;
      host::refuse_events(false);
      host::put_work_off(false);
      return error.what();
    }
    return "";
  }
  static inline bool given_up = false;
};

// Rank 0 fails behind an exchange of gradients that was given to its device, which the others join when it has ended.
TEST(FailingRank, EndsWhileOthersNeverCameAndTheyFindOut) {
  FailingTraining training;
  training.before_second = [] {
    if (world().rank() != 0) return world().barrier();
    host::put_work_off(true);
    host::nccl_habits().breaks_events = true;
  };
  const std::string failure = training.run();
  if (world().rank() == 0) {
    EXPECT_NE(failure.find("the GPU runtime reports: unspecified launch failure"), std::string::npos) << failure;
    world().barrier();
  } else {
    EXPECT_NE(failure.find("one of them, or a link, is lost: remote process exited"), std::string::npos) << failure;
  }
  EXPECT_FALSE(FailingTraining::given_up);
  world().barrier();
}

// NCCL may itself wait for ever when it is told to end a group.
TEST(FailingRank, LeavesBehindWhatDoesNotEnd) {
  FailingTraining training;
  training.before_second = [] {
    if (world().rank() == 0) return;
    world().barrier();
    host::nccl_habits().abort_milliseconds = 1000;
  };
  if (world().rank() == 0) {
    training.before_second = [] { throw Error(Problem{"the disk is full", "", ""}); };
    EXPECT_NE(training.run().find("the disk is full"), std::string::npos);
    world().barrier();
  } else {
    const std::string failure = training.run();
    EXPECT_NE(failure.find("is lost"), std::string::npos) << failure;
    EXPECT_TRUE(FailingTraining::given_up);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // until it has ended after all
  }
  world().barrier();
}

}  // namespace
}  // namespace tprimat::engine::gpu
