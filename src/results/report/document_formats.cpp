#include <fmt/format.h>

#include <algorithm>

#include "report/document.h"
#include "report/fit_table.h"
#include "report/report.h"

namespace tprimat::results {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, starts_code_point));
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

struct Terminal {
  bool colour;
  size_t width;

  std::string paint(const std::string& text, const char* code) const {
    return colour && *code != '\0' ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }
  std::string paint(const std::string& text, Tone tone) const {
    constexpr const char* k_codes[] = {"", "32", "33", "31", "2"};
    return paint(text, k_codes[static_cast<size_t>(tone)]);
  }
};

void print_paragraph(const std::string& text, Tone tone, const std::string& indent, const Terminal& terminal,
                     std::string& out) {
  for (const std::string& line : wrap_words(text, terminal.width - indent.size()))
    out += indent + terminal.paint(line, tone) + '\n';
}

// A line of a list, "1. ..." or "A  ...", whose further lines are indented.
bool is_list_item(std::string_view text) {
  if (text.size() < 4) return false;
  const bool is_number = text[0] >= '1' && text[0] <= '9' && text.substr(1, 2) == ". ";
  return is_number || ((text[0] == 'A' || text[0] == 'B') && text.substr(1, 2) == "  ");
}

void print_line(const std::string& text, Tone tone, const Terminal& terminal, std::string& out) {
  if (!is_list_item(text)) return print_paragraph(text, tone, "", terminal, out);
  std::string head = text.substr(0, 3);
  for (const std::string& line : wrap_words(std::string_view(text).substr(3), terminal.width - 3)) {
    out += terminal.paint(head + line, tone) + '\n';
    head = "   ";
  }
}

void print_part(const DocumentPart& part, const Terminal& terminal, std::string& out) {
  switch (part.kind) {
    case DocumentPart::Kind::title: out += (out.empty() ? "" : "\n") + terminal.paint(part.text, "1;4") + "\n\n"; break;
    case DocumentPart::Kind::heading: out += "\n" + terminal.paint(part.text, "1") + "\n"; break;
    case DocumentPart::Kind::table:
      for (const TextTable& table : fit_table(part.table, terminal.width))
        out += (out.ends_with("\n\n") || out.empty() ? "" : "\n") + render_text(table);
      break;
    case DocumentPart::Kind::lines:
      for (const Line& line : part.lines) {
        if (line.tone == Tone::faint) out += '\n';
        print_line(line.text, line.tone, terminal, out);
        if (!line.aside.empty()) print_paragraph("-> " + line.aside, Tone::faint, "   ", terminal, out);
      }
      break;
  }
}

// Escapes underscores and asterisks, which Markdown would treat as emphasis, and angle brackets, which it would treat
// as HTML.
std::string escape_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("_*`[]\\").find(c) != std::string_view::npos) out += '\\';
    out += c == '<' ? "&lt;" : std::string(1, c);
  }
  return out;
}

std::string write_line(const Line& line) {
  const bool strong = line.tone == Tone::good || line.tone == Tone::bad;
  const bool is_headline = strong && line.aside.empty() && line.text.ends_with('.');
  std::string text = is_headline ? "**" + escape_markdown(line.text) + "**" : escape_markdown(line.text);
  if (!line.aside.empty()) text += " — *" + escape_markdown(line.aside) + "*";
  return (line.tone == Tone::faint ? text : "- " + text) + '\n';
}

std::string write_part(const DocumentPart& part) {
  if (part.kind == DocumentPart::Kind::title) return "## " + escape_markdown(part.text) + "\n\n";
  if (part.kind == DocumentPart::Kind::heading) return "### " + escape_markdown(part.text) + "\n\n";
  std::string out;
  if (part.kind == DocumentPart::Kind::table) {
    TextTable table = part.table;
    for (auto& row : table.rows)
      for (std::string& cell : row) cell = escape_markdown(cell);
    out = render_markdown(table);
  }
  for (const Line& line : part.lines) out += write_line(line);
  return out + "\n";
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

std::string render_terminal(const Document& document, bool colour, size_t width) {
  std::string out;
  for (const DocumentPart& part : document) print_part(part, {colour, width}, out);
  return out;
}

std::string render_terminal(const Comparison& comparison, bool colour, size_t width) {
  return render_terminal(build_document(comparison), colour, width);
}

std::string render_markdown(const Document& document, const std::string& title) {
  std::string out = "# " + escape_markdown(title) + "\n\n";
  for (const DocumentPart& part : document) out += write_part(part);
  out.pop_back();
  return out;
}

std::string render_markdown(const Comparison& comparison) {
  return render_markdown(build_document(comparison), "Comparison");
}

}  // namespace tprimat::results
