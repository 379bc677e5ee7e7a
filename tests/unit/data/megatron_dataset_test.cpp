#include "data/megatron_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/dataset_writer.h"
#include "example_data.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// 0, 1, 2, ... in documents of 10 tokens.
std::string write_counting(const std::string& prefix, int32_t tokens, int64_t vocab_size) {
  DatasetWriter writer(prefix, vocab_size);
  for (int32_t start = 0; start < tokens; start += 10) {
    std::vector<int32_t> document(static_cast<size_t>(std::min(10, tokens - start)));
    std::iota(document.begin(), document.end(), start);
    writer.append_document(document);
  }
  writer.finish();
  return prefix;
}

void patch(const std::string& path, size_t offset, const void* bytes, size_t count) {
  std::string content = read_file(path);
  ASSERT_LE(offset + count, content.size());
  std::memcpy(content.data() + offset, bytes, count);
  write_file_atomically(path, content);
}

TEST(DatasetWriter, WritesMegatronsBytes) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "made/deep/counting", 15, 100);
  const std::string index = read_file(prefix + ".idx");
  ASSERT_EQ(index.size(), 34u + 2 * 12 + 3 * 8);
  EXPECT_EQ(index.substr(0, 9), std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(index.substr(9, 9), std::string("\1\0\0\0\0\0\0\0\x08", 9));
  EXPECT_EQ(index.substr(34, 8), std::string("\x0a\0\0\0\5\0\0\0", 8));
  EXPECT_EQ(index[50], 20);  // the second sequence starts at byte 20
  const std::string tokens = read_file(prefix + ".bin");
  ASSERT_EQ(tokens.size(), 30u);
  EXPECT_EQ(tokens.substr(0, 6), std::string("\0\0\1\0\2\0", 6));
}

TEST(DatasetWriter, ChoosesTheWidthAsMegatron) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(TokenStream(write_counting(folder / "narrow", 5, 65499)).index().type, TokenType::uint16);
  EXPECT_EQ(TokenStream(write_counting(folder / "wide", 5, 65500)).index().type, TokenType::int32);
}

TEST(DatasetWriter, RefusesATokenThatDoesNotFit) {
  const test::TemporaryFolder folder;
  const auto writes = [&](TokenType type, int32_t token) {
    return message_of([&] { DatasetWriter(folder / "narrow", type).append_sequence(std::vector<int32_t>{1, token}); });
  };
  EXPECT_EQ(writes(TokenType::uint16, 65535), "");
  EXPECT_NE(writes(TokenType::uint16, 65536).find("a token of sequence 0 does not fit the type uint16"),
            std::string::npos);
  EXPECT_NE(writes(TokenType::int8, 128), "");
  EXPECT_NE(writes(TokenType::float32, (1 << 24) + 1), "");
  EXPECT_EQ(writes(TokenType::float64, (1 << 24) + 1), "");
}

