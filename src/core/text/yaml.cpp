#include "text/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "base/printable.h"
#include "text/format.h"

namespace tprimat {
namespace {

std::string place(const std::string& name, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

std::string place_of_byte(std::string_view text, size_t byte, const std::string& name) {
  return name + ":" + line_and_column(text.substr(0, byte));
}

bool is_text_character(unsigned char c) { return c >= 0x20 ? c != 0x7F : c == '\t' || c == '\n' || c == '\r'; }

void check_is_text(std::string_view text, const std::string& name) {
  if (text.size() > k_max_yaml_bytes)
    throw Error(Problem{
        fmt::format("is {} bytes long; a configuration is at most {} bytes", text.size(), k_max_yaml_bytes), name, ""});
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_utf8(text.substr(at)).bytes;
    if (length == 0 || (length == 1 && !is_text_character(static_cast<unsigned char>(text[at]))))
      throw Error(Problem{fmt::format("is not UTF-8 text: byte 0x{:02X}", static_cast<unsigned char>(text[at])),
                          place_of_byte(text, at, name), "save the file as plain UTF-8 text"});
    at += length;
  }
}

size_t count_nodes(const YamlNode& node) {
  size_t count = 1;
  for (const YamlEntry& entry : node.entries) count += count_nodes(entry.value);
  for (const YamlNode& item : node.items) count += count_nodes(item);
  return count;
}

// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Origin document) : origin_(std::move(document)), name_(origin_.text()) {}
  YamlDocument take() && { return std::move(document_); }
  // Byte at which the last quoted scalar starts, or an anchor before it; an unclosed quote is the last one.
  std::optional<size_t> last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      fail(mark, "a second YAML document starts here",
           "keep one document per file: delete the --- line and what follows");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add_leaf(mark, YamlNode{}, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    if (quoted)
      last_quoted_ = static_cast<size_t>(mark.pos);
    else
      refuse_tag(mark, tag);
    add_leaf(mark, yaml_scalar(value, {}, quoted), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias stands inside the value that it names", "write the value out");
    count(mark, count_nodes(found->second));
    add(mark, YamlNode(found->second));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    merge_inherited(stack_.back().node);
    close();
  }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::optional<YamlEntry> key;  // of a map: the key whose value comes next
    bool skip_value = false;       // the key was a duplicate
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string what, std::string hint = "") const {
    throw Error(Problem{std::move(what), place(name_, mark), std::move(hint)});
  }

  Origin origin_at(const YAML::Mark& mark) const { return {origin_.provenance, place(origin_.place, mark)}; }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(mark, fmt::format("the tag '{}' is not supported", tag), "delete the tag; each key knows its type");
  }

