#include "report/document.h"
#include "report/report.h"

namespace tprimat::results {
namespace {

// File names and labels hold underscores and asterisks that Markdown would take for emphasis, and angle brackets for
// HTML.
std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (c == '_' || c == '*' || c == '`' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

TextTable escape(TextTable table) {
  for (auto& row : table.rows)
    for (std::string& cell : row) cell = escape(cell);
  return table;
}

std::string render_line(const Line& line) {
  const bool strong = line.tone == Tone::good || line.tone == Tone::bad;
  const bool is_headline = strong && line.aside.empty() && line.text.ends_with('.');
  std::string text = is_headline ? "**" + escape(line.text) + "**" : escape(line.text);
  if (!line.aside.empty()) text += " — *" + escape(line.aside) + "*";
  return (line.tone == Tone::faint ? text : "- " + text) + '\n';
}

std::string render_block(const DocumentPart& block) {
  switch (block.kind) {
    case DocumentPart::Kind::title: return "## " + escape(block.text) + "\n\n";
    case DocumentPart::Kind::heading: return "### " + escape(block.text) + "\n\n";
    case DocumentPart::Kind::table: return render_markdown(escape(block.table)) + "\n";
    case DocumentPart::Kind::lines: break;
  }
  std::string out;
  for (const Line& line : block.lines) out += render_line(line);
  return out + "\n";
}

}  // namespace

std::string render_markdown(const Document& document, const std::string& title) {
  std::string out = "# " + escape(title) + "\n\n";
  for (const DocumentPart& block : document) out += render_block(block);
  out.pop_back();
  return out;
}

std::string render_markdown(const Comparison& comparison) {
  return render_markdown(build_document(comparison), "Comparison");
}

}  // namespace tprimat::results
