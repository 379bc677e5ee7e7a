#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "text/enum_names.h"

namespace tprimat::engine {

// The number format of the tokens in a .bin file, with Megatron-LM's codes (megatron/core/datasets/indexed_dataset.py).
enum class TokenType : uint8_t { uint8 = 1, int8, int16, int32, int64, float64, float32, uint16 };
constexpr auto enum_table(TokenType) {
  return std::to_array<std::pair<TokenType, std::string_view>>({{TokenType::uint8, "uint8"},
                                                                {TokenType::int8, "int8"},
                                                                {TokenType::int16, "int16"},
                                                                {TokenType::int32, "int32"},
                                                                {TokenType::int64, "int64"},
                                                                {TokenType::float64, "float64"},
                                                                {TokenType::float32, "float32"},
                                                                {TokenType::uint16, "uint16"}});
}
int64_t token_bytes(TokenType type);

// A .idx file: "MMIDIDX\0\0", version 1 (uint64), token type (uint8), number of sequences n (uint64), of document
// borders d (uint64), sizes (int32 × n), pointers (int64 × n), borders (int64 × d); all little-endian. Multimodal files
// end with n more bytes, the mode of each sequence, which are not read.
struct MegatronIndex {
  TokenType type = TokenType::uint16;
  std::vector<int32_t> sizes;      // tokens of each sequence
  std::vector<int64_t> pointers;   // byte offset of each sequence in the .bin file
  std::vector<int64_t> documents;  // document k is the sequences [documents[k], documents[k+1])
  bool has_modes = false;          // the file ends with modes

  int64_t num_documents() const { return static_cast<int64_t>(documents.size()) - 1; }
};

// Reads and checks all of it against the size of the .bin file. Throws Error that names file and byte offset.
MegatronIndex load_megatron_index(const std::filesystem::path& path, int64_t bin_bytes);

// The bytes of a .idx file.
std::string print_megatron_index(const MegatronIndex& index);

// Between token numbers and the bytes of a .bin file (little-endian, as every machine that this program runs on).

// Converts out.size() values, until the first that is no whole number in [0, vocab_size); returns how many were.
// `from` need not be aligned.
size_t read_tokens(TokenType type, const std::byte* from, std::span<int32_t> out, int64_t vocab_size);

// Appends the bytes of the tokens; false, with nothing appended, when one does not fit the type exactly.
bool append_tokens(TokenType type, std::span<const int32_t> tokens, std::vector<std::byte>& bytes);

}  // namespace tprimat::engine
