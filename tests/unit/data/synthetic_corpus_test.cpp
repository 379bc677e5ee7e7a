#include "data/synthetic_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(SyntheticCorpus, EntropiesFallInOrder) {
  for (const int64_t vocab : {256, 8192, 50257}) {
    const CorpusEntropy entropy = SyntheticCorpus(vocab, 1).entropy(1024);
    EXPECT_NEAR(entropy.uniform, std::log(static_cast<double>(vocab)), 1e-12);
    EXPECT_LT(entropy.unigram, 0.85 * entropy.uniform);
    EXPECT_LT(entropy.markov, 0.7 * entropy.unigram);
    EXPECT_LT(entropy.floor, 0.9 * entropy.markov);
    EXPECT_GT(entropy.floor, 0.5 * entropy.markov);
  }
}

// The measured mean surprise of a reader that knows the language, against the stated entropy.
TEST(SyntheticCorpus, StatedEntropiesAreThoseOfTheTokens) {
  constexpr int64_t k_vocab = 256, k_samples = 4000;
  const SyntheticCorpus corpus(k_vocab, 5);
  double weight = 0;
  for (int64_t rank = 1; rank <= k_vocab; ++rank) weight += 1.0 / static_cast<double>(rank);
  const double follow = double{SyntheticCorpus::k_follow_numerator} / SyntheticCorpus::k_follow_denominator;
  std::vector<double> counts(k_vocab);
  double markov = 0, total = 0, transitions = 0;
  for (int64_t index = 0; index < k_samples; ++index) {
    const auto tokens = sample_of(corpus, index);
    for (size_t i = 0; i < tokens.size(); ++i, ++total) {
      ++counts[static_cast<size_t>(tokens[i])];
      if (i % SyntheticCorpus::k_segment == 0) continue;  // a copied segment starts afresh
      const double fresh = (1 - follow) / (static_cast<double>(tokens[i] + 1) * weight);
      markov -= std::log(fresh + (tokens[i] == corpus.successor(tokens[i - 1]) ? follow : 0));
      ++transitions;
    }
  }
  double unigram = 0;
  for (const double count : counts) unigram -= count > 0 ? count / total * std::log(count / total) : 0;
  const CorpusEntropy entropy = corpus.entropy(256);
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
