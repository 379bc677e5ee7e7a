#include "trace/workbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <pugixml.hpp>

#include "base/error.h"
#include "trace/zip_archive.h"

// SpreadsheetML as in ECMA-376 part 1, section 18.
namespace tprimat::logs {
namespace {

constexpr uint64_t k_max_part_bytes = 32'000'000, k_max_bytes = 128'000'000;
constexpr size_t k_text_block_bytes = 65536;
constexpr uint32_t k_max_columns = 16384, k_max_rows = 1048576;  // of the format

// Some writers put a prefix before every element: <x:row>.
std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  return name.substr(name.find(':') + 1);  // npos + 1 is 0
}

pugi::xml_node child_named(const pugi::xml_node& parent, std::string_view name) {
  for (const pugi::xml_node& child : parent.children())
    if (local_name(child) == name) return child;
  return {};
}

std::string_view attribute_named(const pugi::xml_node& node, std::string_view name) {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    const std::string_view full = attribute.name();
    if (full.substr(full.find(':') + 1) == name) return attribute.value();
  }
  return {};
}

// A text may be cut into runs of different looks: <si><r><t>..</t></r><r><t>..</t></r></si>.
std::string text_of(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node.children()) {
    if (local_name(child) == "t") text += child.child_value();
    if (local_name(child) == "r") text += child_named(child, "t").child_value();
  }
  return text;
}

