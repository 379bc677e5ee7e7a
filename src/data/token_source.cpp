#include "data/token_source.h"

#include "data/megatron_dataset.h"
#include "data/synthetic_corpus.h"

namespace tprimat {

std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, int64_t vocab_size, int64_t sequence_length,
                                               int64_t seed) {
  if (data.is_synthetic()) return std::make_unique<SyntheticCorpus>(vocab_size, seed);
  return std::make_unique<MegatronDataset>(data.dataset, vocab_size, sequence_length, seed);
}

}  // namespace tprimat
