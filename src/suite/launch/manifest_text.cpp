#include "launch/manifest_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/printable.h"

namespace tprimat::suite {
namespace {

constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";

// A path, or a word that begins with a letter and is none that YAML 1.1 reads as true, false or nothing.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 9> k_values = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  constexpr std::string_view k_first = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (text.empty() || k_first.find(text.front()) == std::string_view::npos) return false;
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text.find_first_not_of(k_plain) == std::string_view::npos &&
         std::ranges::find(k_values, small) == k_values.end();
}

// A block keeps such a text as it is: no line begins with a blank before the first one that does not, and the text ends
// with one line break.
bool is_block(std::string_view text) {
  return text.size() > 1 && text.find('\n') < text.size() - 1 && text.front() != ' ' && text.front() != '\n' &&
         text.front() != '\t' && text.ends_with('\n') && !text.ends_with("\n\n") && printable(text, "\n\t") == text;
}

std::string print_text(const std::string& text) {
  if (is_plain(text)) return text;
  return print_json_ascii(Json(text));
}

class Printer {
 public:
  void print(const Json& value, int depth) {
    if (value.is_object())
      for (const auto& [key, member] : value.items()) {
        indent(depth);
        text_ += print_text(key) + ":";
        print_below(member, depth);
      }
    else
      for (const Json& item : value) print_item(item, depth);
  }
  std::string take() { return std::move(text_); }

 private:
  void indent(int depth) {
    if (!text_.empty() && text_.back() == '\n') text_.append(static_cast<size_t>(2 * depth), ' ');
  }

  // "- name: train", with the further members below.
  void print_item(const Json& item, int depth) {
    indent(depth);
    text_ += "-";
    if (item.is_object() && !item.empty()) {
      text_ += " ";
      print(item, depth + 1);
    } else {
      print_below(item, depth);
    }
  }

  void print_below(const Json& value, int depth) {
    if (value.is_structured() && !value.empty()) {
      text_ += "\n";
      print(value, depth + 1);
    } else if (value.is_string() && is_block(value.text())) {
      print_block(value.text(), depth + 1);
    } else {
      text_ += " " + (value.is_string() ? print_text(value.text()) : print_json_line(value)) + "\n";
    }
  }

  void print_block(std::string_view text, int depth) {
    text_ += " |\n";
    while (!text.empty()) {
      const size_t end = text.find('\n') + 1;
      if (end > 1) indent(depth);
      text_ += text.substr(0, end);
      text.remove_prefix(end);
    }
  }

  std::string text_;
};

}  // namespace

std::string print_manifest(const Json& document) {
  Printer printer;
  printer.print(document, 0);
  return printer.take();
}

}  // namespace tprimat::suite
