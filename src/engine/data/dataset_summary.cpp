#include "data/dataset_summary.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <vector>

#include "data/megatron_dataset.h"

namespace tprimat::engine {
namespace {

class TokenCensus {
 public:
  explicit TokenCensus(const TokenStream& stream) {
    for (size_t sequence = 0; sequence < stream.index().sizes.size(); ++sequence) scan(stream, sequence);
  }
  std::optional<int64_t> largest() const {
    return seen_.empty() ? std::nullopt : std::optional(static_cast<int64_t>(seen_.size()) - 1);
  }
  int64_t distinct() const { return std::count(seen_.begin(), seen_.end(), true); }

 private:
  void scan(const TokenStream& stream, size_t sequence) {
    constexpr int64_t k_any_token = std::numeric_limits<int32_t>::max(), k_chunk = 1 << 16;
    const int64_t size = stream.index().sizes[sequence];
    for (int64_t start = 0; start < size; start += k_chunk) {
      chunk_.resize(static_cast<size_t>(std::min(k_chunk, size - start)));
      stream.read({sequence, start}, chunk_, k_any_token);
      for (const int32_t token : chunk_) mark(static_cast<size_t>(token));
    }
  }
  void mark(size_t token) {
    if (token >= seen_.size()) seen_.resize(token + 1);
    seen_[token] = true;
  }

  std::vector<bool> seen_;
  std::vector<int32_t> chunk_;
};

}  // namespace

DatasetSummary summarise_dataset(const std::string& prefix) {
  const TokenStream stream(prefix);
  const MegatronIndex& index = stream.index();
  DatasetSummary summary;
  summary.prefix = stream.prefix();
  summary.type = index.type;
  summary.tokens = stream.num_tokens();
  summary.sequences = static_cast<int64_t>(index.sizes.size());
  summary.documents = index.num_documents();
  summary.bin_bytes = static_cast<int64_t>(std::filesystem::file_size(stream.prefix() + ".bin"));
  summary.idx_bytes = static_cast<int64_t>(std::filesystem::file_size(stream.prefix() + ".idx"));
  if (!index.sizes.empty()) {
    const auto [shortest, longest] = std::minmax_element(index.sizes.begin(), index.sizes.end());
    summary.shortest_sequence = *shortest;
    summary.longest_sequence = *longest;
  }
  const TokenCensus census(stream);
  summary.largest_token = census.largest();
  summary.distinct_tokens = census.distinct();
  return summary;
}

namespace {

void count_samples(SplitSummary& summary, const MegatronIndex& index, const SplitQuestion& question) {
  if (question.sequence_length == 0 || summary.tokens <= question.sequence_length) return;
  const SampleOrder order = order_samples(
      {index.sizes, {summary.first_sequence, summary.end_sequence}, question.sequence_length, question.samples, 0});
  summary.samples = order.samples();
  summary.epochs = order.epochs;
}

}  // namespace

std::vector<SplitSummary> summarise_splits(const std::string& prefix, const SplitQuestion& question) {
  const TokenStream stream(prefix);
  const std::vector<int32_t>& sizes = stream.index().sizes;
  std::vector<SplitSummary> summaries;
  for (const auto& [split, name] : EnumNames<DataSplit>::values) {
    const auto range = split_sequences(question.weights, split, static_cast<int64_t>(sizes.size()));
    if (!range) continue;
    SplitSummary summary;
    summary.split = split;
    summary.first_sequence = range->begin;
    summary.end_sequence = range->end;
    summary.sequences = range->count();
    summary.tokens = std::accumulate(sizes.begin() + range->begin, sizes.begin() + range->end, int64_t{0});
    count_samples(summary, stream.index(), question);
    summaries.push_back(summary);
  }
  return summaries;
}

}  // namespace tprimat::engine
