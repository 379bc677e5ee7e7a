#include "trace/workbook.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <pugixml.hpp>

#include "base/error.h"

// SpreadsheetML as in ECMA-376 part 1, section 18.
namespace tprimat::logs {
namespace {

constexpr uint64_t k_max_part_bytes = 32'000'000, k_max_bytes = 128'000'000;
constexpr size_t k_text_block_bytes = 65536;
constexpr uint32_t k_max_columns = 16384, k_max_rows = 1048576;  // of the format

using Texts = std::map<std::string, std::string, std::less<>>;

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

// A text may consist of runs with different formats: <si><r><t>..</t></r><r><t>..</t></r></si>.
std::string text_of(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node.children()) {
    if (local_name(child) == "t") text += child.child_value();
    if (local_name(child) == "r") text += child_named(child, "t").child_value();
  }
  return text;
}

// The whole text as a number.
template <class Number>
std::optional<Number> parse_cell(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// "AB12" -> 27; nothing for anything else.
std::optional<uint32_t> parse_column(std::string_view reference) {
  uint32_t column = 0;
  for (const char c : reference) {
    if (c < 'A' || c > 'Z') break;
    column = column * 26 + static_cast<uint32_t>(c - 'A' + 1);
    if (column > k_max_columns) return std::nullopt;
  }
  return column == 0 ? std::nullopt : std::optional(column - 1);
}

bool is_part_we_read(std::string_view name) {
  return name == "xl/workbook.xml" || name == "xl/_rels/workbook.xml.rels" || name == "xl/sharedStrings.xml" ||
         name.find("worksheets/") != std::string_view::npos;
}

class WorkbookReader {
 public:
  explicit WorkbookReader(std::string_view where) : where_(where), zip_(::archive_read_new(), ::archive_read_free) {}
  Workbook read(std::string_view bytes);

 private:
  [[noreturn]] void fail(std::string what) const { throw Error(Problem{std::move(what), where_, ""}); }
  std::string zip_error() const;
  void unpack_parts(std::string_view bytes);
  std::string unpack(std::string_view name, uint64_t most_bytes);
  void parse(const std::string& part, pugi::xml_document& document);
  void read_shared_strings();
  Texts read_targets();
  void read_sheet(const std::string& part, Sheet& sheet);
  void read_row(const pugi::xml_node& node, SheetRow& row);
  std::optional<std::string_view> value_of(const pugi::xml_node& cell);
  std::string_view keep(std::string_view text);

  std::string where_;
  std::unique_ptr<archive, int (*)(archive*)> zip_;
  Texts parts_;  // of the zip file, by name
  Workbook workbook_;
  std::vector<std::string_view> shared_;
};

std::string WorkbookReader::zip_error() const {
  const char* text = ::archive_error_string(zip_.get());
  return text != nullptr ? text : "the data are damaged";
}

// libarchive hands the parts out in the order of the file, so one pass takes all of them.
void WorkbookReader::unpack_parts(std::string_view bytes) {
  ::archive_read_support_format_zip_seekable(zip_.get());  // by the directory at the end of the file
  ::archive_read_open_memory(zip_.get(), bytes.data(), bytes.size());
  uint64_t left = k_max_bytes;
  for (archive_entry* entry = nullptr;;) {
    const int status = ::archive_read_next_header(zip_.get(), &entry);
    if (status == ARCHIVE_EOF) return;
    if (status < ARCHIVE_WARN) fail("is not a zip file, or is truncated or damaged: " + zip_error());
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr || !is_part_we_read(name)) continue;
    std::string& part = parts_[name] = unpack(name, std::min(k_max_part_bytes, left));
    left -= part.size();
  }
}

// The stated size of a part may be wrong, so the unpacked size is limited.
std::string WorkbookReader::unpack(std::string_view name, uint64_t most_bytes) {
  std::string part;
  std::array<char, 65536> block;
  while (const la_ssize_t count = ::archive_read_data(zip_.get(), block.data(), block.size())) {
    if (count < 0)
      fail(fmt::format("holds {}, which is damaged or compressed by an unknown method: {}", name, zip_error()));
    part.append(block.data(), static_cast<size_t>(count));
    if (part.size() > most_bytes) fail(fmt::format("holds {}, which is larger than {} MB", name, most_bytes / 1000000));
  }
  return part;
}

void WorkbookReader::parse(const std::string& part, pugi::xml_document& document) {
  const auto text = parts_.find(part);
  if (text == parts_.end()) fail(fmt::format("is not a workbook: it has no {}", part));
  const pugi::xml_parse_result result = document.load_buffer(text->second.data(), text->second.size());
  if (!result)
    fail(fmt::format("holds {}, which is damaged at byte {}: {}", part, static_cast<int64_t>(result.offset),
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
  if (!parts_.contains("xl/sharedStrings.xml")) return;
  pugi::xml_document document;
  parse("xl/sharedStrings.xml", document);
  for (const pugi::xml_node& item : child_named(document, "sst").children())
    if (local_name(item) == "si") shared_.push_back(keep(text_of(item)));
}

// Relation id -> name of the part: "rId1" -> "xl/worksheets/sheet1.xml".
Texts WorkbookReader::read_targets() {
  Texts targets;
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
    const auto index = parse_cell<uint32_t>(value);
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
    SheetRow row{parse_cell<uint32_t>(attribute_named(node, "r")).value_or(next_row), {}};
    if (row.number == 0 || row.number > k_max_rows) break;
    next_row = row.number + 1;
    read_row(node, row);
    if (row.cells.empty()) continue;
    sheet.rows = std::max(sheet.rows, row.number);
    for (const SheetCell& cell : row.cells) sheet.columns = std::max(sheet.columns, cell.column + 1);
    sheet.content.push_back(std::move(row));
  }
}

Workbook WorkbookReader::read(std::string_view bytes) {
  unpack_parts(bytes);
  pugi::xml_document document;
  parse("xl/workbook.xml", document);
  const auto targets = read_targets();
  read_shared_strings();
  for (const pugi::xml_node& node : child_named(child_named(document, "workbook"), "sheets").children()) {
    Sheet sheet;
    sheet.name = attribute_named(node, "name");
    const auto target = targets.find(attribute_named(node, "id"));
    if (target == targets.end()) fail(fmt::format("does not state the path of its sheet '{}'", sheet.name));
    if (target->second.find("worksheets/") != std::string::npos) read_sheet(target->second, sheet);  // not a chart
    workbook_.sheets.push_back(std::move(sheet));
  }
  return std::move(workbook_);
}

}  // namespace

Workbook read_workbook(std::string_view bytes, std::string_view where) { return WorkbookReader(where).read(bytes); }

std::string_view cell_text(const SheetRow& row, uint32_t column) {
  for (const SheetCell& cell : row.cells)
    if (cell.column == column) return cell.text;
  return {};
}

std::optional<double> cell_number(const SheetRow& row, uint32_t column) {
  const auto value = parse_cell<double>(cell_text(row, column));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace tprimat::logs
