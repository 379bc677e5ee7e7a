#include "data/synthetic_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr uint64_t k_weight_one = uint64_t{1} << 40;
constexpr int32_t k_band = 16;           // ranks whose successors form one cycle
constexpr int k_stationary_rounds = 90;  // k_follow^90 < 1e-18
constexpr double k_follow = double{SyntheticCorpus::k_follow_numerator} / SyntheticCorpus::k_follow_denominator;
constexpr double k_copy = double{SyntheticCorpus::k_copy_numerator} / SyntheticCorpus::k_copy_denominator;

double surprise(double probability) { return probability > 0 ? -probability * std::log(probability) : 0; }

}  // namespace

SyntheticCorpus::SyntheticCorpus(int64_t vocab_size, int64_t seed) : seed_(static_cast<uint64_t>(seed)) {
  CHECK(vocab_size > 0);
  cumulative_weights_.reserve(static_cast<size_t>(vocab_size));
  uint64_t sum = 0;
  for (uint64_t rank = 1; rank <= static_cast<uint64_t>(vocab_size); ++rank)
    cumulative_weights_.push_back(sum += k_weight_one / rank);
}

int32_t SyntheticCorpus::draw_fresh(RandomStream& random) const {
  const uint64_t point = random.next_below(cumulative_weights_.back());
  return static_cast<int32_t>(std::upper_bound(cumulative_weights_.begin(), cumulative_weights_.end(), point) -
                              cumulative_weights_.begin());
}

// Steps of 5 through a full band of 16, which visits all of it; steps of 1 through the shorter last band.
int32_t SyntheticCorpus::successor(int32_t token) const {
  const int32_t start = token / k_band * k_band;
  const int32_t length = std::min(k_band, static_cast<int32_t>(vocab_size()) - start);
  return start + (token - start + (length == k_band ? 5 : 1)) % length;
}

void SyntheticCorpus::read_sample(int64_t index, std::span<int32_t> tokens) const {
  CHECK(index >= 0);
  RandomStream random(seed_, static_cast<uint64_t>(index));
  const auto length = static_cast<int64_t>(tokens.size());
  for (int64_t start = 0; start < length; start += k_segment) {
    const int64_t end = std::min(start + k_segment, length);
    if (start > 0 && random.next_chance(k_copy_numerator, k_copy_denominator)) {
      const auto from = static_cast<int64_t>(random.next_below(static_cast<uint64_t>(start / k_segment))) * k_segment;
      std::copy_n(tokens.begin() + from, end - start, tokens.begin() + start);
      continue;
    }
    for (int64_t i = start; i < end; ++i) {
      const bool follows = i > 0 && random.next_chance(k_follow_numerator, k_follow_denominator);
      tokens[static_cast<size_t>(i)] = follows ? successor(tokens[static_cast<size_t>(i - 1)]) : draw_fresh(random);
    }
  }
}

double SyntheticCorpus::fresh_probability(size_t token) const {
  const uint64_t weight = cumulative_weights_[token] - (token == 0 ? 0 : cumulative_weights_[token - 1]);
  return static_cast<double>(weight) / static_cast<double>(cumulative_weights_.back());
}

std::vector<double> SyntheticCorpus::stationary_frequencies() const {
  std::vector<double> current(cumulative_weights_.size()), next(cumulative_weights_.size());
  for (size_t token = 0; token < current.size(); ++token) current[token] = fresh_probability(token);
  for (int round = 0; round < k_stationary_rounds; ++round) {
    for (size_t token = 0; token < current.size(); ++token) {
      const auto after = static_cast<size_t>(successor(static_cast<int32_t>(token)));
      next[after] = (1 - k_follow) * fresh_probability(after) + k_follow * current[token];
    }
    current.swap(next);
  }
  return current;
}

CorpusEntropy SyntheticCorpus::entropy(int64_t sequence_length) const {
  CorpusEntropy entropy;
  entropy.uniform = std::log(static_cast<double>(vocab_size()));
  const std::vector<double> frequencies = stationary_frequencies();
  double fresh = 0;  // Σ over all y of the surprise of (1−m)·z(y)
  for (size_t token = 0; token < frequencies.size(); ++token) {
    entropy.unigram += surprise(frequencies[token]);
    fresh += surprise((1 - k_follow) * fresh_probability(token));
  }
  for (size_t token = 0; token < frequencies.size(); ++token) {
    const double fresh_share =
        (1 - k_follow) * fresh_probability(static_cast<size_t>(successor(static_cast<int32_t>(token))));
    entropy.markov += frequencies[token] * (fresh - surprise(fresh_share) + surprise(fresh_share + k_follow));
  }
  const int64_t segments = std::max<int64_t>(1, (sequence_length + 1) / k_segment);
  double choices = static_cast<double>(segments - 1) * (surprise(k_copy) + surprise(1 - k_copy));
  for (int64_t earlier = 1; earlier < segments; ++earlier) choices += k_copy * std::log(static_cast<double>(earlier));
  const double fresh_segments = 1 + static_cast<double>(segments - 1) * (1 - k_copy);
  entropy.floor =
      (fresh_segments * entropy.markov + choices / static_cast<double>(k_segment)) / static_cast<double>(segments);
  return entropy;
}

std::string SyntheticCorpus::describe() const {
  const CorpusEntropy nats = entropy(1);  // of these three, none depends on the length
  return fmt::format(
      "synthetic corpus, vocabulary {}, seed {}; nats per token: uniform {:.3f}, unigram {:.3f}, Markov {:.3f}",
      vocab_size(), static_cast<int64_t>(seed_), nats.uniform, nats.unigram, nats.markov);
}

}  // namespace tprimat::engine
