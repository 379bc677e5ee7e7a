#include "report/wrap.h"

#include <algorithm>

namespace tprimat::results {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

// Bytes of the first `count` code points.
size_t prefix_bytes(std::string_view text, size_t count) {
  size_t bytes = 0;
  while (bytes < text.size() && (count > 0 || !starts_code_point(text[bytes]))) {
    if (starts_code_point(text[bytes]) && count-- == 0) break;
    ++bytes;
  }
  return bytes;
}

}  // namespace

std::vector<std::string> wrap_words(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t blank = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    const bool is_full = !lines.back().empty() && code_points(lines.back()) + 1 + code_points(word) > width;
    if (is_full && !word.starts_with(':')) lines.emplace_back();
    for (; code_points(word) > width && !(is_full && word.starts_with(':')); lines.emplace_back()) {
      const size_t cut = std::min(word.size(), word.find_first_not_of(':', prefix_bytes(word, width)));
      lines.back() = word.substr(0, cut);
      word.remove_prefix(cut);
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string shorten(std::string_view text, size_t width) {
  if (code_points(text) <= width) return std::string(text);
  return std::string(text.substr(0, prefix_bytes(text, width - 1))) + "…";
}

}  // namespace tprimat::results