TEST(DatasetWriter, LeavesNothingWithoutFinish) {
  const test::TemporaryFolder folder;
  { DatasetWriter(folder / "half", 100).append_document(std::vector<int32_t>{1, 2, 3}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DatasetWriter, SaysWhatCannotBeWritten) {
  EXPECT_NE(message_of([] { DatasetWriter("/proc/nowhere/set", 100); }).find("/proc/nowhere"), std::string::npos);
}

TEST(TokenStream, ReadsAnyPartOfASequence) {
  const test::TemporaryFolder folder;
  const TokenStream stream(write_counting(folder / "counting", 95, 100) + ".bin");
  EXPECT_EQ(stream.num_tokens(), 95);
  std::vector<int32_t> tokens(4);
  stream.read({2, 3}, tokens, 100);
  EXPECT_EQ(tokens, (std::vector<int32_t>{23, 24, 25, 26}));
}

MegatronDataset open_counting(const std::string& prefix, const TokenRequest& request,
                              const std::string& weights = "100,0,0") {
  return MegatronDataset(prefix, request, weights);
}

// Sequences are 10 consecutive numbers, so wherever a sample goes from one to the next, the next begins with a full
// ten.
TEST(MegatronDataset, SamplesFollowTheShuffledSequencesAndShareOneToken) {
  const test::TemporaryFolder folder;
  const MegatronDataset data = open_counting(write_counting(folder / "counting", 100, 100), {100, 8, 42});
  ASSERT_EQ(data.order().samples(), 12);
  std::vector<int32_t> sample(9), stream(97, -1);
  for (int64_t i = 0; i < 12; ++i) {
    data.read_sample(i, sample);
    const auto place = static_cast<int64_t>(data.order().shuffle[static_cast<size_t>(i)]) * 8;
    std::copy(sample.begin(), sample.end(), stream.begin() + place);
  }
  std::set<int32_t> starts;
  for (size_t i = 0; i < stream.size(); ++i) {
    if (i % 10 == 0) starts.insert(stream[i]);
    EXPECT_EQ(stream[i], stream[i / 10 * 10] + static_cast<int32_t>(i % 10));
  }
  EXPECT_EQ(starts.size(), 10u);
}

std::vector<int32_t> first_tokens(const MegatronDataset& data, int64_t samples) {
  std::vector<int32_t> tokens(9), starts;
  for (int64_t i = 0; i < samples; ++i) {
    data.read_sample(i, tokens);
    starts.push_back(tokens.front());
  }
  return starts;
}

TEST(MegatronDataset, OrderDependsOnTheSeedAndRepeatsAfterTheLastSample) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 2000, 2000);
  const auto order = [&](int64_t seed, int64_t samples) {
    return first_tokens(open_counting(prefix, {2000, 8, seed}), samples);
  };
  EXPECT_EQ(order(1, 20), order(1, 20));
  EXPECT_NE(order(1, 20), order(2, 20));
  const std::vector<int32_t> twice = order(1, 2 * 249);
  EXPECT_TRUE(std::equal(twice.begin(), twice.begin() + 249, twice.begin() + 249));
}

TEST(MegatronDataset, SplitsShareNoSequence) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 1000, 1000);
  const auto lowest_highest = [&](DataSplit split) {
    const MegatronDataset data = open_counting(prefix, {1000, 8, 5, split}, "80,15,5");
    const std::vector<int32_t> tokens = first_tokens(data, data.order().samples());
    return std::pair(*std::min_element(tokens.begin(), tokens.end()) / 10,
                     *std::max_element(tokens.begin(), tokens.end()) / 10);
  };
  EXPECT_LT(lowest_highest(DataSplit::train).second, 80);
  EXPECT_GE(lowest_highest(DataSplit::valid).first, 80);
  EXPECT_LT(lowest_highest(DataSplit::valid).second, 95);
  EXPECT_GE(lowest_highest(DataSplit::test).first, 95);
  const auto empty = [&] { open_counting(prefix, {1000, 8, 5, DataSplit::test}, "1,1"); };
  EXPECT_NE(message_of(empty).find("leaves none of the 100 sequences for test"), std::string::npos);
}

TEST(MegatronDataset, RefusesASeedThatNumpyWouldNotTake) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 100, 100);
  EXPECT_NE(message_of([&] {
              open_counting(prefix, {100, 8, -1});
            }).find("between 0 and 4294967295"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { open_counting(prefix, {100, 8, 4294967295}); }), "");
}

TEST(MegatronDataset, SaysWhenItIsTooShort) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "short", 8, 100);
  EXPECT_NE(message_of([&] {
              open_counting(prefix, {100, 8, 1});
            }).find("holds 8 tokens, but one sample needs 9"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { open_counting(prefix, {100, 7, 1}); }), "");
  const std::string empty = write_counting(folder / "empty", 0, 100);
  EXPECT_NE(message_of([&] { open_counting(empty, {100, 8, 1}); }).find("holds 0 tokens"), std::string::npos);
}

TEST(MegatronDataset, NamesFileAndOffsetOfATokenOutsideTheVocabulary) {
  const test::TemporaryFolder folder;
  DatasetWriter writer(folder / "counting", 100);
  std::vector<int32_t> document(50);
  std::iota(document.begin(), document.end(), 0);
  writer.append_document(document);
  writer.finish();
  const MegatronDataset data = open_counting(folder / "counting", {40, 49, 1});
  std::vector<int32_t> tokens(50);
  const std::string message = message_of([&] { data.read_sample(0, tokens); });
  EXPECT_NE(message.find("counting.bin"), std::string::npos);
  EXPECT_NE(message.find("byte 80"), std::string::npos) << message;
}

