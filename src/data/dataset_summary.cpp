#include "data/dataset_summary.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "data/megatron_dataset.h"

namespace tprimat {
namespace {

void scan_tokens(DatasetSummary& summary, const TokenStream& stream) {
  constexpr int64_t k_any_token = std::numeric_limits<int32_t>::max();
  constexpr int64_t k_chunk = 1 << 16;
  std::vector<bool> seen;
  std::vector<int32_t> chunk;
  for (int64_t start = 0; start < summary.tokens; start += k_chunk) {
    chunk.resize(static_cast<size_t>(std::min(k_chunk, summary.tokens - start)));
    stream.read(start, chunk, k_any_token);
    for (const int32_t token : chunk) {
      const auto position = static_cast<size_t>(token);
      if (position >= seen.size()) seen.resize(position + 1);
      seen[position] = true;
    }
  }
  if (!seen.empty()) summary.largest_token = static_cast<int64_t>(seen.size()) - 1;
  summary.distinct_tokens = std::count(seen.begin(), seen.end(), true);
}

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
  scan_tokens(summary, stream);
  return summary;
}

}  // namespace tprimat
