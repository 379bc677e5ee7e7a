#pragma once

#include <string>

#include "base/files.h"
#include "data/megatron_index.h"
#include "data/sample_order.h"
#include "data/token_source.h"

namespace tprimat::engine {

// Token `offset` of a sequence of the index.
struct TokenPlace {
  size_t sequence = 0;
  int64_t offset = 0;
};

// The tokens of a .bin/.idx pair. The .bin file is mapped, never read as a whole.
class TokenStream {
 public:
  // `prefix` is the path without ".bin" or ".idx" (either ending may be given). Throws Error for a missing or damaged
  // file.
  explicit TokenStream(std::string prefix);

  const std::string& prefix() const { return prefix_; }
  const MegatronIndex& index() const { return index_; }
  int64_t num_tokens() const { return num_tokens_; }

  // Copies the tokens from `place` on, all of one sequence. Throws Error, naming file and offset, for one outside [0,
  // vocab_size).
  void read(TokenPlace place, std::span<int32_t> out, int64_t vocab_size) const;

 private:
  std::string prefix_;
  MappedFile bin_;
  MegatronIndex index_;
  int64_t num_tokens_;
};

// Samples of one split of a .bin/.idx pair, in Megatron-LM's own order (data/sample_order.h): the same files, split,
// seed, sequence length and number of samples give the same batches. After the last sample the first follows again.
class MegatronDataset final : public TokenSource {
 public:
  // Throws Error; also for a split of fewer tokens than one sample has, which Megatron-LM would repeat within a sample.
  MegatronDataset(std::string prefix, const TokenRequest& request, const std::string& split_weights);

  int64_t vocab_size() const override { return request_.vocab_size; }
  void read_sample(int64_t index, std::span<int32_t> tokens) const override;
  std::optional<int64_t> num_samples() const override { return order_.samples(); }
  std::string describe() const override;

  const SampleOrder& order() const { return order_; }

 private:
  TokenStream stream_;
  TokenRequest request_;
  SampleOrder order_;
};

}  // namespace tprimat::engine
