#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/megatron_index.h"

// Between token numbers and the bytes of a .bin file (little-endian, as every machine that this program runs on).
namespace tprimat::engine {

// Converts out.size() values, until the first that is no whole number in [0, vocab_size); returns how many were.
// `from` need not be aligned.
size_t read_tokens(TokenType type, const std::byte* from, std::span<int32_t> out, int64_t vocab_size);

// Appends the bytes of the tokens; false, with nothing appended, when one does not fit the type exactly.
bool append_tokens(TokenType type, std::span<const int32_t> tokens, std::vector<std::byte>& bytes);

}  // namespace tprimat::engine
