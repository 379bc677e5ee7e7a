#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"
#include "trace/unpacked.h"

namespace tprimat::logs {

// The text of a file, plain, gzip or zstd, through a window that moves forward over it; never more than the window in
// memory.
class TextStream {
 public:
  // `file`: the bytes are those of this mapped file, whose pages leave memory when they have been read.
  TextStream(std::string_view bytes, std::string_view where, const MappedFile* file = nullptr);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  std::string_view window() const { return window_; }
  size_t position() const { return position_; }  // of the window's begin in the uncompressed text
  const std::string& where() const { return where_; }
  bool is_whole() const { return whole_; }  // the text ends with the window

  // Moves the window's begin.
  void drop(size_t count) {
    window_.remove_prefix(count);
    position_ += count;
  }
  // Moves the window's end by as much as the window holds, at least a mebibyte, or to the end of the text; views into
  // the window become invalid. Throws Error for damaged or truncated packed data and for a decompression bomb.
  void grow();

 private:
  std::string where_, kept_;
  const MappedFile* file_;
  const char* released_ = nullptr;
  std::unique_ptr<Unpacker> unpacker_;  // null for plain text
  std::string_view rest_, window_;      // rest_: plain text behind the window's begin
  size_t position_ = 0;
  bool whole_ = false;
};

}  // namespace tprimat::logs
