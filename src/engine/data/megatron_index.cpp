#include "data/megatron_index.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/files.h"

namespace tprimat::engine {
namespace {

constexpr std::string_view k_magic("MMIDIDX\0\0", 9);
constexpr uint64_t k_version = 1;
constexpr size_t k_header_bytes = 9 + 8 + 1 + 8 + 8;

Error damaged(const std::filesystem::path& path, size_t offset, std::string_view what) {
  return Error(Problem{fmt::format("{} (at byte {})", what, offset), path.string(),
                       "write the data set again, or check the copy"});
}

// Reads values in file order. The arrays start at odd offsets, so every value is copied.
class IndexReader {
 public:
  explicit IndexReader(const std::filesystem::path& path) : path_(path), file_(path) {}

  template <class T>
  T read_value() {
    T value;
    require(sizeof(T));
    std::memcpy(&value, file_.bytes().data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  template <class T>
  std::vector<T> read_array(uint64_t count) {
    if (count > left() / sizeof(T)) throw truncated();
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), file_.bytes().data() + offset_, count * sizeof(T));
    offset_ += count * sizeof(T);
    return values;
  }

  size_t left() const { return file_.bytes().size() - offset_; }
  size_t offset() const { return offset_; }

 private:
  void require(size_t bytes) const {
    if (left() < bytes) throw truncated();
  }
  Error truncated() const {
    return damaged(path_, offset_,
                   fmt::format("the index is cut off: the file ends after {} bytes", file_.bytes().size()));
  }

  std::filesystem::path path_;
  MappedFile file_;
  size_t offset_ = 0;
};

void check_magic(const std::filesystem::path& path, IndexReader& reader) {
  for (size_t i = 0; i < k_magic.size(); ++i)
    if (reader.read_value<char>() != k_magic[i])
      throw damaged(path, i, "not a Megatron index: it does not start with MMIDIDX");
  if (const auto version = reader.read_value<uint64_t>(); version != k_version)
    throw damaged(path, k_magic.size(), fmt::format("index version {} is not supported, only {}", version, k_version));
}

TokenType read_type(const std::filesystem::path& path, IndexReader& reader) {
  const size_t offset = reader.offset();
  const auto code = reader.read_value<uint8_t>();
  if (code < 1 || code > 8)
    throw damaged(path, offset, fmt::format("token type {} is not supported, only 1 to 8", code));
  return static_cast<TokenType>(code);
}

void check_sequences(const std::filesystem::path& path, const MegatronIndex& index, int64_t bin_bytes) {
  const int64_t width = token_bytes(index.type);
  const size_t pointers_at = k_header_bytes + index.sizes.size() * sizeof(int32_t);
  for (size_t i = 0; i < index.sizes.size(); ++i) {
    const int64_t size = index.sizes[i], pointer = index.pointers[i];
    if (size < 0)
      throw damaged(path, k_header_bytes + i * sizeof(int32_t), fmt::format("sequence {} has size {}", i, size));
    if (pointer < 0 || pointer > bin_bytes || size * width > bin_bytes - pointer)
      throw damaged(path, pointers_at + i * sizeof(int64_t),
                    fmt::format("sequence {} claims {} tokens of {} bytes from byte {}, but the .bin file has {} bytes",
                                i, size, width, pointer, bin_bytes));
  }
}

void check_documents(const std::filesystem::path& path, const MegatronIndex& index) {
  const size_t start = k_header_bytes + index.sizes.size() * (sizeof(int32_t) + sizeof(int64_t));
  const auto sequences = static_cast<int64_t>(index.sizes.size());
  if (index.documents.empty()) throw damaged(path, start, "the list of document boundaries is empty");
  int64_t previous = 0;
  for (size_t i = 0; i < index.documents.size(); ++i) {
    const int64_t border = index.documents[i];
    if (border < previous || border > sequences || (i == 0 && border != 0))
      throw damaged(path, start + i * sizeof(int64_t),
                    fmt::format("document boundary {} is {}: boundaries must rise from 0 to the {} sequences", i,
                                border, sequences));
    previous = border;
  }
  if (previous != sequences)
    throw damaged(path, start,
                  fmt::format("the documents hold {} sequences, but the index lists {}", previous, sequences));
}

template <class T>
void append_value(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
void append_array(std::string& text, const std::vector<T>& values) {
  if (!values.empty()) text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

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

int64_t token_bytes(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8: return 1;
    case TokenType::int16:
    case TokenType::uint16: return 2;
    case TokenType::int32:
    case TokenType::float32: return 4;
    case TokenType::int64:
    case TokenType::float64: break;
  }
  return 8;
}

MegatronIndex load_megatron_index(const std::filesystem::path& path, int64_t bin_bytes) {
  IndexReader reader(path);
  check_magic(path, reader);
  MegatronIndex index;
  index.type = read_type(path, reader);
  const auto sequences = reader.read_value<uint64_t>();
  const auto borders = reader.read_value<uint64_t>();
  index.sizes = reader.read_array<int32_t>(sequences);
  index.pointers = reader.read_array<int64_t>(sequences);
  index.documents = reader.read_array<int64_t>(borders);
  if (reader.left() != 0 && reader.left() != sequences)
    throw damaged(path, reader.offset(), fmt::format("{} bytes follow the end of the index", reader.left()));
  index.has_modes = reader.left() > 0;
  check_sequences(path, index, bin_bytes);
  check_documents(path, index);
  return index;
}

std::string print_megatron_index(const MegatronIndex& index) {
  std::string text(k_magic);
  append_value(text, k_version);
  append_value(text, index.type);
  append_value(text, uint64_t{index.sizes.size()});
  append_value(text, uint64_t{index.documents.size()});
  append_array(text, index.sizes);
  append_array(text, index.pointers);
  append_array(text, index.documents);
  return text;
}

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
