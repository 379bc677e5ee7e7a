#include "data/token_source.h"

#include "data/megatron_dataset.h"
#include "data/synthetic_corpus.h"

namespace tprimat::engine {
namespace {

int64_t seed_of_split(int64_t seed, DataSplit split) {
  if (split == DataSplit::train) return seed;
  return static_cast<int64_t>(scramble_bits(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(split));
}

}  // namespace

std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, const TokenRequest& request) {
  if (data.is_synthetic())
    return std::make_unique<SyntheticCorpus>(request.vocab_size, seed_of_split(request.seed, request.split));
  return std::make_unique<MegatronDataset>(data.dataset, request, data.split);
}

std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, int64_t vocab_size, int64_t sequence_length,
                                               int64_t seed) {
  return open_token_source(data, {vocab_size, sequence_length, seed});
}

}  // namespace tprimat::engine
