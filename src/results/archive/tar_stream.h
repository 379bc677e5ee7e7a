#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace tprimat::results {

// The bytes of a tar archive, plain or as one gzip member or one zstd frame. Throws Error for a file that cannot be
// opened, is damaged, ends early, or holds more bytes behind the member or frame: those were not sealed.
class TarStream {
 public:
  explicit TarStream(const std::filesystem::path& path);
  ~TarStream();
  TarStream(const TarStream&) = delete;
  TarStream& operator=(const TarStream&) = delete;

  // The next bytes, valid until the next call; none at the end.
  std::string_view next();
  int64_t handed_out() const { return handed_out_; }

  class Decoder;

 private:
  std::unique_ptr<Decoder> decoder_;
  int64_t handed_out_ = 0;
};

}  // namespace tprimat::results
