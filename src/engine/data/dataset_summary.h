#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/data_split.h"
#include "data/megatron_index.h"
#include "text/fields.h"

namespace tprimat::engine {

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
struct SplitQuestion {
  std::string weights;
  int64_t sequence_length = 0;     // 0: samples are not asked about
  std::optional<int64_t> samples;  // how many are wanted; absent: one epoch
};
std::vector<SplitSummary> summarise_splits(const std::string& prefix, const SplitQuestion& question);  // throws Error

}  // namespace tprimat::engine
