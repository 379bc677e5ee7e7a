#include "data/megatron_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_longest_sample = int64_t{1} << 30;

std::string strip_ending(std::string prefix) {
  for (const std::string_view ending : {".bin", ".idx"})
    if (prefix.ends_with(ending)) return prefix.substr(0, prefix.size() - ending.size());
  return prefix;
}

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

TokenStream::TokenStream(std::string prefix)
    : prefix_(strip_ending(std::move(prefix))),
      bin_(prefix_ + ".bin"),
      index_(load_megatron_index(prefix_ + ".idx", static_cast<int64_t>(bin_.bytes().size()))),
      num_tokens_(std::accumulate(index_.sizes.begin(), index_.sizes.end(), int64_t{0})) {
  if (index_.has_modes)
    log_note(fmt::format("{}.idx: sequence modes are ignored; every sequence is read as text", prefix_));
}

void TokenStream::read(TokenPlace place, std::span<int32_t> out, int64_t vocab_size) const {
  const int64_t width = token_bytes(index_.type);
  CHECK(place.offset >= 0 && place.offset + static_cast<int64_t>(out.size()) <= index_.sizes.at(place.sequence));
  const int64_t at = index_.pointers[place.sequence] + place.offset * width;
  const size_t converted = read_tokens(index_.type, bin_.bytes().data() + at, out, vocab_size);
  if (converted != out.size())
    throw Error(Problem{fmt::format("the token at byte {} is not in the vocabulary of {}",
                                    at + static_cast<int64_t>(converted) * width, vocab_size),
                        prefix_ + ".bin", "train with the vocabulary of this data set"});
}

namespace {

uint32_t numpy_seed(int64_t seed) {
  if (seed >= 0 && seed <= std::numeric_limits<uint32_t>::max()) return static_cast<uint32_t>(seed);
  throw Error(Problem{fmt::format("the seed of the data order must be between 0 and 4294967295, got {}", seed), "seed",
                      "choose a seed in that range: the order is numpy's"});
}

SequenceRange choose_range(const TokenStream& stream, const std::string& weights, DataSplit split) {
  const auto range = split_sequences(weights, split, static_cast<int64_t>(stream.index().sizes.size()));
  if (range && range->count() > 0) return *range;
  throw Error(Problem{fmt::format("the split \"{}\" leaves none of the {} sequences for {}", weights,
                                  stream.index().sizes.size(), enum_name(split)),
                      stream.prefix(), "give it a larger weight, or use a data set of more sequences"});
}

}  // namespace

MegatronDataset::MegatronDataset(std::string prefix, const TokenRequest& request, const std::string& split_weights)
    : stream_(std::move(prefix)), request_(request) {
  CHECK(request.sequence_length > 0 && request.sequence_length < k_longest_sample);
  CHECK(request.vocab_size > 0 && request.vocab_size <= std::numeric_limits<int32_t>::max());
  const uint32_t seed = numpy_seed(request.seed);
  if (stream_.num_tokens() > request.sequence_length)
    order_ = order_samples({stream_.index().sizes, choose_range(stream_, split_weights, request.split),
                            request.sequence_length, request.samples, seed});
  if (order_.tokens_per_epoch <= request.sequence_length)
    throw Error(Problem{fmt::format("holds {} tokens{}, but one sample needs {}",
                                    order_.tokens_per_epoch ? order_.tokens_per_epoch : stream_.num_tokens(),
                                    order_.tokens_per_epoch ? fmt::format(" for {}", enum_name(request.split)) : "",
                                    request.sequence_length + 1),
                        stream_.prefix() + ".bin", "use a larger data set or a shorter sequence"});
}

void MegatronDataset::read_sample(int64_t index, std::span<int32_t> tokens) const {
  CHECK(index >= 0 && static_cast<int64_t>(tokens.size()) == request_.sequence_length + 1);
  const SampleStart start = order_.starts[order_.shuffle[static_cast<size_t>(index % order_.samples())]];
  int64_t offset = start.offset;
  for (size_t position = start.position; !tokens.empty(); ++position, offset = 0) {
    const auto sequence = static_cast<size_t>(order_.sequences[position]);
    const auto count = std::min(tokens.size(), static_cast<size_t>(stream_.index().sizes[sequence] - offset));
    stream_.read({sequence, offset}, tokens.first(count), request_.vocab_size);
    tokens = tokens.subspan(count);
  }
}

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
