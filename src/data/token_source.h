#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "spec/train_spec.h"

namespace tprimat {

// Where training samples come from. A sample is SL+1 consecutive tokens: inputs are the first SL, targets the last SL.
// Sample i is the same in every process and thread, whatever was read before; calls from several threads at once are
// safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual int64_t vocab_size() const = 0;  // every token is in [0, vocab_size)

  // Fills all of `tokens` (SL+1 of them) with sample `index`, 0, 1, 2, ...; there is no last one.
  // Throws Error for a token outside the vocabulary, naming file and offset.
  virtual void read_sample(int64_t index, std::span<int32_t> tokens) const = 0;

  virtual std::string describe() const = 0;  // one line for people
};

// Opens "synthetic" or the prefix of a .bin/.idx pair. Throws Error for a data set that is missing, damaged, or shorter
// than one sample.
std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, int64_t vocab_size, int64_t sequence_length,
                                               int64_t seed);

}  // namespace tprimat
