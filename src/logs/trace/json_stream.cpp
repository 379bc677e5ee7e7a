#include "trace/json_stream.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_largest_item = 16 * 1024 * 1024;  // of the text, beyond any that a profiler writes

}  // namespace

char JsonStream::peek() {
  for (;;) {
    const std::string_view window = text_.window();
    const size_t at = window.find_first_not_of(" \n\r\t");
    text_.drop(at == std::string_view::npos ? window.size() : at);
    if (at != std::string_view::npos) return window[at];
    if (text_.is_whole()) return 0;
    text_.grow();
  }
}

void JsonStream::expect(char wanted) {
  item([wanted](JsonCursor& cursor) { cursor.expect(wanted, "another value should begin here"); });
}

bool JsonStream::ends(char closing) {
  if (peek() != closing) return false;
  text_.drop(1);
  return true;
}

bool JsonStream::continues(char closing) {
  if (ends(closing)) return false;
  item([](JsonCursor& cursor) { cursor.expect(',', "a comma or a closing bracket should stand here"); });
  return true;
}

void JsonStream::skip(int depth) {
  const char c = peek();
  if (depth == k_max_json_depth) refuse({text_.window().data(), "lists and objects are nested too deep"});
  if (c == '{')
    members([&](const std::string&) { skip(depth + 1); });
  else if (c == '[')
    elements([&] { skip(depth + 1); });
  else
    item([](JsonCursor& cursor) { cursor.value(); });
}

void JsonStream::grow() {
  if (text_.window().size() >= k_largest_item)
    throw Error(
        Problem{fmt::format("holds an item of more than {} MiB at byte {}", k_largest_item >> 20, text_.position()),
                text_.where(), ""});
  if (text_.is_whole())
    throw Error(
        Problem{fmt::format("is truncated: the JSON text ends at byte {}", text_.position() + text_.window().size()),
                text_.where(), "record the trace again and let the profiler finish writing"});
  text_.grow();
}

void JsonStream::refuse(const JsonFault& fault) const {
  const size_t byte = text_.position() + static_cast<size_t>(fault.at - text_.window().data()) + 1;
  throw Error(Problem{fmt::format("is not valid JSON at byte {}: {}", byte, fault.what), text_.where(), ""});
}

}  // namespace tprimat::logs
