#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model_files/rank_file.h"
#include "parameters/parameters.h"
#include "text/json.h"

namespace tprimat::engine {

struct CheckpointTarget {
  std::filesystem::path directory;  // of all checkpoints; this one becomes directory/step_00001000
  int64_t step = 0;
  uint32_t rank = 0, ranks = 1;
  uint64_t run = 0;               // the same on all ranks of one start of the trainer and different for every start
  int64_t keep_last_n = 2;        // older checkpoints are removed once this one is complete
  double patience_seconds = 600;  // how long rank 0 waits for the others' files
};

// Writes one rank's part of one checkpoint while training goes on: add() copies, start() returns at once, wait() gives
// the outcome. Rank 0 waits for the files of all ranks and then writes the manifest, with which the checkpoint comes
// into being; before that, nothing that the directory held has changed. One checkpoint of a run at a time.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(CheckpointTarget target);
  ~CheckpointWriter();  // without wait(): gives up waiting for other ranks, and says nothing of errors
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Copies the values [begin, end) of this rank's part of the parameter; values[0] is the one at `begin`.
  void add(StateKind kind, const Parameter& parameter, int64_t begin, int64_t end, const float* values);
  void add(StateKind kind, const Parameter& parameter, int64_t begin, int64_t end, const double* values);

  // Begins to write. `state` is kept in the manifest; that of rank 0 counts.
  void start(const Json& state);

  // Returns when this rank's part is on the disk, on rank 0 when the checkpoint is complete, with a sentence for each
  // old file that could not be removed. Throws Error: the disk is full, another run writes into the directory, a rank
  // is missing. The checkpoints from before are whole then too.
  std::vector<std::string> wait();

 private:
  class Job;
  std::unique_ptr<Job> job_;
};

}  // namespace tprimat::engine