template <class T>
void expect_reads_as(TokenType type) {
  const test::TemporaryFolder folder;
  const std::string prefix = folder / std::string(enum_name(type));
  const std::vector<T> values = {T(3), T(1), T(127)};
  write_file_atomically(prefix + ".bin",
                        std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  write_file_atomically(prefix + ".idx", print_megatron_index({type, {2, 1}, {0, 2 * sizeof(T)}, {0, 2}}));
  std::vector<int32_t> tokens(2), last(1);
  TokenStream(prefix).read({0, 0}, tokens, 128);
  TokenStream(prefix).read({1, 0}, last, 128);
  EXPECT_EQ(tokens, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(last, (std::vector<int32_t>{127}));
  EXPECT_NE(message_of([&] { TokenStream(prefix).read({1, 0}, last, 127); }), "");

  DatasetWriter writer(prefix + "_again", type);
  writer.append_sequence(tokens);
  writer.append_sequence(last);
  writer.end_document();
  writer.finish();
  for (const char* ending : {".bin", ".idx"})
    EXPECT_EQ(read_file(prefix + ending), read_file(prefix + "_again" + ending));
}

TEST(TokenStream, ReadsWhatItWritesInEveryType) {
  expect_reads_as<uint8_t>(TokenType::uint8);
  expect_reads_as<int8_t>(TokenType::int8);
  expect_reads_as<int16_t>(TokenType::int16);
  expect_reads_as<int32_t>(TokenType::int32);
  expect_reads_as<int64_t>(TokenType::int64);
  expect_reads_as<double>(TokenType::float64);
  expect_reads_as<float>(TokenType::float32);
  expect_reads_as<uint16_t>(TokenType::uint16);
}

TEST(TokenStream, RefusesNegativeAndFractionalTokens) {
  const test::TemporaryFolder folder;
  const auto refuses = [&](TokenType type, const auto value) {
    const std::string prefix = folder / "bad";
    write_file_atomically(prefix + ".bin", std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
    write_file_atomically(prefix + ".idx", print_megatron_index({type, {1}, {0}, {0, 1}}));
    std::vector<int32_t> token(1);
    return message_of([&] { TokenStream(prefix).read({0, 0}, token, 1000); }).find("byte 0") != std::string::npos;
  };
  EXPECT_TRUE(refuses(TokenType::int32, int32_t{-1}));
  EXPECT_TRUE(refuses(TokenType::int64, int64_t{1} << 40));
  EXPECT_TRUE(refuses(TokenType::float32, 1.5f));
  EXPECT_TRUE(refuses(TokenType::float64, std::nan("")));
}

TEST(MegatronIndex, RefusesEveryDamage) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 30, 100);
  const std::string sound = read_file(prefix + ".idx");
  // header 34 bytes, sizes from 34, pointers from 46, borders from 70
  const auto complaint = [&](size_t offset, auto value) {
    write_file_atomically(prefix + ".idx", sound);
    patch(prefix + ".idx", offset, &value, sizeof value);
    return message_of([&] { TokenStream stream(prefix); });
  };
  EXPECT_NE(complaint(3, 'x').find("does not start with MMIDIDX (at byte 3)"), std::string::npos);
  EXPECT_NE(complaint(9, uint64_t{2}).find("version 2"), std::string::npos);
  EXPECT_NE(complaint(17, uint8_t{9}).find("token type 9"), std::string::npos);
  EXPECT_NE(complaint(18, uint64_t{1} << 62).find("cut off"), std::string::npos);
  EXPECT_NE(complaint(26, uint64_t{1} << 62).find("cut off"), std::string::npos);
  EXPECT_NE(complaint(34, int32_t{-1}).find("size -1 (at byte 34)"), std::string::npos);
  EXPECT_NE(complaint(42, int32_t{11}).find("sequence 2"), std::string::npos);
  EXPECT_NE(complaint(54, int64_t{-4}).find("(at byte 54)"), std::string::npos);
  EXPECT_NE(complaint(54, int64_t{1} << 62).find("has 60 bytes"), std::string::npos);
  EXPECT_NE(complaint(70, int64_t{1}).find("document boundary 0"), std::string::npos);
  EXPECT_NE(complaint(78, int64_t{4}).find("document boundary 1"), std::string::npos);
  EXPECT_NE(complaint(94, int64_t{2}).find("the documents hold 2"), std::string::npos);
}

TEST(MegatronIndex, EveryShorterIndexIsRefused) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 30, 100);
  const std::string sound = read_file(prefix + ".idx");
  for (size_t length = 0; length < sound.size(); ++length) {
    write_file_atomically(prefix + ".idx", sound.substr(0, length));
    EXPECT_NE(message_of([&] { TokenStream stream(prefix); }).find("counting.idx"), std::string::npos) << length;
  }
  write_file_atomically(prefix + ".idx", sound + "xxx");  // one mode for each sequence
  EXPECT_TRUE(TokenStream(prefix).index().has_modes);
  write_file_atomically(prefix + ".idx", sound + "xx");
  EXPECT_NE(message_of([&] { TokenStream stream(prefix); }).find("2 bytes follow"), std::string::npos);
}

