#include "archive/tar_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.h"

namespace tprimat::results {
namespace {

constexpr size_t k_block = 512;  // POSIX.1, ustar
constexpr size_t k_size_at = 124, k_size_length = 12, k_sum_at = 148, k_sum_length = 8, k_kind_at = 156;
constexpr char k_folder = '5';
constexpr uint64_t k_max_records = 1 << 20;

std::optional<uint64_t> octal(std::string_view field) {
  const size_t begin = std::min(field.find_first_not_of(' '), field.size());
  uint64_t value = 0;
  for (const char c : field.substr(begin)) {
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

bool has_valid_sum(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < k_block; ++i)
    sum += i >= k_sum_at && i < k_sum_at + k_sum_length ? ' ' : static_cast<unsigned char>(block[i]);
  return octal(block.substr(k_sum_at, k_sum_length)) == sum;
}

uint64_t padded(uint64_t size) { return (size + k_block - 1) / k_block * k_block; }

// Files, folders, and the kinds before them that give a long name. Links and devices are refused with their names.
bool is_sealed_kind(char kind) { return kind == '\0' || (kind >= '0' && kind <= '6') || kind == 'x' || kind == 'L'; }

}  // namespace

std::string TarHeaders::read(std::string_view bytes) {
  while (!bytes.empty() && !has_ended_) {
    if (skipped_ > 0) {
      const size_t count = std::min<uint64_t>(skipped_, bytes.size());
      skipped_ -= count;
      bytes.remove_prefix(count);
      continue;
    }
    const uint64_t wanted = records_ > 0 ? records_ : k_block;
    const size_t count = std::min<uint64_t>(wanted - block_.size(), bytes.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < wanted) break;
    const bool are_records = records_ > 0;
    const std::string fault = are_records ? take_records() : take_header();
    if (!fault.empty()) return fault;
    if (are_records) records_ = 0;
    block_.clear();
  }
  return "";
}

std::string TarHeaders::take_header() {
  const auto size = octal(std::string_view(block_).substr(k_size_at, k_size_length));
  const char kind = block_[k_kind_at];
  has_ended_ = block_.find_first_not_of('\0') == std::string::npos;
  if (has_ended_) return "";
  if (!size || !has_valid_sum(block_) || (kind == k_folder && *size > 0))
    return "is not a tar archive, or holds an ambiguous header";
  if (kind == 'g') return "holds a global header (pax), which other programs apply to every file";
  if (!is_sealed_kind(kind))
    return fmt::format("holds an entry of the unknown kind \"{}\"", printable(std::string(1, kind)));
  if (kind != 'x') {
    skipped_ = padded(*size);
    return "";
  }
  if (*size == 0 || *size > k_max_records) return "holds an extended header (pax) of an invalid length";
  records_ = padded(*size);
  return "";
}

// "30 mtime=1350244992.023960108\n"
std::string TarHeaders::take_records() const {
  for (const std::string_view key : {" size=", " GNU.sparse."})
    for (size_t at = block_.find(key); at != std::string::npos; at = block_.find(key, at + 1)) {
      const size_t line = at == 0 ? 0 : block_.rfind('\n', at - 1) + 1;
      if (block_.find_first_not_of("0123456789", line) == at)
        return "holds an extended header (pax) that overrides the length of a file";
    }
  return "";
}

}  // namespace tprimat::results
