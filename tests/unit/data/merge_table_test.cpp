#include "data/tokenizer/word_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "data/tokenizer/word_pattern.h"

namespace tprimat::engine {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, MergeTable::Merge>;

// The definition: while any pair merges, merge the one of the lowest rank, of several the leftmost.
std::vector<int32_t> merge_plainly(const Rules& rules, std::vector<int32_t> tokens) {
  for (;;) {
    size_t best = tokens.size();
    MergeTable::Merge least;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto rule = rules.find({tokens[i], tokens[i + 1]});
      if (rule == rules.end() || rule->second.rank >= least.rank) continue;
      best = i;
      least = rule->second;
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = static_cast<int32_t>(least.token);
    tokens.erase(tokens.begin() + static_cast<int64_t>(best) + 1);
  }
}

// Rules as training makes them: each joins tokens that are there already, and its result is new.
Rules draw_rules(std::mt19937& random, int32_t letters, int32_t merges) {
  Rules rules;
  int32_t tokens = letters;
  while (static_cast<int32_t>(rules.size()) < merges) {
    const auto draw = [&] { return static_cast<int32_t>(random() % static_cast<uint32_t>(tokens)); };
    const std::pair<int32_t, int32_t> pair{draw(), draw()};
    if (rules.emplace(pair, MergeTable::Merge{static_cast<uint32_t>(rules.size()), static_cast<uint32_t>(tokens)})
            .second)
      ++tokens;
  }
  return rules;
}

TEST(WordMerger, IsTheDefinitionForShortAndLongWords) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const Rules rules = draw_rules(random, 3, 40);
    MergeTable table(rules.size());
    for (const auto& [pair, merge] : rules) table.insert(pair.first, pair.second, merge);
    WordMerger merger(table);
    for (const size_t length : {0u, 1u, 2u, 3u, 9u, 47u, 48u, 49u, 300u}) {
      std::vector<int32_t> tokens(length);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 3);
      const std::vector<int32_t> expected = merge_plainly(rules, tokens);
      merger.merge(tokens);
      EXPECT_EQ(tokens, expected) << length;
    }
  }
}

TEST(WordCache, GivesBackWhatWasPutAndForgetsWhenFull) {
  WordCache cache;
  const auto key_of = [](const std::string& word) {
    return WordCache::make_key(word.data(), word.data() + word.size(), word.data() + word.size());
  };
  for (int i = 0; i < 200000; ++i) {
    const std::string word = std::string(i % 3 == 0 ? 15 : 0, 'w') + std::to_string(i);
    const std::vector<int32_t> tokens(static_cast<size_t>(i % 7), i);
    cache.insert(key_of(word), tokens);
    std::vector<int32_t> found;
    ASSERT_TRUE(cache.append(key_of(word), found));
    ASSERT_EQ(found, tokens);
  }
  std::vector<int32_t> found;
  EXPECT_FALSE(cache.append(key_of(std::string(15, 'w') + "0"), found));
  EXPECT_TRUE(found.empty());
}

TEST(WordCache, KeysAreTheSameFromTheMiddleAndFromTheEndOfText) {
  const std::string text = "0123456789abcdef and more that follows";
  for (size_t length = 1; length <= 16; ++length) {
    const char* const end = text.data() + length;
    const auto inside = WordCache::make_key(text.data(), end, text.data() + text.size());
    const auto last = WordCache::make_key(text.data(), end, end);
    EXPECT_EQ(inside.low, last.low);
    EXPECT_EQ(inside.high, last.high);
    EXPECT_EQ(inside.length, length);
  }
}

std::vector<std::string> words(WordPattern pattern, std::string_view text) {
  std::vector<std::string> found;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    const char* const behind = scanner_of(pattern)(at, end);
    found.emplace_back(at, behind);
    at = behind;
  }
  return found;
}

TEST(WordPattern, CutsAsItsExpressionSays) {
  using W = std::vector<std::string>;
  EXPECT_EQ(words(WordPattern::gpt2, "We'll see  it's 2024!?\n\n ok  "),
            (W{"We", "'ll", " see", " ", " it", "'s", " 2024", "!?", "\n\n", " ok", "  "}));
  EXPECT_EQ(words(WordPattern::llama3, "We'LL see  12345 (ok)\n\n  x\t y"),
            (W{"We", "'LL", " see", " ", " ", "123", "45", " (", "ok", ")\n\n", " ", " x", "\t", " y"}));
  EXPECT_EQ(words(WordPattern::qwen2, "a 12\r\n.b"), (W{"a", " ", "1", "2", "\r\n", ".b"}));
}

TEST(WordPattern, IsKnownByItsExpression) {
  for (const auto& [pattern, name] : EnumNames<WordPattern>::values)
    EXPECT_EQ(find_word_pattern(expression_of(pattern)), pattern) << name;
  EXPECT_EQ(find_word_pattern("\\w+"), std::nullopt);
}

}  // namespace
}  // namespace tprimat::engine