  void count(const YAML::Mark& mark, size_t more) {
    nodes_ += more;
    if (nodes_ > k_max_yaml_nodes)
      fail(mark, fmt::format("has more than {} values once its aliases are expanded", k_max_yaml_nodes),
           "shorten the configuration, or remove its anchors");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    if (stack_.size() >= k_max_yaml_depth)
      fail(mark, fmt::format("is nested more than {} levels deep", k_max_yaml_depth));
    if (!stack_.empty() && stack_.back().node.is_map() && !stack_.back().key)
      fail(mark, "a key must be plain text, not a list or a map",
           "write  key: value, and check that every { and [ is closed");
    count(mark, 1);
    Frame frame;
    frame.node.kind = kind;
    frame.node.origin = origin_at(mark);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.anchor != 0) anchors_[frame.anchor] = frame.node;
    attach(std::move(frame.node));
  }

  void add_leaf(const YAML::Mark& mark, YamlNode node, YAML::anchor_t anchor) {
    count(mark, 1);
    node.origin = origin_at(mark);
    if (anchor != 0) anchors_[anchor] = node;
    add(mark, std::move(node));
  }

  void add(const YAML::Mark& mark, YamlNode node) {
    if (!stack_.empty() && stack_.back().node.is_map() && !stack_.back().key) return begin_entry(mark, node);
    attach(std::move(node));
  }

  void begin_entry(const YAML::Mark& mark, const YamlNode& key) {
    if (!key.is_scalar() || key.scalar.empty()) fail(mark, "a key must be plain text", "write  key: value");
    Frame& frame = stack_.back();
    const auto first = std::find_if(frame.node.entries.begin(), frame.node.entries.end(),
                                    [&](const YamlEntry& entry) { return entry.key == key.scalar; });
    frame.skip_value = first != frame.node.entries.end();
    if (frame.skip_value)
      document_.duplicates.push_back({fmt::format("the key '{}' is given twice", key.scalar), place(name_, mark),
                                      fmt::format("the first one is at {}; keep one of them", first->origin.text())});
    frame.key = YamlEntry{key.scalar, origin_at(mark), {}};
  }

  void attach(YamlNode node) {
    if (stack_.empty()) {
      document_.root = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (!parent.node.is_map()) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    parent.key->value = std::move(node);
    if (!parent.skip_value) parent.node.entries.push_back(std::move(*parent.key));
    parent.key.reset();
  }

  // <<: *defaults  takes over the keys that the map itself does not state.
  static void merge_inherited(YamlNode& map) {
    const auto merge =
        std::find_if(map.entries.begin(), map.entries.end(), [](const YamlEntry& entry) { return entry.key == "<<"; });
    if (merge == map.entries.end() || !merge->value.is_map()) return;
    const std::vector<YamlEntry> inherited = std::move(merge->value.entries);
    map.entries.erase(merge);
    for (const YamlEntry& entry : inherited)
      if (map.find(entry.key) == nullptr) map.entries.push_back(entry);
  }

  Origin origin_;
  std::string name_;
  YamlDocument document_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::optional<size_t> last_quoted_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

// The parser takes the end of the file for the closing quote.
void check_quote_closes(std::string_view text, size_t start, const std::string& name) {
  const size_t open = text.find_first_of("\"'", start);
  if (open == std::string_view::npos) return;
  const char quote = text[open];
  for (size_t at = open + 1; at < text.size(); ++at) {
    const bool escapes = quote == '"' ? text[at] == '\\' : text.substr(at, 2) == "''";
    if (escapes)
      ++at;
    else if (text[at] == quote)
      return;
  }
  throw Error(Problem{"is not valid YAML: a quotation mark is never closed", place_of_byte(text, open, name), ""});
}

std::string syntax_hint(const std::string& message) {
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (has("tab")) return "indent with spaces";
  if (has("EOF in scalar")) return "a quotation mark is opened here and never closed";
  if (has("end of map flow") || has("end of sequence flow"))
    return "a { or [ is opened here and never closed, or a comma is missing";
  if (has("illegal map value")) return "a value that holds ': ' needs quotes";
  if (has("anchor")) return "an alias *name needs an anchor &name before it";
  return "check the indentation, quotes and brackets near this place";
}

// Whether YAML reads the plain text back unchanged, in block and flow style.
bool is_plain(std::string_view text) {
  constexpr std::string_view k_indicators = "-?:,[]{}#&*!|>'\"%@`";
  const bool begins = !text.empty() && (k_indicators.find(text[0]) == std::string_view::npos ||
                                        (text[0] == '-' && text.size() > 1 && text[1] != ' '));
  return begins && text[0] != ' ' && text.back() != ' ' && text.back() != ':' && !text.starts_with("---") &&
         text.find_first_of(",[]{}") == std::string_view::npos && text.find(": ") == std::string_view::npos &&
         text.find(" #") == std::string_view::npos && printable(text) == text;
}

// Escapes of YAML's double quotes; JSON has the same, but for characters beyond U+FFFF.
std::string quote(std::string_view text) {
  std::string out = "\"";
  for (; !text.empty(); text.remove_prefix(std::max<size_t>(1, decode_utf8(text).bytes))) {
    const auto [code, bytes] = decode_utf8(text);
    if (code == '"' || code == '\\') out += '\\';
    if (code == '\n' || code == '\t' || code == '\r')
      out += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    else if (bytes > 0 && !is_unprintable(code))
      out += text.substr(0, bytes);
    else
      out += bytes == 0    ? "\\ufffd"
             : code < 0x20 ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                           : printable(text.substr(0, bytes));
  }
  return out + "\"";
}

std::string print_scalar(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return "null";
  return node.quoted || !is_plain(node.scalar) ? quote(node.scalar) : node.scalar;
}

std::string print_key(const std::string& key) { return is_plain(key) ? key : quote(key); }

std::string print_flow(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::map) {
    std::vector<std::string> parts;
    for (const YamlEntry& entry : node.entries) parts.push_back(print_key(entry.key) + ": " + print_flow(entry.value));
    return fmt::format("{{{}}}", join(parts, ", "));
  }
  if (node.kind != YamlNode::Kind::list) return print_scalar(node);
  std::vector<std::string> parts;
  for (const YamlNode& item : node.items) parts.push_back(print_flow(item));
  return fmt::format("[{}]", join(parts, ", "));
}

struct Line {
  std::string text, comment;
};

void print_block(const YamlNode& map, size_t indent, std::vector<Line>& lines) {
  for (const YamlEntry& entry : map.entries) {
    const std::string start = std::string(indent, ' ') + print_key(entry.key) + ":";
    if (entry.value.is_map() && !entry.value.entries.empty()) {
      lines.push_back({start, ""});
      print_block(entry.value, indent + 2, lines);
    } else {
      lines.push_back({start + " " + print_flow(entry.value), printable(entry.value.origin.text())});
    }
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) { return const_cast<YamlNode*>(std::as_const(*this).find(key)); }

YamlNode& YamlNode::operator[](std::string_view key) {
  if (YamlNode* found = find(key)) return *found;
  if (!is_map()) {
    kind = Kind::map;
    scalar.clear();
    items.clear();
  }
  entries.push_back({std::string(key), origin, {}});
  return entries.back().value;
}

YamlNode yaml_scalar(std::string text, Origin origin, bool quoted) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = std::move(text);
  node.origin = std::move(origin);
  node.quoted = quoted;
  return node;
}

YamlDocument parse_yaml(std::string_view text, const std::string& name) {
  return parse_yaml(text, Origin{Provenance::file, name});
}

YamlDocument parse_yaml(std::string_view text, const Origin& document) {
  const std::string name = document.text();
  check_is_text(text, name);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  TreeBuilder builder(document);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw Error(Problem{"is not valid YAML: " + error.msg, error.mark.is_null() ? name : place(name, error.mark),
                        syntax_hint(error.msg)});
  }
  if (builder.last_quoted()) check_quote_closes(text, *builder.last_quoted(), name);
  return std::move(builder).take();
}

std::string print_yaml(const YamlNode& node, bool origins) {
  if (!node.is_map() || node.entries.empty()) return print_flow(node) + "\n";
  std::vector<Line> lines;
  print_block(node, 0, lines);
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, std::min<size_t>(line.text.size(), 64));
  std::string out;
  for (const Line& line : lines)
    out += origins && !line.comment.empty() ? fmt::format("{:<{}}  # {}\n", line.text, width, line.comment)
                                            : line.text + "\n";
  return out;
}

}  // namespace tprimat
