#include "data/encode/encode_dataset.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "base/files.h"
#include "data/megatron_dataset.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

const std::string k_tokenizer = TPRIMAT_SOURCE_DIR "/tests/unit/data/fixtures/gpt2_tokenizer.json";

EncodeSummary encode_files(EncodeRequest request) {
  return encode_dataset(request, *open_tokenizer(k_tokenizer), [](const EncodeProgress&) {});
}

std::string complaint(const EncodeRequest& request) {
  try {
    encode_files(request);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

EncodeRequest request_for(const std::string& input, const std::string& output) {
  EncodeRequest request;
  request.inputs = {input};
  request.output = output;
  return request;
}

std::vector<std::vector<int32_t>> read_all(const std::string& prefix) {
  const TokenStream stream(prefix);
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < stream.index().sizes.size(); ++i) {
    sequences.emplace_back(static_cast<size_t>(stream.index().sizes[i]));
    stream.read({i, 0}, sequences.back(), 1000);
  }
  return sequences;
}

std::vector<int32_t> tokens_of(const std::string& text) {
  std::vector<int32_t> tokens;
  open_tokenizer(k_tokenizer)->make_encoder()->encode(text, tokens);
  return tokens;
}

TEST(EncodeDataset, ReadsJsonLines) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "in.jsonl",
                        "{\"id\": 1, \"text\": \"Hello w\\u00f6rld\\n\"}\n\n{\"text\": \"\"}\r\n{\"text\": \"last\"}");
  EncodeRequest request = request_for(folder / "in.jsonl", folder / "out");
  request.end_of_document = 0;
  const EncodeSummary summary = encode_files(request);
  EXPECT_EQ(summary.documents, 3);
  EXPECT_EQ(TokenStream(folder / "out").index().num_documents(), 3);
  std::vector<int32_t> first = tokens_of("Hello w\xc3\xb6rld\n"), last = tokens_of("last");
  first.push_back(0);
  last.push_back(0);
  EXPECT_EQ(read_all(folder / "out"), (std::vector<std::vector<int32_t>>{first, last}));  // the empty one has none
}

TEST(EncodeDataset, CutsTextAsAsked) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "in.txt", "one\ntwo\r\n \n\nthree\n");
  const auto documents = [&](std::optional<DocumentForm> form) {
    EncodeRequest request = request_for(folder / "in.txt", folder / "out");
    request.form = form;
    encode_files(request);
    return read_all(folder / "out");
  };
  using Documents = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(documents(std::nullopt), (Documents{tokens_of("one\ntwo"), tokens_of("three")}));
  EXPECT_EQ(documents(DocumentForm::line), (Documents{tokens_of("one"), tokens_of("two"), tokens_of("three")}));
  EXPECT_EQ(documents(DocumentForm::file), (Documents{tokens_of("one\ntwo\r\n \n\nthree\n")}));
}

// Enough for several blocks, with documents of all lengths.
std::string many_lines() {
  std::string text;
  for (int i = 0; i < 40000; ++i)
    text += "{\"text\": \"line " + std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x') + "\"}\n";
  return text;
}

TEST(EncodeDataset, GivesTheSameBytesOnAnyNumberOfThreadsAndFromCompressedFiles) {
  const test::TemporaryFolder folder;
  const std::string text = many_lines();
  ASSERT_GT(text.size(), size_t{2} << 20);
  write_file_atomically(folder / "in.jsonl", text);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  write_file_atomically(folder / "in.jsonl.zst", packed);
  const gzFile gz = ::gzopen((folder / "in.jsonl.gz").c_str(), "wb1");
  ::gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(gz);
  const auto encoded = [&](const std::string& input, int64_t threads) {
    EncodeRequest request = request_for(folder / input, folder / "out");
    request.threads = threads;
    EXPECT_EQ(encode_files(request).documents, 40000);
    return read_file(folder / "out.bin") + read_file(folder / "out.idx");
  };
  const std::string alone = encoded("in.jsonl", 1);
  EXPECT_EQ(encoded("in.jsonl", 4), alone);
  EXPECT_EQ(encoded("in.jsonl.gz", 2), alone);
  EXPECT_EQ(encoded("in.jsonl.zst", 3), alone);
}

TEST(EncodeDataset, NamesTheFirstBadLineAndLeavesNothing) {
  const test::TemporaryFolder folder;
  std::string text = many_lines();
  const size_t bad = text.find("\"line 30000") - 8;  // begins its line
  text.replace(bad, 1, "[");
  text += "no JSON either\n";
  write_file_atomically(folder / "in.jsonl", text);
  EncodeRequest request = request_for(folder / "in.jsonl", folder / "out");
  request.threads = 4;
  EXPECT_NE(complaint(request).find("in.jsonl:30001: the line is not JSON"), std::string::npos) << complaint(request);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.bin"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(EncodeDataset, SaysWhatIsWrongWithALine) {
  const test::TemporaryFolder folder;
  const auto complains = [&](const std::string& name, const std::string& content, const std::string& expected) {
    write_file_atomically(folder / name, content);
    const std::string message = complaint(request_for(folder / name, folder / "out"));
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  complains("a.jsonl", "{\"text\": \"x\"}\n[1]\n", "a.jsonl:2: the line is not a JSON object");
  complains("b.jsonl", "{\"body\": \"x\"}\n", "b.jsonl:1: the line has no text under \"text\"");
  complains("c.jsonl", "{\"text\": 7}\n", "no text under");
  complains("d.jsonl", "{\"text\": \"\xff\"}\n", "d.jsonl:1");
  complains("e.txt", "good\n\nbad \xff\n", "e.txt:3: the byte 0xff is not UTF-8");
  complains("f.jsonl.gz", std::string("\x1f\x8b", 2) + "not really", "gzip data");
  EXPECT_NE(complaint(request_for(folder / "missing.txt", folder / "out")).find("No such file"), std::string::npos);
}

TEST(EncodeDataset, RefusesATypeTooNarrowForTheVocabulary) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "in.txt", "x");
  EncodeRequest request = request_for(folder / "in.txt", folder / "out");
  request.type = TokenType::uint8;
  EXPECT_NE(complaint(request).find("uint8 cannot hold token 599"), std::string::npos);
  request.type = TokenType::int64;
  encode_files(request);
  EXPECT_EQ(TokenStream(folder / "out").index().type, TokenType::int64);
}

}  // namespace
}  // namespace tprimat::engine