TEST(MegatronIndex, ShorterTokensAreRefused) {
  const test::TemporaryFolder folder;
  const std::string prefix = write_counting(folder / "counting", 30, 100);
  write_file_atomically(prefix + ".bin", read_file(prefix + ".bin").substr(0, 59));
  EXPECT_NE(message_of([&] { TokenStream stream(prefix); }).find("has 59 bytes"), std::string::npos);
  std::filesystem::remove(prefix + ".bin");
  EXPECT_NE(message_of([&] { TokenStream stream(prefix); }).find("No such file"), std::string::npos);
  std::filesystem::create_directory(prefix + ".bin");
  EXPECT_NE(message_of([&] { TokenStream stream(prefix); }).find("not a regular file"), std::string::npos);
}

TEST(SummariseDataset, CountsWhatIsThere) {
  const test::TemporaryFolder folder;
  const DatasetSummary summary = summarise_dataset(write_counting(folder / "counting", 25, 100));
  EXPECT_EQ(summary.tokens, 25);
  EXPECT_EQ(summary.sequences, 3);
  EXPECT_EQ(summary.documents, 3);
  EXPECT_EQ(summary.shortest_sequence, 5);
  EXPECT_EQ(summary.longest_sequence, 10);
  EXPECT_EQ(summary.largest_token, 24);
  EXPECT_EQ(summary.distinct_tokens, 25);
  EXPECT_EQ(summary.bin_bytes, 50);
}

TEST(WriteSyntheticDataset, HoldsTheCorpus) {
  const test::TemporaryFolder folder;
  write_synthetic_dataset({folder / "made", 1000, 300, 256, 7});
  const DatasetSummary summary = summarise_dataset(folder / "made");
  EXPECT_EQ(summary.tokens, 1000);
  EXPECT_EQ(summary.documents, 4);
  EXPECT_EQ(summary.shortest_sequence, 232);
  std::vector<int32_t> written(256), drawn(256);
  TokenStream(folder / "made").read({1, 0}, written, 300);
  open_token_source({}, {300, 255, 7})->read_sample(1, drawn);
  EXPECT_EQ(written, drawn);
}

TEST(WriteSyntheticDataset, NamesEveryBadOption) {
  const std::string message = message_of([] { write_synthetic_dataset({"x", 0, 0, 0, 7}); });
  for (const char* option : {"--tokens", "--vocab", "--document-length"})
    EXPECT_NE(message.find(option), std::string::npos) << option;
}

TEST(OpenTokenSource, ReadsAPairWrittenByMegatron) {
  const std::string prefix = TPRIMAT_SHARED_DATA "/traces/megatron_dataset/ag_news_prompt_inputs_document";
  SKIP_WITHOUT_EXAMPLE_DATA(prefix + ".idx");
  const DatasetSummary summary = summarise_dataset(prefix);
  EXPECT_EQ(summary.type, TokenType::int32);
  EXPECT_EQ(summary.documents, 100);
  EXPECT_EQ(summary.tokens * 4, summary.bin_bytes);
  const auto source = open_token_source({prefix}, {*summary.largest_token + 1, 128, 42});
  std::vector<int32_t> tokens(129);
  for (int64_t index = 0; index < 100; ++index) source->read_sample(index, tokens);
}

}  // namespace
}  // namespace tprimat::engine
