#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// A log's bytes from a plain file, gzip, zstd, or standard input ("-"). Read in blocks of about 256 KiB, so that memory
// does not grow with the file.
class LogSource {
 public:
  explicit LogSource(const std::filesystem::path& path);  // throws Error that names the path
  explicit LogSource(std::string bytes);                  // compressed or not, already in memory
  ~LogSource();
  LogSource(const LogSource&) = delete;
  LogSource& operator=(const LogSource&) = delete;

  // The next whole lines, each with its "\n" (the last one of the source may lack it); empty at the end. Valid until
  // the next call. A line beyond 16 MiB comes in pieces.
  std::string_view next_lines();

  // Everything that is left, up to `limit` bytes; throws Error when there is more.
  std::string rest(size_t limit);

  // The fault of the input, as a sentence, such as a compressed file that ends early. Empty: none.
  const std::string& complaint() const { return complaint_; }
  int64_t bytes() const { return bytes_; }  // handed out so far, uncompressed

 private:
  class Stream;
  class FileStream;
  class MemoryStream;
  class GzipStream;
  class ZstdStream;
  void open_stream(std::unique_ptr<Stream> raw);
  size_t fill();

  std::string name_;
  std::unique_ptr<Stream> stream_;
  std::string complaint_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // bytes of the buffer that are not handed out yet
  bool at_end_ = false;
  int64_t bytes_ = 0;
};

// Every file of a folder and below that may be a log, by name; hidden ones, records of profiled steps and the folder
// `except` are left out. Logs a warning if a folder cannot be listed completely.
std::vector<std::filesystem::path> list_log_files(const std::filesystem::path& folder,
                                                  const std::filesystem::path& except);

}  // namespace tprimat::logs
