#include "extract/log_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_block = size_t{1} << 18;
constexpr size_t k_longest_line = size_t{1} << 24;

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& hint = "") {
  throw Error(Problem{what, where, hint});
}

}  // namespace

class LogSource::Stream {
 public:
  virtual ~Stream() = default;
  // Up to `size` bytes; 0 at the end. A fault in the bytes sets `complaint` and ends the input.
  virtual size_t read(char* into, size_t size, std::string& complaint) = 0;
};

class LogSource::FileStream : public LogSource::Stream {
 public:
  FileStream(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  ~FileStream() override {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  size_t read(char* into, size_t size, std::string&) override {
    for (;;) {
      const ssize_t count = ::read(descriptor_, into, size);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) refuse(fmt::format("cannot be read: {}", std::strerror(errno)), name_);
    }
  }

 private:
  int descriptor_;
  std::string name_;
};

class LogSource::MemoryStream : public LogSource::Stream {
 public:
  explicit MemoryStream(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t read(char* into, size_t size, std::string&) override {
    const size_t count = std::min(size, bytes_.size() - at_);
    std::memcpy(into, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

class LogSource::GzipStream : public LogSource::Stream {
 public:
  GzipStream(std::string_view head, std::unique_ptr<Stream> raw)
      : raw_(std::move(raw)), input_(head.begin(), head.end()) {
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(input_.size());
    constexpr int k_gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&state_, k_gzip_only) != Z_OK) refuse("zlib could not be started", "");
  }
  ~GzipStream() override { inflateEnd(&state_); }

  size_t read(char* into, size_t size, std::string& complaint) override {
    state_.next_out = reinterpret_cast<Bytef*>(into);
    state_.avail_out = static_cast<uInt>(size);
    while (state_.avail_out == size && !ended_) {
      if (state_.avail_in == 0 && !refill(complaint)) break;
      if (!in_member_ && !begin_member(complaint)) continue;
      const int status = inflate(&state_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        in_member_ = false;
        inflateReset(&state_);  // another member may follow
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        complaint = state_.msg != nullptr && std::string_view(state_.msg).ends_with("check")
                        ? "the gzip data do not match their checksum: what was read may be damaged"
                        : "the gzip data are damaged: the rest was not read";
        ended_ = true;
      }
    }
    return size - state_.avail_out;
  }

 private:
  // Zeros behind a member are padding.
  bool begin_member(std::string& complaint) {
    while (state_.avail_in > 0 && *state_.next_in == 0) ++state_.next_in, --state_.avail_in;
    if (state_.avail_in == 0) return false;
    constexpr Bytef k_first_of_gzip = 0x1F;
    in_member_ = *state_.next_in == k_first_of_gzip;
    if (in_member_) return true;
    complaint = "what follows the gzip data is no gzip data: it was not read";
    ended_ = true;
    return false;
  }

  bool refill(std::string& complaint) {
    input_.resize(k_block);
    const size_t count = raw_->read(input_.data(), input_.size(), complaint);
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(count);
    if (count > 0) return true;
    ended_ = true;
    if (in_member_) complaint = "the gzip file ends early: it was read up to there";
    return false;
  }

  std::unique_ptr<Stream> raw_;
  std::vector<char> input_;
  z_stream state_{};
  bool in_member_ = true, ended_ = false;
};

class LogSource::ZstdStream : public LogSource::Stream {
 public:
  ZstdStream(std::string_view head, std::unique_ptr<Stream> raw)
      : raw_(std::move(raw)), state_(ZSTD_createDStream()), storage_(head.begin(), head.end()) {
    input_ = {storage_.data(), storage_.size(), 0};
    if (state_ == nullptr) refuse("zstd could not be started", "");
    ZSTD_DCtx_setParameter(state_, ZSTD_d_windowLogMax, 27);  // 128 MiB: what `zstd --ultra` needs at most by default
  }
  ~ZstdStream() override { ZSTD_freeDStream(state_); }

  size_t read(char* into, size_t size, std::string& complaint) override {
    ZSTD_outBuffer output{into, size, 0};
    while (output.pos == 0 && !ended_) {
      if (input_.pos == input_.size && !refill(complaint)) break;
      const size_t status = ZSTD_decompressStream(state_, &output, &input_);
      if (ZSTD_isError(status) != 0) {
        complaint = fmt::format("the zstd data are damaged ({}): the rest was not read", ZSTD_getErrorName(status));
        ended_ = true;
      } else {
        in_frame_ = status != 0;
      }
    }
    return output.pos;
  }

 private:
  bool refill(std::string& complaint) {
    storage_.resize(k_block);
    input_ = {storage_.data(), raw_->read(storage_.data(), storage_.size(), complaint), 0};
    if (input_.size > 0) return true;
    ended_ = true;
    if (in_frame_) complaint = "the zstd file ends early: it was read up to there";
    return false;
  }

  std::unique_ptr<Stream> raw_;
  ZSTD_DStream* state_;
  std::vector<char> storage_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool in_frame_ = true, ended_ = false;
};

namespace {

int open_log(const std::filesystem::path& path) {
  if (path == "-") return STDIN_FILENO;
  const int descriptor = open_input(path).release();
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  return descriptor;
}

}  // namespace

LogSource::LogSource(const std::filesystem::path& path)
    : name_(path == "-" ? "standard input" : path.string()), buffer_(2 * k_block, '\0') {
  open_stream(std::make_unique<FileStream>(open_log(path), name_));
}

LogSource::LogSource(std::string bytes) : name_("text"), buffer_(2 * k_block, '\0') {
  open_stream(std::make_unique<MemoryStream>(std::move(bytes)));
}

LogSource::~LogSource() = default;

// The first bytes tell the compression; a decompressing stream gets them in front of the rest.
void LogSource::open_stream(std::unique_ptr<Stream> raw) {
  stream_ = std::move(raw);
  while (end_ < 4 && !at_end_) fill();
  const std::string_view head(buffer_.data(), end_);
  const bool gzip = head.substr(0, 2) == "\x1f\x8b", zstd = head.substr(0, 4) == "\x28\xb5\x2f\xfd";
  if (!gzip && !zstd) return;
  if (gzip)
    stream_ = std::make_unique<GzipStream>(head, std::move(stream_));
  else
    stream_ = std::make_unique<ZstdStream>(head, std::move(stream_));
  begin_ = end_ = 0, at_end_ = false;
}

size_t LogSource::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_, begin_ = 0;
  }
  if (buffer_.size() - end_ < k_block) buffer_.resize(end_ + k_block);
  const size_t count = stream_->read(buffer_.data() + end_, k_block, complaint_);
  at_end_ = count == 0;
  end_ += count;
  return count;
}

std::string_view LogSource::next_lines() {
  size_t searched = begin_;
  for (;;) {
    const std::string_view unseen(buffer_.data() + searched, end_ - searched);
    const size_t newline = unseen.rfind('\n');
    size_t length = newline == std::string_view::npos ? 0 : searched + newline + 1 - begin_;
    if (length == 0 && (at_end_ || end_ - begin_ >= k_longest_line)) length = end_ - begin_;
    if (length > 0 || at_end_) {
      const std::string_view lines(buffer_.data() + begin_, length);
      begin_ += length;
      bytes_ += static_cast<int64_t>(length);
      return lines;
    }
    searched = end_ - begin_;  // fill() moves what is left to the front
    fill();
  }
}

std::string LogSource::rest(size_t limit) {
  std::string whole(buffer_.data() + begin_, end_ - begin_);
  begin_ = end_;
  while (!at_end_) {
    if (whole.size() > limit)
      refuse(fmt::format("is larger than {} MB, the limit for a file read at once", limit / 1000000), name_);
    begin_ = end_ = 0;
    if (fill() > 0) whole.append(buffer_.data(), end_);
    begin_ = end_;
  }
  bytes_ += static_cast<int64_t>(whole.size());
  return whole;
}

// Beside steps.jsonl: steps under a profiler, which are no measurement.
constexpr std::string_view k_profiled_records = "profiled_steps.jsonl";

std::vector<std::filesystem::path> list_log_files(const std::filesystem::path& folder,
                                                  const std::filesystem::path& except) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const std::string name = each->path().filename().string();
    const bool hidden = name.starts_with('.') || name == k_profiled_records;
    std::error_code ignored;
    if (hidden || (each->is_directory(ignored) && fs::equivalent(each->path(), except, ignored))) {
      if (each->is_directory(ignored)) each.disable_recursion_pending();
      continue;
    }
    if (each->is_regular_file(ignored)) files.push_back(each->path());
  }
  if (error) log_warning(fmt::format("{}: some entries cannot be listed: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tprimat::logs
