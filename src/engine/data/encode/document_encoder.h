#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/encode/text_blocks.h"
#include "data/megatron_index.h"
#include "data/tokenizer/tokenizer.h"

namespace tprimat::engine {

struct EncodedBlock {
  std::vector<std::byte> tokens;  // as the .bin file holds them
  std::vector<int32_t> lengths;   // tokens of each document; 0 for a document without text
  int64_t text_bytes = 0;
};

struct EncodingRules {
  std::string json_key = "text";
  std::optional<int32_t> end_of_document;  // follows every document that is not empty
  TokenType type = TokenType::uint16;
};

// Finds the text of one line of JSON. Keeps its buffers from line to line.
class JsonLineReader {
 public:
  explicit JsonLineReader(std::string key);
  ~JsonLineReader();
  // The string at the key, valid until the next call. Throws Error, at `where`, for a line that is not an object with a
  // string there.
  std::string_view read(std::string_view line, const std::string& where);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string key_;
};

// Cuts a block into documents and encodes them. One per thread.
class DocumentEncoder {
 public:
  DocumentEncoder(const Tokenizer& tokenizer, EncodingRules rules);
  EncodedBlock encode(const TextBlock& block);  // throws Error that names file and line

 private:
  void encode_lines(const TextBlock& block, EncodedBlock& out);
  void encode_paragraphs(const TextBlock& block, EncodedBlock& out);
  void encode_text(std::string_view text, const TextBlock& block, int64_t line, EncodedBlock& out);
  void encode_document(std::string_view text, EncodedBlock& out);

  EncodingRules rules_;
  std::unique_ptr<TextEncoder> encoder_;
  JsonLineReader json_;
  std::vector<int32_t> tokens_;
};

}  // namespace tprimat::engine
