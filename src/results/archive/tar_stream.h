#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace tprimat::results {

// Looks at the headers of a tar archive on their way to libarchive, which applies some without handing them out. Kinds
// that no sealed archive holds make programs differ in what they unpack: global headers (POSIX.1, pax), labels of
// volumes and parts of files (GNU), records that overrule the length in a header, and lengths and checksums in other
// forms than POSIX's, which make the position of the next header ambiguous.
class TarHeaders {
 public:
  // Reads further data. Returns why the archive must be refused, as the end of a sentence ("holds a global header");
  // empty: accepted. Partial headers are left to libarchive.
  std::string read(std::string_view bytes);

 private:
  std::string take_header();
  std::string take_records() const;

  std::string block_;     // the incomplete header, or the records of an extended header
  uint64_t skipped_ = 0;  // bytes of content that are to come
  uint64_t records_ = 0;  // bytes of records that are to come, padding included
  bool has_ended_ = false;
};

// The bytes of a tar archive, plain or as one gzip member or one zstd frame. Throws Error for a file that cannot be
// opened, is damaged, ends early, holds headers that must be refused, or has bytes behind the member or frame, which
// were not sealed.
class TarStream {
 public:
  explicit TarStream(const std::filesystem::path& path);
  TarStream(const TarStream&) = delete;
  TarStream& operator=(const TarStream&) = delete;

  // The next bytes, valid until the next call; none at the end.
  std::string_view next();
  int64_t handed_out() const { return handed_out_; }

  [[noreturn]] void refuse(const std::string& what) const;    // not one of our archives
  [[noreturn]] void distrust(const std::string& what) const;  // possibly manipulated

 private:
  // Unpacks from `input` into `output`, and removes the consumed and the filled part. True at the end of the data.
  using Unpack = std::function<bool(std::string_view& input, std::span<char>& output)>;
  Unpack make_gzip() const;
  Unpack make_zstd() const;
  void refill();
  std::string_view unpack();

  std::string path_;
  Descriptor file_;
  std::vector<char> input_, output_;
  std::string_view rest_;  // of the input, not taken yet
  std::string packing_;    // "gzip"; empty: none
  Unpack unpack_;
  bool has_ended_ = false;
  TarHeaders headers_;
  int64_t handed_out_ = 0;
};

}  // namespace tprimat::results
