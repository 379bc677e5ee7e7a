#include "report/document.h"
#include "report/report.h"
#include "report/wrap.h"

namespace tprimat::results {
namespace {

class Painter {
 public:
  Painter(bool colour, size_t width) : colour_(colour), width_(width) {}
  size_t width() const { return width_; }
  std::string paint(const std::string& text, const char* code) const {
    return colour_ ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
  std::string paint(const std::string& text, Tone tone) const {
    switch (tone) {
      case Tone::good: return paint(text, "32");
      case Tone::doubtful: return paint(text, "33");
      case Tone::bad: return paint(text, "31");
      case Tone::faint: return paint(text, "2");
      case Tone::plain: break;
    }
    return text;
  }

 private:
  bool colour_;
  size_t width_;
};

void print_paragraph(const std::string& text, Tone tone, const std::string& indent, const Painter& painter,
                     std::string& out) {
  for (const std::string& line : wrap_words(text, painter.width() - indent.size()))
    out += indent + painter.paint(line, tone) + '\n';
}

void print_block(const DocumentPart& block, const Painter& painter, std::string& out) {
  switch (block.kind) {
    case DocumentPart::Kind::title: out += (out.empty() ? "" : "\n") + painter.paint(block.text, "1;4") + "\n\n"; break;
    case DocumentPart::Kind::heading: out += "\n" + painter.paint(block.text, "1") + "\n"; break;
    case DocumentPart::Kind::table:
      out += (out.ends_with("\n\n") || out.empty() ? "" : "\n") + render_text(block.table);
      break;
    case DocumentPart::Kind::lines:
      for (const Line& line : block.lines) {
        if (line.tone == Tone::faint) out += '\n';
        print_paragraph(line.text, line.tone, "", painter, out);
        if (!line.aside.empty()) print_paragraph("-> " + line.aside, Tone::faint, "   ", painter, out);
      }
      break;
  }
}

}  // namespace

std::string render_terminal(const Document& document, bool colour, size_t width) {
  const Painter painter(colour, width);
  std::string out;
  for (const DocumentPart& block : document) print_block(block, painter, out);
  return out;
}

std::string render_terminal(const Comparison& comparison, bool colour, size_t width) {
  return render_terminal(build_document(comparison), colour, width);
}

}  // namespace tprimat::results
