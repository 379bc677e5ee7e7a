#include "data/megatron_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/error.h"
#include "data/random_bits.h"

namespace tprimat {
namespace {

std::string strip_ending(std::string prefix) {
  for (const std::string_view ending : {".bin", ".idx"})
    if (prefix.ends_with(ending)) return prefix.substr(0, prefix.size() - ending.size());
  return prefix;
}

template <class T>
bool is_token(T value, int64_t vocab_size) {
  if constexpr (std::is_floating_point_v<T>) {
    return value >= 0 && value < static_cast<double>(vocab_size) && value == std::floor(value);  // NaN fails
  } else {
    return static_cast<int64_t>(value) >= 0 && static_cast<int64_t>(value) < vocab_size;
  }
}

// Converts until the first value that is no token; returns how many were. Sequences may start at any byte, so every
// value is copied.
template <class T>
size_t convert_as(const std::byte* from, std::span<int32_t> out, int64_t vocab_size) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    if (!is_token(value, vocab_size)) return i;
    out[i] = static_cast<int32_t>(value);
  }
  return out.size();
}

size_t convert_tokens(TokenType type, const std::byte* from, std::span<int32_t> out, int64_t vocab_size) {
  switch (type) {
    case TokenType::uint8: return convert_as<uint8_t>(from, out, vocab_size);
    case TokenType::int8: return convert_as<int8_t>(from, out, vocab_size);
    case TokenType::int16: return convert_as<int16_t>(from, out, vocab_size);
    case TokenType::int32: return convert_as<int32_t>(from, out, vocab_size);
    case TokenType::int64: return convert_as<int64_t>(from, out, vocab_size);
    case TokenType::float64: return convert_as<double>(from, out, vocab_size);
    case TokenType::float32: return convert_as<float>(from, out, vocab_size);
    case TokenType::uint16: break;
  }
  return convert_as<uint16_t>(from, out, vocab_size);
}

}  // namespace

TokenStream::TokenStream(std::string prefix)
    : prefix_(strip_ending(std::move(prefix))),
      bin_(prefix_ + ".bin"),
      index_(load_megatron_index(prefix_ + ".idx", static_cast<int64_t>(bin_.bytes().size()))) {
  starts_.reserve(index_.sizes.size() + 1);
  starts_.push_back(0);
  for (const int32_t size : index_.sizes) starts_.push_back(starts_.back() + size);
}

void TokenStream::read(int64_t start, std::span<int32_t> out, int64_t vocab_size) const {
  CHECK(start >= 0 && start + static_cast<int64_t>(out.size()) <= num_tokens());
  const int64_t width = token_bytes(index_.type);
  auto sequence = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), start) - starts_.begin() - 1);
  for (; !out.empty(); ++sequence) {
    const auto count = std::min(out.size(), static_cast<size_t>(starts_[sequence + 1] - start));
    const int64_t offset = index_.pointers[sequence] + (start - starts_[sequence]) * width;
    const size_t converted = convert_tokens(index_.type, bin_.bytes().data() + offset, out.first(count), vocab_size);
    if (converted != count)
      throw Error(Problem{fmt::format("the token at byte {} is not in the vocabulary of {}",
                                      offset + static_cast<int64_t>(converted) * width, vocab_size),
                          prefix_ + ".bin", "train with the vocabulary that this data set was made with"});
    out = out.subspan(count);
    start += static_cast<int64_t>(count);
  }
}

MegatronDataset::MegatronDataset(std::string prefix, int64_t vocab_size, int64_t sequence_length, int64_t seed)
    : stream_(std::move(prefix)),
      vocab_size_(vocab_size),
      sequence_length_(sequence_length),
      seed_(static_cast<uint64_t>(seed)) {
  CHECK(sequence_length > 0 && vocab_size > 0 && vocab_size <= std::numeric_limits<int32_t>::max());
  samples_per_epoch_ = (stream_.num_tokens() - 1) / sequence_length;
  if (stream_.num_tokens() <= sequence_length)
    throw Error(
        Problem{fmt::format("holds {} tokens, but one sample needs {}", stream_.num_tokens(), sequence_length + 1),
                stream_.prefix() + ".bin", "use a larger data set or a shorter sequence"});
}

void MegatronDataset::read_sample(int64_t index, std::span<int32_t> tokens) const {
  CHECK(index >= 0 && static_cast<int64_t>(tokens.size()) == sequence_length_ + 1);
  const auto epoch = static_cast<uint64_t>(index / samples_per_epoch_);
  const Permutation order(samples_per_epoch_, scramble_bits(seed_) ^ epoch);
  stream_.read(order(index % samples_per_epoch_) * sequence_length_, tokens, vocab_size_);
}

std::string MegatronDataset::describe() const {
  return fmt::format("{}: {} tokens, {} samples per epoch", stream_.prefix(), stream_.num_tokens(), samples_per_epoch_);
}

}  // namespace tprimat
