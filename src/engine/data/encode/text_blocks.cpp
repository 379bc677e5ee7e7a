#include "data/encode/text_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace tprimat::engine {
namespace {

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
