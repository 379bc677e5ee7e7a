#include "data/synthetic_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tprimat::engine {
namespace {

constexpr size_t k_length = 257;

std::vector<int32_t> sample_of(const TokenSource& source, int64_t index) {
  std::vector<int32_t> tokens(k_length, -1);
  source.read_sample(index, tokens);
  return tokens;
}

TEST(SyntheticCorpus, TheSameSampleWhateverWasReadBefore) {
  const SyntheticCorpus once(5000, 42), again(5000, 42);
  const auto later = sample_of(once, 17);
  for (int64_t index = 0; index < 17; ++index) sample_of(again, index);
  EXPECT_EQ(sample_of(again, 17), later);
}

// The corpus is part of what a result means: this changes only with a new version of it.
TEST(SyntheticCorpus, StaysWhatItIs) {
  std::vector<int32_t> tokens(8);
  SyntheticCorpus(1000, 42).read_sample(0, tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{9, 0, 5, 10, 15, 4, 9, 11}));
}

TEST(SyntheticCorpus, SeedAndIndexChangeTheSample) {
  const SyntheticCorpus one(5000, 1), two(5000, 2);
  EXPECT_NE(sample_of(one, 0), sample_of(two, 0));
  EXPECT_NE(sample_of(one, 0), sample_of(one, 1));
}

TEST(SyntheticCorpus, StaysInsideAnyVocabulary) {
  for (const int64_t vocab : {1, 2, 15, 16, 17, 50257}) {
    const SyntheticCorpus corpus(vocab, 3);
    EXPECT_EQ(corpus.vocab_size(), vocab);
    for (int64_t index = 0; index < 20; ++index)
      for (const int32_t token : sample_of(corpus, index)) ASSERT_TRUE(token >= 0 && token < vocab) << vocab;
  }
}

TEST(SyntheticCorpus, SuccessorsAreAPermutation) {
  const SyntheticCorpus corpus(1000, 3);
  std::vector<bool> seen(1000);
  for (int32_t token = 0; token < 1000; ++token) seen[static_cast<size_t>(corpus.successor(token))] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
}

// How well a model can predict the corpus, in nats per token. The loss starts near `uniform` and falls through the
// others in turn.
struct CorpusEntropy {
  double uniform = 0;  // ln V: knows nothing
  double unigram = 0;  // knows how frequent each token is
  double markov = 0;   // also knows what follows the previous token, but not where a copy runs
  double floor = 0;    // also recognises copies; no model can stay below this
};

constexpr double k_follow = double{SyntheticCorpus::k_follow_numerator} / SyntheticCorpus::k_follow_denominator;
constexpr double k_copy = double{SyntheticCorpus::k_copy_numerator} / SyntheticCorpus::k_copy_denominator;

double surprise(double probability) { return probability > 0 ? -probability * std::log(probability) : 0; }

