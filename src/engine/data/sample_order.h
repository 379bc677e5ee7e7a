#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/enum_names.h"

namespace tprimat::engine {

enum class DataSplit { train, valid, test };

// [begin, end) of the sequences of an index.
struct SequenceRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const SequenceRange&) const = default;
};

// Which of `sequences` sequences belong to a split, by Megatron-LM's --split: up to three weights, "949,50,1"; missing
// ones are 0. They are divided by their sum, added up, multiplied by the number of sequences and rounded, halves to
// even (megatron/core/datasets/blended_megatron_dataset_config.py and blended_megatron_dataset_builder.py). Empty for a
// weight of 0. Throws Error for text that is no such list.
std::optional<SequenceRange> split_sequences(const std::string& weights, DataSplit split, int64_t sequences);

// numpy.random.RandomState(seed) as far as Megatron-LM uses it, bit for bit. The generator is MT19937 seeded by Knuth's
// recurrence, which std::mt19937 is by the standard's own definition.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : generator_(seed) {}

  // Uniform in [0, most]: draws of the smallest sufficient number of bits, until one fits (numpy's random_interval, in
  // numpy/random/src/distributions/distributions.c). No draw for most = 0.
  uint32_t draw_interval(uint32_t most);

  // RandomState.shuffle of a vector: Fisher and Yates from the end (numpy/random/mtrand.pyx, _shuffle_raw). At most
  // 2^32 values.
  template <class T>
  void shuffle(std::span<T> values) {
    for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[draw_interval(static_cast<uint32_t>(i))]);
  }

 private:
  std::mt19937 generator_;
};

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
