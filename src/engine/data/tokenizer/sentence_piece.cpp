#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <cstdint>
#include <exception>

#include "base/error.h"
#include "data/tokenizer/tokenizer.h"
#include "text/proto.h"

namespace tprimat::engine {
namespace {

// src/sentencepiece_model.proto
enum ModelField : uint32_t { k_piece = 1, k_normalizer = 3, k_denormalizer = 5 };
enum PieceField : uint32_t { k_text = 1 };
enum NormalizerField : uint32_t { k_charsmap = 2 };

// The library descends once per byte of a piece, on the stack.
constexpr size_t k_longest_piece = 4096;

// A unit of the double array of darts-clone (include/darts.h, class DoubleArrayUnit).
struct Unit {
  uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  bool is_value() const { return bits >> 31 != 0; }
  uint32_t value() const { return bits & 0x7fffffff; }
  uint32_t offset() const { return (bits >> 10) << ((bits & (1u << 9)) >> 6); }
};

Unit unit_at(std::string_view trie, size_t index) {
  return {static_cast<uint32_t>(little_endian(trie.substr(index * sizeof(uint32_t), sizeof(uint32_t))))};
}

// From a unit the search goes to any of 256 others, one per byte; a leaf's value is a place in `texts`.
std::string check_trie(std::string_view trie, std::string_view texts) {
  const size_t units = trie.size() / sizeof(uint32_t);
  for (size_t i = 0; i < units; ++i) {
    const Unit unit = unit_at(trie, i);
    if (unit.is_value() && i > 0) continue;
    const size_t next = i ^ unit.offset();
    if ((next | 0xff) >= units) return fmt::format("unit {} of its character map points outside the map", i);
    if (unit.has_leaf() && unit_at(trie, next).value() >= texts.size())
      return fmt::format("unit {} of its character map has text outside the map", i);
  }
  return {};
}

// u32 size of the trie, trie, texts that each end in a zero byte; little-endian.
std::string check_charsmap(std::string_view map) {
  if (map.empty()) return {};
  if (map.size() < sizeof(uint32_t)) return "its character map is truncated";
  const uint64_t size = little_endian(take_bytes(map, sizeof(uint32_t)));
  if (size == 0 || size % sizeof(uint32_t) != 0 || size >= map.size())
    return fmt::format("its character map claims a trie of {} bytes in {}", size, map.size());
  const std::string_view trie = take_bytes(map, size);
  if (map.back() != '\0') return "its character map has an unterminated text";
  return check_trie(trie, map);
}

std::string check_normalizer(std::string_view message) {
  while (const auto field = take_proto_field(message)) {
    if (field->number != k_charsmap) continue;
    if (std::string wrong = check_charsmap(field->bytes); !wrong.empty()) return wrong;
  }
  return message.empty() ? "" : "its normalization rules cannot be read";
}

std::string check_piece(std::string_view message) {
  while (const auto field = take_proto_field(message))
    if (field->number == k_text && field->bytes.size() > k_longest_piece)
      return fmt::format("it has a piece of {} bytes, above the limit of {}", field->bytes.size(), k_longest_piece);
  return message.empty() ? "" : "one of its pieces cannot be read";
}

std::string check_field(const ProtoField& field) {
  if (field.number == k_piece) return check_piece(field.bytes);
  if (field.number == k_normalizer || field.number == k_denormalizer) return check_normalizer(field.bytes);
  return {};
}

// SentencePiece trusts a model's tables: a wrong offset in one makes it read outside of its memory while it loads or
// encodes (google/sentencepiece#1263 and #1269). Returns what is wrong with the bytes of a .model, and nothing
// where the library can be given them. It does not say that they are a model: the library does.
std::string find_unsafe_table(std::string_view model) {
  while (const auto field = take_proto_field(model))
    if (std::string wrong = check_field(*field); !wrong.empty()) return wrong;
  return model.empty() ? "" : "its fields cannot be read";
}

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
