#include "text/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace tprimat {
namespace {

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}", line, before.size() - line_start + 1);
}

// No file of ours nests this deeply. Copying and printing a value recurse, so a deeper one would end the program.
constexpr int k_deepest_nesting = 200;

// Outside strings JSON is printable ASCII, so every other character may be escaped by its number.
std::string escape_unprintable(std::string json) {
  const auto may_begin = [](char c) { return static_cast<unsigned char>(c) >= 0x7f; };
  if (std::none_of(json.begin(), json.end(), may_begin)) return json;
  std::string out;
  for (std::string_view rest = json; !rest.empty();) {
    const auto [code, bytes] = may_begin(rest.front()) ? decode_utf8(rest) : Utf8Character{U' ', 1};
    if (!is_unprintable(code))
      out += rest.substr(0, bytes);
    else if (code < 0x10000)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    else  // UTF-16
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10U), 0xdc00 + (code & 0x3ffU));
    rest.remove_prefix(std::max<size_t>(1, bytes));
  }
  return out;
}

bool is_flat_array(const Json& value) {
  return value.is_array() &&
         std::none_of(value.begin(), value.end(), [](const Json& item) { return item.is_structured(); });
}

void print_indented(const Json& value, int depth, std::string& out);

void print_members(const Json& value, int depth, std::string& out) {
  const std::string indent(static_cast<size_t>(depth + 1) * 2, ' ');
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    out += first ? "\n" : ",\n";
    out += indent;
    if (value.is_object()) out += print_json_line(key) + ": ";
    print_indented(item, depth + 1, out);
    first = false;
  }
  out += '\n' + std::string(static_cast<size_t>(depth) * 2, ' ');
}

void print_indented(const Json& value, int depth, std::string& out) {
  if (!value.is_structured() || value.empty() || is_flat_array(value)) {
    out += print_json_line(value);
    return;
  }
  out += value.is_object() ? '{' : '[';
  print_members(value, depth, out);
  out += value.is_object() ? '}' : ']';
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  const auto check_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > k_deepest_nesting)
      throw Error(Problem{fmt::format("is nested more than {} deep", k_deepest_nesting), std::string(where), ""});
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::parse_error& error) {
    const std::string_view full = error.what();
    const size_t colon = full.rfind(": ");
    throw Error(
        Problem{fmt::format("is not valid JSON: {}", colon == std::string_view::npos ? full : full.substr(colon + 2)),
                fmt::format("{}:{}", where, line_and_column(text, error.byte)), ""});
  } catch (const Json::out_of_range&) {
    throw Error(Problem{"holds a number that is too large", std::string(where), ""});
  }
}

std::string print_json(const Json& value) {
  std::string out;
  print_indented(value, 0, out);
  return out + '\n';
}

std::string print_json_line(const Json& value) {
  return escape_unprintable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tprimat
