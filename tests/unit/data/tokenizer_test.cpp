#include "data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "data/tokenizer/byte_level_bpe.h"
#include "data/tokenizer/unicode.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

const std::string k_fixtures = TPRIMAT_SOURCE_DIR "/tests/unit/data/fixtures/";

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.make_encoder()->encode(text, tokens);
  return tokens;
}

// The goldens hold what the reference library makes of each text.
void expect_goldens(const std::string& file, const std::string& goldens, const std::string& key) {
  const auto tokenizer = open_tokenizer(k_fixtures + file);
  const Json json = parse_json(read_file(k_fixtures + goldens), goldens);
  const auto encoder = tokenizer->make_encoder();
  for (const int round : {1, 2}) {  // from the cache too
    for (size_t i = 0; i < json["texts"].size(); ++i) {
      std::vector<int32_t> tokens;
      encoder->encode(json["texts"][i].get<std::string>(), tokens);
      ASSERT_EQ(tokens, json[key][i].get<std::vector<int32_t>>())
          << key << " round " << round << ": " << print_json_line(json["texts"][i]);
    }
  }
  EXPECT_GE(json["texts"].size(), 100u);
}

TEST(ByteLevelBpe, AgreesWithTheRustLibraryOnGpt2) {
  expect_goldens("gpt2_tokenizer.json", "tokenizer_goldens.json", "gpt2");
}
TEST(ByteLevelBpe, AgreesWithTheRustLibraryOnLlama3) {
  expect_goldens("llama3_tokenizer.json", "tokenizer_goldens.json", "llama3");
}
TEST(ByteLevelBpe, AgreesWithTheRustLibraryOnQwen2) {
  expect_goldens("qwen2_tokenizer.json", "tokenizer_goldens.json", "qwen2");
}
TEST(SentencePiece, AgreesWithItsPythonPackageOnBpeWithByteFallback) {
  expect_goldens("llama2.model", "sentencepiece_goldens.json", "llama2");
}
TEST(SentencePiece, AgreesWithItsPythonPackageOnUnigram) {
  expect_goldens("unigram.model", "sentencepiece_goldens.json", "unigram");
}

TEST(Tokenizer, KnowsItsTokens) {
  const auto gpt2 = open_tokenizer(k_fixtures + "gpt2_tokenizer.json");
  EXPECT_EQ(gpt2->vocab_size(), 600);
  EXPECT_EQ(gpt2->end_of_document(), 0);
  EXPECT_EQ(gpt2->find_token("<|endoftext|>"), 0);
  EXPECT_EQ(gpt2->find_token("no such token"), std::nullopt);
  const auto llama3 = open_tokenizer(k_fixtures + "llama3_tokenizer.json");
  EXPECT_EQ(llama3->end_of_document(), llama3->find_token("<|end_of_text|>"));
  EXPECT_EQ(llama3->vocab_size(), 603);
  EXPECT_EQ(open_tokenizer(k_fixtures + "llama2.model")->end_of_document(), 2);
}

TEST(Tokenizer, EncodesNothingToNothing) {
  for (const char* file : {"gpt2_tokenizer.json", "qwen2_tokenizer.json", "unigram.model"})
    EXPECT_TRUE(encode(*open_tokenizer(k_fixtures + file), "").empty()) << file;
}

std::string complaint(const std::function<void(Json&)>& change) {
  Json json = parse_json(read_file(k_fixtures + "gpt2_tokenizer.json"), "");
  change(json);
  try {
    read_tokenizer_json(print_json_line(json), "tokenizer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::vector<std::pair<std::string, std::function<void(Json&)>>> k_not_understood = {
    {"", [](Json&) {}},
    {"\"WordPiece\"", [](Json& j) { j["model"]["type"] = "WordPiece"; }},
    {"dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }},
    {"continuing_subword_prefix", [](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; }},
    {"\"Metaspace\"",
     [](Json& j) {
       j["pre_tokenizer"] = {{"type", "Metaspace"}};
     }},
    {"\"Lowercase\"",
     [](Json& j) {
       j["normalizer"] = {{"type", "Lowercase"}};
     }},
    {"truncates",
     [](Json& j) {
       j["truncation"] = {{"max_length", 5}};
     }},
    {"single_word", [](Json& j) { j["added_tokens"][0]["single_word"] = true; }},
    {"has no \"model\"", [](Json& j) { j.erase("model"); }},
    {"not in the vocabulary", [](Json& j) { j["model"]["merges"].push_back("q zzzz"); }},
    {"not two tokens", [](Json& j) { j["model"]["merges"].push_back("a"); }},
    {"not between 0 and", [](Json& j) { j["model"]["vocab"]["a"] = -4; }},
    {"no token for byte 97",
     [](Json& j) {
       j["model"]["vocab"].erase("a"), j["model"]["merges"] = Json::array(), j["model"]["unk_token"] = "b";
     }},
    {"\\d+", [](Json& j) {
       j["pre_tokenizer"] = parse_json(
           R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\d+"},"behavior":"Isolated","invert":false},
               {"type":"ByteLevel","use_regex":false}]})",
           "");
     }}};

