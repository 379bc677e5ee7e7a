#include "text/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

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
    if (value.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    print_indented(item, depth + 1, out);
    first = false;
  }
  out += '\n' + std::string(static_cast<size_t>(depth) * 2, ' ');
}

void print_indented(const Json& value, int depth, std::string& out) {
  if (!value.is_structured() || value.empty() || is_flat_array(value)) {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
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

std::string print_json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace tprimat
