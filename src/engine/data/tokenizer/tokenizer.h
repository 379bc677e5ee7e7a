#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::engine {

// Turns text into tokens. Holds caches, so each thread has its own; the tokenizer must outlive it.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the tokens of `text`, which must be valid UTF-8. Nothing is added before or after them.
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocab_size() const = 0;  // one more than the greatest token
  virtual std::optional<int32_t> find_token(std::string_view text) const = 0;
  virtual std::optional<int32_t> end_of_document() const = 0;  // as the file itself names it; absent where it does not
  virtual std::string describe() const = 0;                    // one line for people
  virtual std::unique_ptr<TextEncoder> make_encoder() const = 0;
};

// Opens a Hugging Face tokenizer.json (byte-level BPE: GPT-2, Llama 3, Qwen 2.5 and their kin) or a SentencePiece model
// (.model: Llama 2, Mistral, T5 ...). Throws Error that names what is not understood; it never encodes by halves.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path);

// The same from the bytes of a file; `name` is for messages.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view bytes, const std::string& name);
std::unique_ptr<Tokenizer> read_sentencepiece_model(std::string_view bytes, const std::string& name);

}  // namespace tprimat::engine
