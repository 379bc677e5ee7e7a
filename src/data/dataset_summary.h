#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/megatron_index.h"
#include "text/fields.h"

namespace tprimat {

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
    return std::tuple{field("prefix", &D::prefix, "path without .bin and .idx"),
                      field("token_type", &D::type, "number format of a token in the .bin file"),
                      field("tokens", &D::tokens, "tokens of all sequences"),
                      field("sequences", &D::sequences, "sequences in the index"),
                      field("documents", &D::documents, "documents in the index"),
                      field("bin_bytes", &D::bin_bytes, "size of the .bin file, bytes"),
                      field("idx_bytes", &D::idx_bytes, "size of the .idx file, bytes"),
                      field("shortest_sequence", &D::shortest_sequence, "tokens"),
                      field("longest_sequence", &D::longest_sequence, "tokens"),
                      field("largest_token", &D::largest_token, "the vocabulary must be larger than this"),
                      field("distinct_tokens", &D::distinct_tokens, "different tokens that occur")};
  }
};
DatasetSummary summarise_dataset(const std::string& prefix);  // throws Error

}  // namespace tprimat
