#include "archive/tar_stream.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"

namespace tprimat::results {
namespace {

constexpr size_t k_decoder_block = 1 << 16;

}  // namespace

class ArchiveFile {
 public:
  explicit ArchiveFile(const std::filesystem::path& path) : path_(path.string()), file_(open_input(path)) {}

  // Returns the number of bytes read: less than `size` only at the end.
  size_t read(char* into, size_t size) {
    const size_t peeked = std::min(size, head_.size());
    std::copy_n(head_.begin(), peeked, into);
    head_.erase(0, peeked);
    return peeked + read_on(into + peeked, size - peeked);
  }

  const std::string& peek(size_t size) {
    head_.resize(size);
    head_.resize(read_on(head_.data(), size));
    return head_;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Problem{what, path_, "give a file that `tprimat archive` wrote"});
  }
  [[noreturn]] void refuse_rest(const char* behind) const {
    throw Error(
        Problem{fmt::format("has data after {}", behind), path_, "nothing was unpacked; do not trust this archive"});
  }

 private:
  size_t read_on(char* into, size_t size) {
    size_t all = 0;
    while (all < size) {
      const ssize_t count = ::read(file_.descriptor(), into + all, size - all);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
      if (count == 0) break;
      all += static_cast<size_t>(count);
    }
    return all;
  }

  std::string path_;
  InputFile file_;
  std::string head_;  // peeked at, not read yet
};

class TarStream::Decoder {
 public:
  explicit Decoder(ArchiveFile file) : file_(std::move(file)), input_(k_decoder_block), output_(k_decoder_block) {}
  virtual ~Decoder() = default;
  virtual std::string_view next() = 0;

 protected:
  ArchiveFile file_;
  std::vector<char> input_, output_;
};

namespace {

class PlainDecoder : public TarStream::Decoder {
 public:
  using Decoder::Decoder;
  std::string_view next() override { return {output_.data(), file_.read(output_.data(), output_.size())}; }
};

class GzipDecoder : public TarStream::Decoder {
 public:
  explicit GzipDecoder(ArchiveFile file) : Decoder(std::move(file)) {
    constexpr int k_gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&state_, k_gzip_only) != Z_OK) file_.refuse("cannot be read: zlib could not be started");
  }
  ~GzipDecoder() override { inflateEnd(&state_); }

  std::string_view next() override {
    state_.next_out = reinterpret_cast<Bytef*>(output_.data());
    state_.avail_out = static_cast<uInt>(output_.size());
    while (state_.avail_out == output_.size() && !has_ended_) step();
    return {output_.data(), output_.size() - state_.avail_out};
  }

 private:
  void step() {
    if (state_.avail_in == 0) refill();
    if (state_.avail_in == 0) file_.refuse("is truncated: its gzip data end early");
    const int status = inflate(&state_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      if (state_.avail_in == 0) refill();
      if (state_.avail_in > 0) file_.refuse_rest("its gzip data");
      has_ended_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      file_.refuse("is damaged: its gzip data cannot be unpacked");
    }
  }

  void refill() {
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(file_.read(input_.data(), input_.size()));
  }

  z_stream state_{};
  bool has_ended_ = false;
};

class ZstdDecoder : public TarStream::Decoder {
 public:
  explicit ZstdDecoder(ArchiveFile file) : Decoder(std::move(file)), state_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (state_ == nullptr) file_.refuse("cannot be read: zstd could not be started");
  }

  std::string_view next() override {
    ZSTD_outBuffer output{output_.data(), output_.size(), 0};
    while (output.pos == 0 && !has_ended_) step(output);
    return {output_.data(), output.pos};
  }

 private:
  void step(ZSTD_outBuffer& output) {
    const bool was_empty = bytes_.pos == bytes_.size;
    if (was_empty) refill();
    const size_t status = ZSTD_decompressStream(state_.get(), &output, &bytes_);
    if (ZSTD_isError(status) != 0)
      file_.refuse(fmt::format("is damaged: its zstd data cannot be unpacked ({})", ZSTD_getErrorName(status)));
    if (status == 0) {
      if (bytes_.pos == bytes_.size) refill();
      if (bytes_.size > 0 && bytes_.pos < bytes_.size) file_.refuse_rest("its zstd data");
      has_ended_ = true;
    } else if (was_empty && bytes_.size == 0 && output.pos == 0) {
      file_.refuse("is truncated: its zstd data end early");
    }
  }

  void refill() { bytes_ = {input_.data(), file_.read(input_.data(), input_.size()), 0}; }

  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> state_;
  ZSTD_inBuffer bytes_{nullptr, 0, 0};
  bool has_ended_ = false;
};

std::unique_ptr<TarStream::Decoder> open_decoder(const std::filesystem::path& path) {
  ArchiveFile file(path);
  const std::string head = file.peek(4);  // a copy: the file moves
  if (head.starts_with("\x1f\x8b")) return std::make_unique<GzipDecoder>(std::move(file));
  if (head == "\x28\xb5\x2f\xfd") return std::make_unique<ZstdDecoder>(std::move(file));
  return std::make_unique<PlainDecoder>(std::move(file));
}

}  // namespace

TarStream::TarStream(const std::filesystem::path& path) : decoder_(open_decoder(path)) {}
TarStream::~TarStream() = default;

std::string_view TarStream::next() {
  const std::string_view bytes = decoder_->next();
  handed_out_ += std::ssize(bytes);
  return bytes;
}

}  // namespace tprimat::results