TEST(TokenizerJson, NamesWhatItDoesNotUnderstand) {
  for (const auto& [expected, change] : k_not_understood) {
    const std::string message = complaint(change);
    EXPECT_EQ(message.empty(), expected.empty()) << expected << ": " << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(TokenizerJson, RefusesWhatIsNoJson) {
  for (const char* bad : {"", "{", "[]", "null", "{\"model\": 3}"})
    EXPECT_THROW(read_tokenizer_json(bad, "tokenizer.json"), Error) << bad;
}

TEST(SentencePieceModel, RefusesWhatIsNoModel) {
  const std::string sound = read_file(k_fixtures + "unigram.model");
  for (const size_t length : {size_t{0}, size_t{1}, size_t{40}, sound.size() / 2})
    EXPECT_THROW(read_sentencepiece_model(sound.substr(0, length), "x.model"), Error) << length;
}

// Trained with rules that make E9 and C9 an e, the ligature FB01 fi, FF21 a, and AD nothing.
TEST(SentencePiece, NormalizesAsItsProgramDoes) {
  EXPECT_EQ(encode(*open_tokenizer(k_fixtures + "normalized.model"), "Éﬁ the cafés\u00ADA"),
            (std::vector<int32_t>{21, 22, 3, 21, 35, 34, 22, 13, 30, 0}));
}

// What the library says, or we say, of `sound` with some of its bytes replaced.
std::string complaint_about_model(std::string model, size_t place, std::string_view bytes) {
  model.replace(place, bytes.size(), bytes);
  try {
    read_sentencepiece_model(model, "x.model");
  } catch (const Error& error) {
    return error.problems().front().what;
  }
  return {};
}

TEST(SentencePieceModel, RefusesTablesThatLeadOutside) {
  const std::string sound = read_file(k_fixtures + "normalized.model");
  const std::string_view texts("\0a\0e\0fi\0", 8);
  const size_t end = sound.find(texts);
  ASSERT_NE(end, std::string::npos);
  const size_t trie = end - 256 * 4;
  const std::string_view trie_size("\0\4\0\0", 4), far("\0\xfc\xff\x7f", 4);
  ASSERT_EQ(std::string_view(sound).substr(trie - 4, 4), trie_size);
  EXPECT_EQ(complaint_about_model(sound, trie, ""), "");
  EXPECT_NE(complaint_about_model(sound, trie, far).find("unit 0 of its character map points outside"),
            std::string::npos);
  EXPECT_NE(complaint_about_model(sound, trie + 8, far).find("unit 2 of its character map"), std::string::npos);
  EXPECT_NE(complaint_about_model(sound, trie - 4, "\1").find("a trie of 1025 bytes"), std::string::npos);
  EXPECT_NE(complaint_about_model(sound, trie - 4, std::string_view("\0\0", 2)).find("a trie of 0 bytes"),
            std::string::npos);
  EXPECT_NE(complaint_about_model(sound, end + texts.size() - 1, "x").find("unterminated text"), std::string::npos);
}

TEST(SentencePieceModel, RefusesTextsOutsideOfTheCharacterMap) {
  const std::string sound = read_file(k_fixtures + "normalized.model");
  const size_t trie = sound.find(std::string_view("\0a\0e\0fi\0", 8)) - 256 * 4;
  size_t refused = 0;
  for (size_t unit = 0; unit < 256; ++unit) {
    const size_t place = trie + unit * 4;
    if ((sound[place + 3] & 0x80) == 0) continue;  // not a leaf
    const std::string message = complaint_about_model(sound, place, "\x09");
    EXPECT_TRUE(message.empty() || message.find("has text outside the map") != std::string::npos) << message;
    refused += !message.empty();
  }
  EXPECT_EQ(refused, 4u);  // one for each rule, and one for C9 and E9 together, which both become an e
}

// The library refuses it by an exception, not by a status.
TEST(SentencePieceModel, RefusesAPieceThatBeginsWithAZeroByte) {
  const std::string sound = read_file(k_fixtures + "unigram.model");
  const std::string message = complaint_about_model(sound, sound.find("ing"), std::string_view("\0", 1));
  EXPECT_NE(message.find("its pieces cannot be used"), std::string::npos) << message;
}

TEST(SentencePieceModel, RefusesAnEndlessPiece) {
  const std::string text(4097, 'a');
  const std::string piece = "\x0a\x81\x20" + text;
  const std::string model = "\x0a\x84\x20" + piece;
  EXPECT_NE(complaint_about_model(model, 0, "").find("a piece of 4097 bytes"), std::string::npos);
}

TEST(AddedTokenFinder, TakesTheLongestAtTheLeftmostPlace) {
  AddedTokenFinder finder;
  finder.add({"<a>", 1});
  finder.add({"<a>b", 2});
  finder.add({"x<", 3});
  const std::string text = "..<a>b x<a>";
  const auto first = finder.find(text, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, 2);
  EXPECT_EQ(first->begin, 2u);
  const auto second = finder.find(text, first->end);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, 3);
  EXPECT_FALSE(finder.find(text, second->end));
}

TEST(Utf8, RefusesWhatTheStandardRefuses) {
  EXPECT_TRUE(is_valid_utf8(
      "plain ascii, long enough for the fast way; \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc3", "\xff", "12345678\xfe"})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  EXPECT_EQ(valid_utf8_prefix("12345678abc\xff..."), 11u);
}

}  // namespace
}  // namespace tprimat::engine
