#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/data_split.h"

namespace tprimat::engine {

struct SampleOrderRequest {
  std::span<const int32_t> lengths;  // tokens of every sequence of the data set
  SequenceRange range;               // the sequences of the split
  int64_t sequence_length = 0;       // SL, tokens
  std::optional<int64_t> samples;    // how many will be asked for; absent: those of one epoch
  uint32_t seed = 0;
  bool extra_token = true;  // a sample has SL+1 tokens and shares its last one with the next (Megatron's default)
};

// Where a sample begins: `position` in SampleOrder::sequences, `offset` tokens into that sequence.
struct SampleStart {
  uint32_t position = 0;
  int32_t offset = 0;
  bool operator==(const SampleStart&) const = default;
};

// The three indices of Megatron-LM's GPTDataset (megatron/core/datasets/gpt_dataset.py and helpers.cpp, release 0.16),
// number for number:
//   epochs      the fewest E with E·T >= samples·SL + 1, for T tokens in the split's sequences
//   sequences   E copies of the split's sequences, shuffled together ("document index")
//   starts      the shuffled sequences joined into one stream and cut every SL tokens ("sample index"); entry n is the
//               end of sample n−1; there are (E·T − 1) / SL samples, which is at least what was asked for
//   shuffle     a permutation of the samples ("shuffle index"): sample i of the training is starts[shuffle[i]]
// When the last epoch contributes less than 80 % of its samples, its sequences and its samples are shuffled among
// themselves and come last, so that every sequence is seen equally often up to there.
struct SampleOrder {
  int64_t tokens_per_epoch = 0;
  int64_t epochs = 1;
  bool final_epoch_apart = false;
  std::vector<int32_t> sequences;
  std::vector<SampleStart> starts;
  std::vector<uint32_t> shuffle;

  int64_t samples() const { return static_cast<int64_t>(shuffle.size()); }
};
// Throws Error for a range without tokens, and for more than 2^32 − 2 samples or sequences.
SampleOrder order_samples(const SampleOrderRequest& request);

}  // namespace tprimat::engine
