#include "data/tokenizer/sentence_piece_check.h"

#include <fmt/format.h>

#include <cstdint>

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

}  // namespace

std::string find_unsafe_table(std::string_view model) {
  while (const auto field = take_proto_field(model))
    if (std::string wrong = check_field(*field); !wrong.empty()) return wrong;
  return model.empty() ? "" : "its fields cannot be read";
}

}  // namespace tprimat::engine
