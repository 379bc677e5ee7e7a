#include "report/html/html_text.h"

#include "text/format.h"

namespace tprimat::results {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

// These characters stand only inside of strings, where JSON allows every character to be written by its number.
std::string escape_script_json(const Json& value) {
  const std::string json = print_json_line(value);
  std::string out;
  out.reserve(json.size() + json.size() / 50);
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i, 3);
    if (json[i] == '<')
      out += "\\u003c";
    else if (json[i] == '>')
      out += "\\u003e";
    else if (json[i] == '&')
      out += "\\u0026";
    else if (rest == "\xe2\x80\xa8" || rest == "\xe2\x80\xa9")  // U+2028, U+2029
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029", i += 2;
    else
      out += json[i];
  }
  return out;
}

}  // namespace tprimat::results
