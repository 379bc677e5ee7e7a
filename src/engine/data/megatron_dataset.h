#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/megatron_index.h"
#include "data/sample_order.h"
#include "data/token_source.h"
#include "text/fields.h"

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

  void read_sample(int64_t index, std::span<int32_t> tokens) const override;

  const SampleOrder& order() const { return order_; }

 private:
  TokenStream stream_;
  TokenRequest request_;
  SampleOrder order_;
};

// What a pair holds; every token is read.
struct DatasetSummary {
  std::string prefix;
  TokenType type = TokenType::uint16;
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t documents = 0;
  int64_t bin_bytes = 0;
  int64_t idx_bytes = 0;
  std::optional<int64_t> shortest_sequence, longest_sequence;  // tokens; absent without sequences
  std::optional<int64_t> largest_token;                        // absent without tokens
  int64_t distinct_tokens = 0;

  static constexpr auto fields() {
    using D = DatasetSummary;
    return field_list(field("prefix", &D::prefix, "path without .bin and .idx"),
                      field("token_type", &D::type, "number format of a token in the .bin file"),
                      field("tokens", &D::tokens, "tokens of all sequences"),
                      field("sequences", &D::sequences, "sequences in the index"),
                      field("documents", &D::documents, "documents in the index"),
                      field("bin_bytes", &D::bin_bytes, "size of the .bin file, bytes"),
                      field("idx_bytes", &D::idx_bytes, "size of the .idx file, bytes"),
                      field("shortest_sequence", &D::shortest_sequence, "tokens"),
                      field("longest_sequence", &D::longest_sequence, "tokens"),
                      field("largest_token", &D::largest_token, "the vocabulary must be larger than this"),
                      field("distinct_tokens", &D::distinct_tokens, "number of distinct tokens"));
  }
};
DatasetSummary summarise_dataset(const std::string& prefix);  // throws Error

// What one split of a pair holds.
struct SplitSummary {
  DataSplit split = DataSplit::train;
  int64_t first_sequence = 0, end_sequence = 0, sequences = 0;
  int64_t tokens = 0;
  std::optional<int64_t> samples, epochs;  // absent without a sequence length, and where there is no whole sample

  static constexpr auto fields() {
    using S = SplitSummary;
    return field_list(field("split", &S::split, "train, valid or test"),
                      field("first_sequence", &S::first_sequence, "its first sequence"),
                      field("end_sequence", &S::end_sequence, "one past its last sequence"),
                      field("sequences", &S::sequences, "sequences"),
                      field("tokens", &S::tokens, "tokens of its sequences"),
                      field("samples", &S::samples, "number of samples"),
                      field("epochs", &S::epochs, "epochs that these samples take"));
  }
};

// `tprimat data info` and `tprimat data make` as JSON.
struct DatasetReport : DatasetSummary {
  std::optional<std::vector<SplitSummary>> splits;

  static constexpr auto fields() {
    return extend_fields<DatasetSummary>(field("splits", &DatasetReport::splits, "each split; absent: not asked for"));
  }
};

struct SplitQuestion {
  std::string weights;
  int64_t sequence_length = 0;     // 0: samples are not asked about
  std::optional<int64_t> samples;  // how many are wanted; absent: one epoch
};
std::vector<SplitSummary> summarise_splits(const std::string& prefix, const SplitQuestion& question);  // throws Error

}  // namespace tprimat::engine
