#pragma once

#include <functional>
#include <memory>
#include <string>

#include "model_files/checkpoint_writer.h"
#include "train/engine.h"

namespace tprimat::engine {

// Saves a training as spec.checkpoint says, and goes on from what was saved. All calls are collective.
class Checkpoints {
 public:
  using Note = std::function<void(const std::string&)>;  // a sentence for people; called on rank 0 only

  Checkpoints(const TrainSpec& spec, Engine& engine, Note note);

  // Brings the engine to the newest sound checkpoint, of any layout, where spec.checkpoint.resume says so and there is
  // one; else to the checkpoint of spec.checkpoint.load, else to spec.checkpoint.initial_weights, if given. Returns the
  // first step to run. Throws Error for a checkpoint of another model or batch size.
  int64_t restore();

  // After each step: begins to write a checkpoint when one is due. Writing continues during training.
  void after_step(int64_t step);
  // Waits until everything is on the disk. Throws Error when it could not be written.
  void finish();
  // The step of the checkpoint that was saved last, or resumed from; 0: none.
  int64_t last_step() const { return last_step_; }

 private:
  struct Source {
    bool is_other = false;  // in spec.checkpoint.load, else in the training's own directory
    int64_t step = -1;      // none
  };
  void refuse_used_directory() const;
  Source find_source() const;
  Source find_loaded() const;
  void require_same_model(const std::string& folder) const;
  void load(const std::string& folder);
  void load_initial_weights();
  void save(int64_t step);
  void wait();

  const TrainSpec spec_;
  Engine& engine_;
  Note note_;
  int64_t run_ = 0;  // the same on all ranks of this start
  int64_t last_step_ = 0;
  std::unique_ptr<CheckpointWriter> writer_;
};

}  // namespace tprimat::engine
