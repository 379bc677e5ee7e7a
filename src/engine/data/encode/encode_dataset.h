#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/encode/text_blocks.h"
#include "data/megatron_index.h"
#include "data/tokenizer/tokenizer.h"
#include "text/fields.h"

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

struct EncodeRequest {
  std::vector<std::string> inputs;   // one data set from all of them, in this order
  std::string output;                // prefix of the .bin/.idx pair
  std::optional<DocumentForm> form;  // absent: by the name of each file
  std::string json_key = "text";
  std::optional<int32_t> end_of_document;  // absent: nothing follows a document
  std::optional<TokenType> type;           // absent: default_token_type of the tokenizer
  int64_t threads = 0;                     // 0: all that this process may use
};

struct EncodeProgress {
  int64_t bytes_read = 0, bytes_in_all = 0;  // of the input files
  int64_t documents = 0, tokens = 0, text_bytes = 0;
  double seconds = 0;
};

struct EncodeSummary {
  std::string prefix;
  std::string tokenizer;
  TokenType type = TokenType::uint16;
  int64_t documents = 0, tokens = 0, text_bytes = 0;
  double seconds = 0;
  double megabytes_per_second = 0;

  static constexpr auto fields() {
    using E = EncodeSummary;
    return field_list(field("prefix", &E::prefix, "path without .bin and .idx"),
                      field("tokenizer", &E::tokenizer, "tokenizer that encoded the text"),
                      field("token_type", &E::type, "number format of a token in the .bin file"),
                      field("documents", &E::documents, "documents, including empty ones"),
                      field("tokens", &E::tokens, "tokens of all documents"),
                      field("text_bytes", &E::text_bytes, "bytes of text, as UTF-8"),
                      field("seconds", &E::seconds, "total time"),
                      field("megabytes_per_second", &E::megabytes_per_second, "1e6 bytes of text per second"));
  }
};

// Encodes text into a .bin/.idx pair, a block of documents per thread at a time, written in the order of the input: the
// pair has the same bytes whatever the number of threads. `report` is called as blocks are written, by any thread but
// never by two. Throws Error, and then leaves no output, for input that is not what it should be: the first such line
// is named.
EncodeSummary encode_dataset(const EncodeRequest& request, const Tokenizer& tokenizer,
                             const std::function<void(const EncodeProgress&)>& report);

}  // namespace tprimat::engine
