#pragma once

#include <string>
#include <vector>

#include "data/mapped_file.h"
#include "data/megatron_index.h"
#include "data/token_source.h"

namespace tprimat {

// The tokens of a .bin/.idx pair as one stream, sequence after sequence in the order of the index.
class TokenStream {
 public:
  // `prefix` is the path without ".bin" or ".idx" (either ending may be given). Throws Error for a missing or damaged
  // file.
  explicit TokenStream(std::string prefix);

  const std::string& prefix() const { return prefix_; }
  const MegatronIndex& index() const { return index_; }
  int64_t num_tokens() const { return starts_.back(); }

  // Copies tokens [start, start + out.size()) of the stream. Throws Error, naming file and offset, for one outside [0,
  // vocab_size).
  void read(int64_t start, std::span<int32_t> out, int64_t vocab_size) const;

 private:
  std::string prefix_;
  MappedFile bin_;
  MegatronIndex index_;
  std::vector<int64_t> starts_;  // tokens before each sequence; the last entry is the total
};

// Samples of a .bin/.idx pair. The stream is cut into (tokens − 1) / SL samples: sample k holds the tokens [k·SL, k·SL
// + SL], so that each shares one token with the next, and a rest shorter than SL is left out. Documents run into each
// other. Every epoch visits each sample once, in an order shuffled by seed and epoch. This is not Megatron-LM's own
// order.
class MegatronDataset final : public TokenSource {
 public:
  MegatronDataset(std::string prefix, int64_t vocab_size, int64_t sequence_length, int64_t seed);  // throws Error

  int64_t vocab_size() const override { return vocab_size_; }
  void read_sample(int64_t index, std::span<int32_t> tokens) const override;
  std::string describe() const override;

  int64_t samples_per_epoch() const { return samples_per_epoch_; }

 private:
  TokenStream stream_;
  int64_t vocab_size_;
  int64_t sequence_length_;
  uint64_t seed_;
  int64_t samples_per_epoch_;
};

}  // namespace tprimat
