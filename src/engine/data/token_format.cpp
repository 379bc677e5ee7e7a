#include "data/token_format.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace tprimat::engine {
namespace {

// Calls visit with a value of the type's C++ type.
template <class Visitor>
auto with_type(TokenType type, Visitor&& visit) {
  switch (type) {
    case TokenType::uint8: return visit(uint8_t{});
    case TokenType::int8: return visit(int8_t{});
    case TokenType::int16: return visit(int16_t{});
    case TokenType::int32: return visit(int32_t{});
    case TokenType::int64: return visit(int64_t{});
    case TokenType::float64: return visit(double{});
    case TokenType::float32: return visit(float{});
    case TokenType::uint16: break;
  }
  return visit(uint16_t{});
}

template <class T>
bool is_token(T value, int64_t vocab_size) {
  if constexpr (std::is_floating_point_v<T>) {
    return value >= 0 && value < static_cast<double>(vocab_size) && value == std::floor(value);  // NaN fails
  } else {
    return static_cast<int64_t>(value) >= 0 && static_cast<int64_t>(value) < vocab_size;
  }
}

}  // namespace

size_t read_tokens(TokenType type, const std::byte* from, std::span<int32_t> out, int64_t vocab_size) {
  return with_type(type, [&]<class T>(T value) {
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      if (!is_token(value, vocab_size)) return i;
      out[i] = static_cast<int32_t>(value);
    }
    return out.size();
  });
}

bool append_tokens(TokenType type, std::span<const int32_t> tokens, std::vector<std::byte>& bytes) {
  return with_type(type, [&]<class T>(T value) {
    const size_t before = bytes.size();
    bytes.resize(before + tokens.size() * sizeof(T));
    std::byte* into = bytes.data() + before;
    for (const int32_t token : tokens) {
      value = static_cast<T>(token);
      if (static_cast<int64_t>(value) != token) {
        bytes.resize(before);
        return false;
      }
      std::memcpy(into, &value, sizeof(T));
      into += sizeof(T);
    }
    return true;
  });
}

}  // namespace tprimat::engine