// The z(r) of all tokens.
std::vector<double> fresh_probabilities(int64_t vocab_size) {
  std::vector<double> shares;
  for (int64_t rank = 1; rank <= vocab_size; ++rank) shares.push_back(1.0 / static_cast<double>(rank));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<double> stationary_frequencies(const SyntheticCorpus& corpus, const std::vector<double>& fresh) {
  constexpr int k_rounds = 90;  // k_follow^90 < 1e-18
  std::vector<double> current = fresh, next(fresh.size());
  for (int round = 0; round < k_rounds; ++round) {
    for (size_t token = 0; token < current.size(); ++token) {
      const auto after = static_cast<size_t>(corpus.successor(static_cast<int32_t>(token)));
      next[after] = (1 - k_follow) * fresh[after] + k_follow * current[token];
    }
    current.swap(next);
  }
  return current;
}

// With m = k_follow, c = k_copy, n segments per sample, s(x) the successor of x, π the stationary frequencies:
//   unigram = −Σ π ln π            π(s(x)) = (1−m)·z(s(x)) + m·π(x)
//   markov  = Σ_x π(x)·H(Y|x)      P(y|x) = (1−m)·z(y) + m·[y = s(x)]
//   floor   = (share of fresh segments)·markov + (entropy of the choices per segment) / 32
// The floor is that of a reader who knows where segments begin; it leaves out the first token after a border and fresh
// segments that happen to look like copies.
CorpusEntropy entropy_of(const SyntheticCorpus& corpus, int64_t sequence_length) {
  const std::vector<double> fresh = fresh_probabilities(corpus.vocab_size());
  const std::vector<double> frequencies = stationary_frequencies(corpus, fresh);
  CorpusEntropy entropy;
  entropy.uniform = std::log(static_cast<double>(corpus.vocab_size()));
  double all_fresh = 0;  // Σ over all y of the surprise of (1−m)·z(y)
  for (size_t token = 0; token < frequencies.size(); ++token) {
    entropy.unigram += surprise(frequencies[token]);
    all_fresh += surprise((1 - k_follow) * fresh[token]);
  }
  for (size_t token = 0; token < frequencies.size(); ++token) {
    const auto after = static_cast<size_t>(corpus.successor(static_cast<int32_t>(token)));
    const double share = (1 - k_follow) * fresh[after];
    entropy.markov += frequencies[token] * (all_fresh - surprise(share) + surprise(share + k_follow));
  }
  constexpr int64_t k_segment = SyntheticCorpus::k_segment;
  const int64_t segments = std::max<int64_t>(1, (sequence_length + 1) / k_segment);
  double choices = static_cast<double>(segments - 1) * (surprise(k_copy) + surprise(1 - k_copy));
  for (int64_t earlier = 1; earlier < segments; ++earlier) choices += k_copy * std::log(static_cast<double>(earlier));
  const double fresh_segments = 1 + static_cast<double>(segments - 1) * (1 - k_copy);
  entropy.floor =
      (fresh_segments * entropy.markov + choices / static_cast<double>(k_segment)) / static_cast<double>(segments);
  return entropy;
}

TEST(SyntheticCorpus, EntropiesFallInOrder) {
  for (const int64_t vocab : {256, 8192, 50257}) {
    const CorpusEntropy entropy = entropy_of(SyntheticCorpus(vocab, 1), 1024);
    EXPECT_NEAR(entropy.uniform, std::log(static_cast<double>(vocab)), 1e-12);
    EXPECT_LT(entropy.unigram, 0.85 * entropy.uniform);
    EXPECT_LT(entropy.markov, 0.7 * entropy.unigram);
    EXPECT_LT(entropy.floor, 0.9 * entropy.markov);
    EXPECT_GT(entropy.floor, 0.5 * entropy.markov);
  }
}

TEST(SyntheticCorpus, EntropiesAreThoseOfTheDocumentation) {
  const CorpusEntropy entropy = entropy_of(SyntheticCorpus(50257, 1), 1024);
  EXPECT_NEAR(entropy.uniform, 10.825, 5e-4);
  EXPECT_NEAR(entropy.unigram, 7.665, 5e-4);
  EXPECT_NEAR(entropy.markov, 3.488, 5e-4);
  EXPECT_NEAR(entropy.floor, 2.679, 5e-4);
}

// The measured mean surprise of a reader that knows the language, against the stated entropy.
TEST(SyntheticCorpus, StatedEntropiesAreThoseOfTheTokens) {
  constexpr int64_t k_vocab = 256, k_samples = 4000;
  const SyntheticCorpus corpus(k_vocab, 5);
  const std::vector<double> fresh = fresh_probabilities(k_vocab);
  std::vector<double> counts(k_vocab);
  double markov = 0, total = 0, transitions = 0;
  for (int64_t index = 0; index < k_samples; ++index) {
    const auto tokens = sample_of(corpus, index);
    for (size_t i = 0; i < tokens.size(); ++i, ++total) {
      ++counts[static_cast<size_t>(tokens[i])];
      if (i % SyntheticCorpus::k_segment == 0) continue;  // a copied segment starts afresh
      const double share = (1 - k_follow) * fresh[static_cast<size_t>(tokens[i])];
      markov -= std::log(share + (tokens[i] == corpus.successor(tokens[i - 1]) ? k_follow : 0));
      ++transitions;
    }
  }
  double unigram = 0;
  for (const double count : counts) unigram -= count > 0 ? count / total * std::log(count / total) : 0;
  const CorpusEntropy entropy = entropy_of(corpus, 256);
  EXPECT_NEAR(unigram, entropy.unigram, 0.02);
  EXPECT_NEAR(markov / transitions, entropy.markov, 0.02);
}

TEST(SyntheticCorpus, AboutAQuarterOfTheSegmentsAreCopies) {
  const SyntheticCorpus corpus(50257, 5);
  constexpr size_t k_segment = SyntheticCorpus::k_segment;
  int copies = 0, segments = 0;
  for (int64_t index = 0; index < 200; ++index) {
    const auto tokens = sample_of(corpus, index);
    for (size_t start = k_segment; start + k_segment <= tokens.size(); start += k_segment, ++segments)
      for (size_t from = 0; from < start; from += k_segment)
        if (std::equal(tokens.begin() + static_cast<long>(from), tokens.begin() + static_cast<long>(from + k_segment),
                       tokens.begin() + static_cast<long>(start))) {
          ++copies;
          break;
        }
  }
  EXPECT_NEAR(static_cast<double>(copies) / segments, 0.25, 0.05);
}

}  // namespace
}  // namespace tprimat::engine
