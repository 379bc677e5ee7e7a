#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/enum_names.h"

namespace tprimat::engine {

// The bytes of a file from its beginning, decompressed when it is gzip or zstd by its first bytes.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual size_t read(char* into, size_t size) = 0;  // fewer only at the end; throws Error that names the file
  virtual int64_t file_bytes_read() const = 0;       // as they lie on the disk
};
std::unique_ptr<ByteStream> open_byte_stream(const std::string& path);  // throws Error

// What a document is: a JSON object per line; a line; lines up to a blank one; a whole file.
enum class DocumentForm { jsonl, line, blank, file };

// jsonl for names that end in .jsonl, .ndjson or .json, with .gz or .zst behind that or not; else blank.
DocumentForm form_of_name(std::string_view path);

bool is_blank_line(std::string_view line);  // nothing but spaces, tabs and CR

struct TextBlock {
  std::string text;  // whole documents
  std::string path;
  DocumentForm form = DocumentForm::jsonl;
  int64_t first_line = 1;
  int64_t number = 0;  // 0, 1, 2, ... over all files
};

// Cuts files, one after the other, into blocks of about a megabyte that end where documents do. Not for several
// threads at once.
class TextBlockReader {
 public:
  TextBlockReader(std::vector<std::string> paths, std::optional<DocumentForm> form);

  bool next(TextBlock& block);  // false after the last; throws Error
  int64_t bytes_read() const;   // as they lie on the disk
  int64_t bytes_in_all() const { return bytes_in_all_; }

 private:
  bool open_next();
  void fill(size_t size);
  size_t end_of_documents() const;  // 0: none in what was read

  std::vector<std::string> paths_;
  std::optional<DocumentForm> chosen_form_;
  size_t next_path_ = 0;
  std::unique_ptr<ByteStream> stream_;
  DocumentForm form_ = DocumentForm::jsonl;
  std::string rest_;  // read but not handed out
  bool at_end_ = false;
  int64_t line_ = 1, number_ = 0;
  int64_t bytes_before_ = 0, bytes_in_all_ = 0;
};

}  // namespace tprimat::engine
