#pragma once

#include <cstdint>
#include <vector>

#include "comm/rank_groups.h"
#include "data/token_source.h"
#include "nn/context_pieces.h"
#include "nn/model_chunk.h"
#include "spec/train_spec.h"

namespace tprimat {

// Which sequences a rank trains on, and its part of them. Sample i of the whole training belongs to step i / GBS;
// within a step micro batch m of data-parallel rank d is the MBS samples from (m·DP + d)·MBS on, as Megatron-LM deals
// them (MegatronPretrainingSampler).
class BatchReader {
 public:
  BatchReader(const TrainSpec& spec, const RankPlace& place);

  // Reads the micro batches of the global batch that begins with sample `first_sample`.
  void read(int64_t first_sample, const TokenSource& source);
  MicroBatch micro_batch(int64_t micro) const;
  int64_t micro_batches() const { return micro_batches_; }

 private:
  int64_t sequences_, sequence_length_, local_length_, micro_batches_;
  int64_t data_rank_, data_size_;
  std::vector<ContextPiece> pieces_;
  std::vector<int32_t> sample_, tokens_, targets_;
};

}  // namespace tprimat
