#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.h"
#include "text/format.h"

namespace tprimat::results {

enum class Tone { plain, good, doubtful, bad, faint };

struct Line {
  std::string text;
  Tone tone = Tone::plain;
  std::string aside;  // a second, fainter sentence: the remedy
};

// A report before formatting: build_document decides text and order once for all formats.
struct DocumentPart {
  enum class Kind { title, heading, lines, table };
  Kind kind = Kind::lines;
  std::string text;         // title, heading
  std::vector<Line> lines;  // lines
  TextTable table;          // table
};
using Document = std::vector<DocumentPart>;

inline DocumentPart make_title(std::string text) { return {DocumentPart::Kind::title, std::move(text), {}, {}}; }
inline DocumentPart make_heading(std::string text) { return {DocumentPart::Kind::heading, std::move(text), {}, {}}; }
inline DocumentPart make_lines(std::vector<Line> lines) {
  return {DocumentPart::Kind::lines, "", std::move(lines), {}};
}
inline DocumentPart make_table(TextTable table) { return {DocumentPart::Kind::table, "", {}, std::move(table)}; }

// A finding about several participants is listed once, with all their letters.
struct Remark {
  Finding finding;
  std::vector<std::string> whose;
  std::string list_whose(size_t max_named) const;  // "A, B and 3 more"
};

// Of all pairs, which `name_pair` names, and then of all participants; worst first.
std::vector<Remark> gather_findings(const ModelGroup& group, std::string (*name_pair)(const ModelGroup&, const Pair&));

std::string capitalized(std::string sentence);

// The two tables of figures.
inline constexpr std::string_view k_speed_heading = "Figures", k_resources_heading = "Memory, energy and cost";

Document build_document(const Comparison& comparison);

// Text from files must not control the terminal.
void make_printable(Document& document);

// Adds one sentence per gate, where there are any.
void add_gates(Document& document, const std::vector<GateResult>& results);

std::string render_terminal(const Document& document, bool colour, size_t width);
std::string render_markdown(const Document& document, const std::string& title);

// Lines of at most `width` code points, broken at blanks; a longer word is cut. No line but the first begins with a
// colon, even if it becomes longer for that: CI runners would treat "::error::" there as a command.
std::vector<std::string> wrap_words(std::string_view text, size_t width);

// At most `width` code points; an ellipsis marks the cut.
std::string shorten(std::string_view text, size_t width);

}  // namespace tprimat::results