std::optional<uint32_t> parse_index(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "AB12" -> 27; nothing for what is no place in a sheet.
std::optional<uint32_t> parse_column(std::string_view reference) {
  uint32_t column = 0;
  for (const char c : reference) {
    if (c < 'A' || c > 'Z') break;
    column = column * 26 + static_cast<uint32_t>(c - 'A' + 1);
    if (column > k_max_columns) return std::nullopt;
  }
  return column == 0 ? std::nullopt : std::optional(column - 1);
}

class WorkbookReader {
 public:
  WorkbookReader(std::string_view bytes, std::string_view where) : archive_(bytes, where), where_(where) {}
  Workbook read();

 private:
  [[noreturn]] void fail(std::string what) const { throw Error(Problem{std::move(what), where_, ""}); }
  void parse(const std::string& part, pugi::xml_document& document);
  void read_shared_strings();
  std::map<std::string, std::string, std::less<>> read_targets();
  void read_sheet(const std::string& part, Sheet& sheet);
  void read_row(const pugi::xml_node& node, SheetRow& row);
  std::optional<std::string_view> value_of(const pugi::xml_node& cell);
  std::string_view keep(std::string_view text);

  ZipArchive archive_;
  std::string where_;
  Workbook workbook_;
  std::vector<std::string_view> shared_;
  uint64_t read_bytes_ = 0;
};

void WorkbookReader::parse(const std::string& part, pugi::xml_document& document) {
  const ZipArchive::Member* member = archive_.find(part);
  if (member == nullptr) fail(fmt::format("is no workbook: it has no {}", part));
  const std::string text = archive_.read(*member, std::min(k_max_part_bytes, k_max_bytes - read_bytes_));
  read_bytes_ += text.size();
  const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (!result)
    fail(fmt::format("holds {}, which is broken at byte {}: {}", part, static_cast<int64_t>(result.offset),
                     result.description()));
}

// Many small texts share one block, which never grows beyond what it reserved, so that views stay valid.
std::string_view WorkbookReader::keep(std::string_view text) {
  std::deque<std::string>& blocks = workbook_.texts;
  if (blocks.empty() || blocks.back().capacity() - blocks.back().size() < text.size())
    blocks.emplace_back().reserve(std::max(k_text_block_bytes, text.size()));
  const size_t begin = blocks.back().size();
  blocks.back() += text;
  return std::string_view(blocks.back()).substr(begin);
}

void WorkbookReader::read_shared_strings() {
  if (archive_.find("xl/sharedStrings.xml") == nullptr) return;
  pugi::xml_document document;
  parse("xl/sharedStrings.xml", document);
  for (const pugi::xml_node& item : child_named(document, "sst").children())
    if (local_name(item) == "si") shared_.push_back(keep(text_of(item)));
}

// Relation id -> part: "rId1" -> "xl/worksheets/sheet1.xml".
std::map<std::string, std::string, std::less<>> WorkbookReader::read_targets() {
  std::map<std::string, std::string, std::less<>> targets;
  pugi::xml_document document;
  parse("xl/_rels/workbook.xml.rels", document);
  for (const pugi::xml_node& relation : child_named(document, "Relationships").children()) {
    const std::string_view target = attribute_named(relation, "Target");
    targets[std::string(attribute_named(relation, "Id"))] =
        target.starts_with('/') ? std::string(target.substr(1)) : "xl/" + std::string(target);
  }
  return targets;
}

std::optional<std::string_view> WorkbookReader::value_of(const pugi::xml_node& cell) {
  const std::string_view type = attribute_named(cell, "t");
  if (type == "inlineStr") {
    const pugi::xml_node inline_text = child_named(cell, "is");
    return inline_text ? std::optional(keep(text_of(inline_text))) : std::nullopt;
  }
  const std::string_view value = child_named(cell, "v").child_value();
  if (type == "s") {
    const auto index = parse_index(value);
    return index && *index < shared_.size() ? std::optional(shared_[*index]) : std::nullopt;
  }
  return value.empty() ? std::nullopt : std::optional(keep(value));
}

void WorkbookReader::read_row(const pugi::xml_node& node, SheetRow& row) {
  uint32_t next_column = 0;
  for (const pugi::xml_node& cell : node.children()) {
    if (local_name(cell) != "c") continue;
    const uint32_t column = parse_column(attribute_named(cell, "r")).value_or(next_column);
    if (column >= k_max_columns) break;
    next_column = column + 1;
    if (const auto value = value_of(cell)) row.cells.push_back({column, *value});
  }
}

void WorkbookReader::read_sheet(const std::string& part, Sheet& sheet) {
  pugi::xml_document document;
  parse(part, document);
  uint32_t next_row = 1;
  for (const pugi::xml_node& node : child_named(child_named(document, "worksheet"), "sheetData").children()) {
    SheetRow row{parse_index(attribute_named(node, "r")).value_or(next_row), {}};
    if (row.number == 0 || row.number > k_max_rows) break;
    next_row = row.number + 1;
    read_row(node, row);
    if (row.cells.empty()) continue;
    sheet.rows = std::max(sheet.rows, row.number);
    for (const SheetCell& cell : row.cells) sheet.columns = std::max(sheet.columns, cell.column + 1);
    sheet.content.push_back(std::move(row));
  }
}

Workbook WorkbookReader::read() {
  pugi::xml_document document;
  parse("xl/workbook.xml", document);
  const auto targets = read_targets();
  read_shared_strings();
  for (const pugi::xml_node& node : child_named(child_named(document, "workbook"), "sheets").children()) {
    Sheet sheet;
    sheet.name = attribute_named(node, "name");
    const auto target = targets.find(attribute_named(node, "id"));
    if (target == targets.end()) fail(fmt::format("does not say where its sheet '{}' lies", sheet.name));
    if (target->second.find("worksheets/") != std::string::npos) read_sheet(target->second, sheet);  // not a chart
    workbook_.sheets.push_back(std::move(sheet));
  }
  return std::move(workbook_);
}

}  // namespace

Workbook read_workbook(std::string_view bytes, std::string_view where) { return WorkbookReader(bytes, where).read(); }

std::string_view cell_text(const SheetRow& row, uint32_t column) {
  for (const SheetCell& cell : row.cells)
    if (cell.column == column) return cell.text;
  return {};
}

std::optional<double> cell_number(const SheetRow& row, uint32_t column) {
  const std::string_view text = cell_text(row, column);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace tprimat::logs
