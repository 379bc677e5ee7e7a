#pragma once

#include <cstdint>
#include <vector>

#include "comm/rank_groups.h"
#include "data/token_source.h"
#include "device/arena.h"
#include "memory/training_plan.h"
#include "nn/context_pieces.h"
#include "nn/model_chunk.h"
#include "spec/train_spec.h"

namespace tprimat::engine {

// Which sequences a rank trains on, and its part of them. Sample i of the whole training belongs to step i / GBS;
// within a step micro batch m of data-parallel rank d is the MBS samples from (m·DP + d)·MBS on, as Megatron-LM deals
// them (MegatronPretrainingSampler).
class ReadOrder {
 public:
  ReadOrder(const TrainSpec& spec, const RankPlace& place)
      : micro_batch_size_(spec.micro_batch_size),
        global_batch_size_(spec.global_batch_size),
        micro_batches_(spec.gradient_accumulation_steps()),
        data_rank_(place.data),
        data_size_(spec.parallel.data) {}

  int64_t samples_per_step() const { return micro_batches_ * micro_batch_size_; }  // that this rank reads
  // The n-th sample (n = 0, 1, ...) that this rank reads, of a training that begins with sample 0.
  int64_t sample_at(int64_t n) const {
    const int64_t step = n / samples_per_step(), rest = n % samples_per_step();
    const int64_t micro = rest / micro_batch_size_;
    return step * global_batch_size_ + (micro * data_size_ + data_rank_) * micro_batch_size_ + rest % micro_batch_size_;
  }

 private:
  int64_t micro_batch_size_, global_batch_size_, micro_batches_, data_rank_, data_size_;
};

// Reads a rank's part of a global batch into the device's memory.
class BatchReader {
 public:
  BatchReader(const TrainSpec& spec, const RankPlace& place, const BatchBuffers& buffers);
  // Once the arena exists.
  void attach(const Arena& arena, Device& device);

  // Reads the micro batches of the global batch that begins with sample `first_sample`.
  void read(int64_t first_sample, const TokenSource& source);
  MicroBatch micro_batch(int64_t micro) const;
  int64_t micro_batches() const { return micro_batches_; }

 private:
  int64_t sequences_, local_length_, micro_batches_;
  ReadOrder order_;
  std::vector<ContextPiece> pieces_;
  std::vector<int32_t> sample_, read_tokens_, read_targets_;
  BatchBuffers buffers_;
  const Arena* arena_ = nullptr;
  Device* device_ = nullptr;
};

}  // namespace tprimat::engine
