#include "telemetry/json_documents.h"

#include "base/error.h"

namespace tprimat {
namespace {

// Where the bracket that opens `text` is closed, just behind it; npos when it is not.
size_t end_of_document(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!in_string && (c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// The next bracket that begins a line and is not that of a word such as "[WARNING]"; npos when there is none.
size_t find_document(std::string_view text) {
  bool line_begins = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\t' || text[i] == '\r';
    const bool opens = text[i] == '{' || text[i] == '[';
    const bool word = i + 1 < text.size() && text[i + 1] >= 'A' && text[i + 1] <= 'Z';
    if (line_begins && opens && !word) return i;
    line_begins = text[i] == '\n' || text[i] == ']' || text[i] == '}' || (line_begins && blank);
  }
  return std::string_view::npos;
}

}  // namespace

bool for_each_json_document(std::string_view text, std::string_view where,
                            const std::function<void(const Json&)>& use) {
  bool first = true;
  for (size_t begin; (begin = find_document(text)) != std::string_view::npos; first = false) {
    text.remove_prefix(begin);
    const size_t end = end_of_document(text);
    try {
      use(parse_json(text.substr(0, end), where));
    } catch (const Error&) {
      if (first) throw;
      return false;
    }
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end);
  }
  return true;
}

}  // namespace tprimat
