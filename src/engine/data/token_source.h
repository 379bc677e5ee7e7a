#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/sample_order.h"
#include "spec/train_spec.h"

namespace tprimat::engine {

// Where samples come from. A sample is SL+1 consecutive tokens: inputs are the first SL, targets the last SL. Sample i
// is the same in every process and thread, whatever was read before; calls from several threads at once are safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // Fills all of `tokens` (SL+1 of them) with sample `index`, 0, 1, 2, ...; there is no last one.
  // Throws Error for a token outside the vocabulary, naming file and offset.
  virtual void read_sample(int64_t index, std::span<int32_t> tokens) const = 0;
};

struct TokenRequest {
  int64_t vocab_size = 0;
  int64_t sequence_length = 0;  // SL, tokens
  int64_t seed = 0;
  DataSplit split = DataSplit::train;
  // How many samples will be read in all. Megatron-LM's order depends on it: for training it is steps · GBS, for
  // validation (steps / eval_interval + 1) · eval_steps · GBS, for the test eval_steps · GBS. Absent: one epoch.
  std::optional<int64_t> samples = std::nullopt;
};

// Opens "synthetic" or the prefix of a .bin/.idx pair, of which each split is a part; the splits of the synthetic
// corpus are different samples of one language. Throws Error for a data set that is missing, damaged, or shorter than
// one sample, and for an empty split.
std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, const TokenRequest& request);

// The first `count` samples of a source in NumPy's .npy format (numpy.lib.format, version 1.0): int32 [count, SL + 1].
// That is how other trainers get the tokens of the native one, in its order. Throws Error; the file appears whole.
void write_sample_file(const TokenSource& source, int64_t count, int64_t sequence_length,
                       const std::filesystem::path& path);

}  // namespace tprimat::engine
