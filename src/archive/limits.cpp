#include "archive/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tprimat {
namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

// Bytes of the UTF-8 character at the start of `text` (RFC 3629); 0 where there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (size == 0 || size > text.size() || byte(0) > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  const bool is_overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  return is_overlong || is_surrogate || (byte(0) == 0xf4 && byte(1) > 0x8f) ? 0 : size;
}

bool is_c1_control(std::string_view character) {  // U+0080 to U+009F: terminals obey these too
  return character.size() == 2 && character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string find_fault_in_name(std::string_view name, const ArchiveLimits& limits) {
  const std::filesystem::path path(name);
  if (name.empty()) return "has no name";
  if (static_cast<int64_t>(name.size()) > limits.name_bytes)
    return fmt::format("has a name of {} bytes, where {} are allowed", name.size(), limits.name_bytes);
  if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end()) return "leads out of it";
  if (std::any_of(name.begin(), name.end(), is_control)) return "has control characters in its name";
  return "";
}

bool is_document(std::string_view name) { return std::filesystem::path(name).extension() == ".json"; }

bool may_be_result(std::string_view text) {
  const auto holds = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return (holds("gpu_info") && holds("training_config")) || holds("\\u");  // a key may be escaped
}

std::string escape_name(std::string_view name) {
  std::string escaped;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    const std::string_view character = name.substr(0, std::max<size_t>(1, length));
    if (length == 0 || is_control(static_cast<unsigned char>(name[0])) || is_c1_control(character))
      for (const char c : character) escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      escaped += character;
    name.remove_prefix(character.size());
  }
  return escaped;
}

}  // namespace tprimat
