#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <exception>

#include "base/error.h"
#include "data/tokenizer/sentence_piece_check.h"
#include "data/tokenizer/tokenizer.h"

namespace tprimat::engine {
namespace {

using sentencepiece::SentencePieceProcessor;

class SentencePieceEncoder final : public TextEncoder {
 public:
  explicit SentencePieceEncoder(const SentencePieceProcessor& processor) : processor_(processor) {}
  void encode(std::string_view text, std::vector<int32_t>& tokens) override {
    const auto status = processor_.Encode({text.data(), text.size()}, &pieces_);
    if (!status.ok()) throw Error(Problem{fmt::format("SentencePiece: {}", status.ToString()), "", ""});
    tokens.insert(tokens.end(), pieces_.begin(), pieces_.end());
  }

 private:
  const SentencePieceProcessor& processor_;
  std::vector<int> pieces_;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, const std::string& name) {
    if (const std::string wrong = load(bytes); !wrong.empty())
      throw Error(Problem{fmt::format("is not a SentencePiece model: {}", wrong), name, ""});
  }

  int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  std::optional<int32_t> find_token(std::string_view text) const override {
    const int id = processor_.PieceToId({text.data(), text.size()});
    return id == processor_.unk_id() ? std::nullopt : std::optional<int32_t>(id);
  }
  std::optional<int32_t> end_of_document() const override {
    return processor_.eos_id() < 0 ? std::nullopt : std::optional<int32_t>(processor_.eos_id());
  }
  std::string describe() const override { return fmt::format("SentencePiece, {} tokens", vocab_size()); }
  std::unique_ptr<TextEncoder> make_encoder() const override {
    return std::make_unique<SentencePieceEncoder>(processor_);
  }

 private:
  // Returns what is wrong. The library returns a status, but what it uses inside may throw.
  std::string load(std::string_view bytes) try {
    if (std::string wrong = find_unsafe_table(bytes); !wrong.empty()) return wrong;
    const auto status = processor_.LoadFromSerializedProto({bytes.data(), bytes.size()});
    return status.ok() ? "" : status.ToString();
  } catch (const std::exception& error) {
    return fmt::format("its pieces cannot be used: {}", error.what());
  }

  SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece_model(std::string_view bytes, const std::string& name) {
  return std::make_unique<SentencePieceTokenizer>(bytes, name);
}

}  // namespace tprimat::engine
