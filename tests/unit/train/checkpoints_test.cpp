#include "train/checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "model_files/hugging_face.h"
#include "small_training.h"
#include "train/loop.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;

TrainSpec short_training(const fs::path& folder) {
  TrainSpec spec = small_training(Precision::fp32);
  spec.optimizer.warmup_steps = 1;
  spec.steps = 4;
  spec.checkpoint.directory = (folder / "checkpoints").string();
  spec.checkpoint.save_interval = 2;
  return spec;
}

class CheckpointsTest : public testing::Test {
 protected:
  CheckpointsTest()
      : folder_(fs::temp_directory_path() / fs::path("tprimat_checkpoints_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CheckpointsTest() override { fs::remove_all(folder_); }

  // Returns the first step that was run.
  static int64_t train(const TrainSpec& spec) {
    const auto engine = make_engine(spec);
    Checkpoints checkpoints(spec, *engine, [](const std::string&) {});
    const int64_t first = checkpoints.restore();
    TrainingHooks hooks;
    hooks.step = [](const StepRecord&) {};
    hooks.after_step = [&](int64_t step) { checkpoints.after_step(step); };
    run_training(spec, *engine, first, hooks);
    checkpoints.finish();
    return first;
  }
  static std::string refusal(const TrainSpec& spec) {
    try {
      train(spec);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      return error.what();
    }
    return "";
  }

  const fs::path folder_;
};

TEST_F(CheckpointsTest, GoesOnWhereItStopped) {
  TrainSpec spec = short_training(folder_);
  EXPECT_EQ(train(spec), 1);
  spec.steps = 6;
  EXPECT_EQ(train(spec), 5);
}

TEST_F(CheckpointsTest, AnotherModelIsRefusedByItsKeys) {
  TrainSpec spec = short_training(folder_);
  train(spec);
  spec.steps = 6;
  spec.model.rope_theta = 77;
  spec.model.norm_eps = 0.25;
  const std::string sentence = refusal(spec);
  EXPECT_NE(sentence.find("rope_theta"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("norm_eps"), std::string::npos) << sentence;
}

TEST_F(CheckpointsTest, BeginningAnewAmongOldCheckpointsIsRefused) {
  TrainSpec spec = short_training(folder_);
  train(spec);
  spec.checkpoint.resume = false;
  EXPECT_NE(refusal(spec).find("does not resume"), std::string::npos);
}

TEST_F(CheckpointsTest, LoadsWhatAnotherFolderHolds) {
  TrainSpec spec = short_training(folder_);
  train(spec);
  const std::string first = spec.checkpoint.directory;
  spec.steps = 6;
  spec.checkpoint.load = first;
  spec.checkpoint.resume = false;
  spec.checkpoint.directory = (folder_ / "second").string();
  EXPECT_EQ(train(spec), 5);
  EXPECT_FALSE(fs::exists(fs::path(first) / "step_00000006"));
  spec.checkpoint.load_step = 2;
  spec.checkpoint.directory.clear();
  EXPECT_EQ(train(spec), 3);
  spec.checkpoint.directory = first;
  EXPECT_EQ(train(spec), 3) << "it may save into the folder that it loads from";
  spec.checkpoint.resume = true;
  spec.steps = 8;
  EXPECT_EQ(train(spec), 7) << "after an interrupt its own folder comes first";
}

TEST_F(CheckpointsTest, WithNothingToLoadItDoesNotBeginAnew) {
  TrainSpec spec = short_training(folder_);
  spec.checkpoint.load = (folder_ / "nowhere").string();
  EXPECT_NE(refusal(spec).find("holds no sound checkpoint"), std::string::npos);
  spec.checkpoint.load.reset();
  train(spec);
  spec.checkpoint.load = spec.checkpoint.directory;
  spec.checkpoint.directory.clear();
  EXPECT_NE(refusal(spec).find("the training ends at step 4"), std::string::npos);
}

TEST_F(CheckpointsTest, InitialWeightsOfAnotherModelAreRefused) {
  TrainSpec spec = short_training(folder_);
  write_hugging_face({folder_ / "model"}, spec.model, [&](const std::string& name) {
    for (const NamedShape& shape : whole_weights(spec.model))
      if (shape.name == name) return std::vector<float>(static_cast<size_t>(shape.count()), 0.01f);
    return std::vector<float>();
  });
  spec.checkpoint.directory.clear();
  spec.checkpoint.initial_weights = (folder_ / "model").string();
  EXPECT_EQ(train(spec), 1);
  spec.model.rope_theta = 123;
  EXPECT_NE(refusal(spec).find("rope_theta"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::engine
