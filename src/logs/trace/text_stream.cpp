#include "trace/text_stream.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_first_window = 1024 * 1024;
constexpr std::ptrdiff_t k_released_at_once = 32 * 1024 * 1024;
constexpr size_t k_max_characters = size_t{1} << 36;  // 64 GiB: beyond any trace; stops decompression bombs

// Frees the memory of pages that have been read; reading them again loads them from the file.
void release_before(const MappedFile& file, const char* place) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto* const begin = reinterpret_cast<const char*>(file.bytes().data());
  const size_t count = static_cast<size_t>(place - begin) / page * page;
  if (count > 0) ::madvise(const_cast<char*>(begin), count, MADV_DONTNEED);
}

}  // namespace

TextStream::TextStream(std::string_view bytes, std::string_view where, const MappedFile* file)
    : where_(where), file_(file), released_(bytes.data()) {
  unpacker_ = make_unpacker(bytes, where);
  if (!unpacker_) rest_ = bytes.starts_with("\xef\xbb\xbf") ? bytes.substr(3) : bytes;
  window_ = rest_.substr(0, 0);
}

TextStream::~TextStream() = default;

void TextStream::grow() {
  const size_t wanted = std::max(2 * window_.size(), k_first_window);
  if (!unpacker_) {
    rest_.remove_prefix(static_cast<size_t>(window_.data() - rest_.data()));
    window_ = rest_.substr(0, wanted);
    whole_ = window_.size() == rest_.size();
    if (file_ != nullptr && window_.data() - released_ > k_released_at_once) {
      release_before(*file_, window_.data());
      released_ = window_.data();
    }
    return;
  }
  kept_.erase(0, kept_.size() - window_.size());
  while (kept_.size() < wanted && !whole_) {
    const std::string_view piece = unpacker_->next_piece();
    whole_ = piece.empty();
    kept_ += piece;
  }
  window_ = kept_;
  if (position_ > k_max_characters)
    throw Error(Problem{fmt::format("holds more than {} GiB of text", k_max_characters >> 30), where_, ""});
}

}  // namespace tprimat::logs
