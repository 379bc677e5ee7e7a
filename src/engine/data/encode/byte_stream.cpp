#include "data/encode/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr size_t k_compressed_block = size_t{1} << 18;

[[noreturn]] void refuse_stream(const std::string& path, std::string_view what) {
  throw Error(Problem{std::string(what), path, ""});
}

class FileStream final : public ByteStream {
 public:
  explicit FileStream(std::string path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) refuse_because(errno);
    if (!S_ISREG(status.st_mode)) refuse_stream(path_, "it is not a regular file");
  }
  ~FileStream() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  size_t read(char* into, size_t size) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(descriptor_, into + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse_because(errno);
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    bytes_ += static_cast<int64_t>(done);
    return done;
  }
  int64_t file_bytes_read() const override { return bytes_; }
  const std::string& path() const { return path_; }

  std::string first_bytes() const {
    char bytes[4];
    const ssize_t count = ::pread(descriptor_, bytes, sizeof bytes, 0);
    return count > 0 ? std::string(bytes, static_cast<size_t>(count)) : "";
  }

 private:
  [[noreturn]] void refuse_because(int reason) {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    refuse_stream(path_, fmt::format("cannot read the file: {}", std::strerror(reason)));
  }

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

// Compressed bytes, block by block.
class CompressedInput {
 public:
  explicit CompressedInput(std::unique_ptr<FileStream> file) : file_(std::move(file)), block_(k_compressed_block) {}
  bool refill() {
    begin = 0;
    end = file_->read(block_.data(), block_.size());
    return end > 0;
  }
  const char* data() const { return block_.data(); }
  const FileStream& file() const { return *file_; }
  size_t begin = 0, end = 0;  // what is not used yet

 private:
  std::unique_ptr<FileStream> file_;
  std::vector<char> block_;
};

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<FileStream> file) : input_(std::move(file)) {
    constexpr int k_gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&state_, k_gzip_only) != Z_OK) refuse_stream(input_.file().path(), "cannot initialize zlib");
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(char* into, size_t size) override {
    size_t done = 0;
    while (done < size) {
      if (input_.begin == input_.end && !input_.refill()) {
        if (inside_) refuse_stream(input_.file().path(), "the gzip data is cut off");
        break;
      }
      done += inflate_some(into + done, size - done);
    }
    return done;
  }
  int64_t file_bytes_read() const override { return input_.file().file_bytes_read(); }

 private:
  size_t inflate_some(char* into, size_t size) {
    const size_t left = input_.end - input_.begin;
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data() + input_.begin));
    state_.avail_in = static_cast<uInt>(left);
    state_.next_out = reinterpret_cast<Bytef*>(into);
    state_.avail_out = static_cast<uInt>(std::min<size_t>(size, k_compressed_block));
    const uInt capacity = state_.avail_out;
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      refuse_stream(input_.file().path(), "the gzip data is damaged");
    input_.begin += left - state_.avail_in;
    inside_ = result != Z_STREAM_END;
    if (!inside_) inflateReset(&state_);  // another member may follow
    return capacity - state_.avail_out;
  }

  CompressedInput input_;
  z_stream state_{};
  bool inside_ = true;
};

class ZstdStream final : public ByteStream {
 public:
  explicit ZstdStream(std::unique_ptr<FileStream> file) : input_(std::move(file)), state_(ZSTD_createDStream()) {
    if (!state_) refuse_stream(input_.file().path(), "cannot initialize zstd");
  }
  ~ZstdStream() override { ZSTD_freeDStream(state_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  size_t read(char* into, size_t size) override {
    ZSTD_outBuffer out{into, size, 0};
    while (out.pos < size) {
      if (input_.begin == input_.end && !input_.refill()) {
        if (inside_) refuse_stream(input_.file().path(), "the zstd data is cut off");
        break;
      }
      ZSTD_inBuffer in{input_.data(), input_.end, input_.begin};
      const size_t result = ZSTD_decompressStream(state_, &out, &in);
      if (ZSTD_isError(result)) refuse_stream(input_.file().path(), "the zstd data is damaged");
      input_.begin = in.pos;
      inside_ = result != 0;
    }
    return out.pos;
  }
  int64_t file_bytes_read() const override { return input_.file().file_bytes_read(); }

 private:
  CompressedInput input_;
  ZSTD_DStream* state_;
  bool inside_ = true;
};

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::string& path) {
  auto file = std::make_unique<FileStream>(path);
  const std::string first = file->first_bytes();
  if (first.starts_with("\x1f\x8b")) return std::make_unique<GzipStream>(std::move(file));
  if (first.starts_with("\x28\xb5\x2f\xfd")) return std::make_unique<ZstdStream>(std::move(file));
  return file;
}

}  // namespace tprimat::engine
