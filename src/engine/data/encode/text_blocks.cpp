#include "data/encode/text_blocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

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

// What a file holds compressed.
class DecompressedStream : public ByteStream {
 public:
  DecompressedStream(std::unique_ptr<FileStream> file, const char* format)
      : file_(std::move(file)), format_(format), block_(k_compressed_block) {}

  size_t read(char* into, size_t size) override {
    size_t done = 0;
    while (done < size) {
      if (input_.empty()) input_ = {block_.data(), file_->read(block_.data(), block_.size())};
      if (input_.empty() && inside_) refuse_stream(file_->path(), fmt::format("the {} data is cut off", format_));
      if (input_.empty()) break;
      done += expand(into + done, size - done);
    }
    return done;
  }
  int64_t file_bytes_read() const override { return file_->file_bytes_read(); }

 protected:
  // Moves input_ behind what it used; returns how many bytes it wrote.
  virtual size_t expand(char* into, size_t size) = 0;
  void require(bool sound, const char* problem) const {
    if (!sound) refuse_stream(file_->path(), problem);
  }
  std::string_view input_;  // what is not used yet of the block
  bool inside_ = true;      // the end of the compressed data has not come

 private:
  std::unique_ptr<FileStream> file_;
  const char* format_;
  std::vector<char> block_;
};

class GzipStream final : public DecompressedStream {
 public:
  explicit GzipStream(std::unique_ptr<FileStream> file) : DecompressedStream(std::move(file), "gzip") {
    constexpr int k_gzip_only = 16 + MAX_WBITS;
    require(inflateInit2(&state_, k_gzip_only) == Z_OK, "cannot initialize zlib");
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

 private:
  size_t expand(char* into, size_t size) override {
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    state_.avail_in = static_cast<uInt>(input_.size());
    state_.next_out = reinterpret_cast<Bytef*>(into);
    state_.avail_out = static_cast<uInt>(std::min<size_t>(size, k_compressed_block));
    const uInt capacity = state_.avail_out;
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    require(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR, "the gzip data is damaged");
    input_.remove_prefix(input_.size() - state_.avail_in);
    inside_ = result != Z_STREAM_END;
    if (!inside_) inflateReset(&state_);  // another member may follow
    return capacity - state_.avail_out;
  }

  z_stream state_{};
};

class ZstdStream final : public DecompressedStream {
 public:
  explicit ZstdStream(std::unique_ptr<FileStream> file) : DecompressedStream(std::move(file), "zstd") {
    require(state_ != nullptr, "cannot initialize zstd");
  }

 private:
  size_t expand(char* into, size_t size) override {
    ZSTD_outBuffer out{into, size, 0};
    ZSTD_inBuffer in{input_.data(), input_.size(), 0};
    const size_t result = ZSTD_decompressStream(state_.get(), &out, &in);
    require(!ZSTD_isError(result), "the zstd data is damaged");
    input_.remove_prefix(in.pos);
    inside_ = result != 0;
    return out.pos;
  }

  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> state_{ZSTD_createDStream(), &ZSTD_freeDStream};
};

constexpr size_t k_block = size_t{1} << 20;
constexpr size_t k_longest_document = size_t{1} << 31;

size_t end_of_lines(std::string_view text) { return text.rfind('\n') + 1; }

// Behind the last blank line.
size_t end_of_blank_lines(std::string_view text) {
  for (size_t end = end_of_lines(text); end > 0;) {
    const size_t begin = end == 1 ? 0 : text.rfind('\n', end - 2) + 1;
    if (is_blank_line(text.substr(begin, end - 1 - begin))) return end;
    end = begin;
  }
  return 0;
}

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::string& path) {
  auto file = std::make_unique<FileStream>(path);
  const std::string first = file->first_bytes();
  if (first.starts_with("\x1f\x8b")) return std::make_unique<GzipStream>(std::move(file));
  if (first.starts_with("\x28\xb5\x2f\xfd")) return std::make_unique<ZstdStream>(std::move(file));
  return file;
}

DocumentForm form_of_name(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst"})
    if (path.ends_with(ending)) path.remove_suffix(ending.size());
  const bool json = path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".json");
  return json ? DocumentForm::jsonl : DocumentForm::blank;
}

bool is_blank_line(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

TextBlockReader::TextBlockReader(std::vector<std::string> paths, std::optional<DocumentForm> form)
    : paths_(std::move(paths)), chosen_form_(form) {
  for (const std::string& path : paths_) {
    open_byte_stream(path);  // a file that cannot be read is told of before hours of work
    bytes_in_all_ += static_cast<int64_t>(std::filesystem::file_size(path));
  }
}

int64_t TextBlockReader::bytes_read() const { return bytes_before_ + (stream_ ? stream_->file_bytes_read() : 0); }

bool TextBlockReader::open_next() {
  bytes_before_ = bytes_read();
  stream_.reset();
  if (next_path_ == paths_.size()) return false;
  const std::string& path = paths_[next_path_++];
  stream_ = open_byte_stream(path);
  form_ = chosen_form_.value_or(form_of_name(path));
  at_end_ = false;
  line_ = 1;
  return true;
}

void TextBlockReader::fill(size_t size) {
  const size_t before = rest_.size();
  rest_.resize(std::max(before, size));
  const size_t count = stream_->read(rest_.data() + before, rest_.size() - before);
  at_end_ = before + count < rest_.size();
  rest_.resize(before + count);
}

size_t TextBlockReader::end_of_documents() const {
  if (at_end_) return rest_.size();
  switch (form_) {
    case DocumentForm::jsonl:
    case DocumentForm::line: return end_of_lines(rest_);
    case DocumentForm::blank: return end_of_blank_lines(rest_);
    case DocumentForm::file: break;
  }
  return 0;
}

bool TextBlockReader::next(TextBlock& block) {
  while (!stream_ || (at_end_ && rest_.empty()))
    if (!open_next()) return false;
  size_t end = 0;
  for (size_t size = k_block; end == 0; size *= 2) {
    if (size > k_longest_document)
      throw Error(Problem{fmt::format("a document is longer than {} bytes", k_longest_document / 2),
                          fmt::format("{}:{}", paths_[next_path_ - 1], line_),
                          "set the document boundaries with --split-by"});
    fill(size);
    if (at_end_ && rest_.empty()) return next(block);
    end = end_of_documents();
  }
  block.text.assign(rest_, 0, end);
  rest_.erase(0, end);
  block.path = paths_[next_path_ - 1];
  block.form = form_;
  block.first_line = line_;
  block.number = number_++;
  line_ += std::count(block.text.begin(), block.text.end(), '\n');
  return true;
}

}  // namespace tprimat::engine
