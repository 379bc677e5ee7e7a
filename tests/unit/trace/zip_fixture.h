#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace_fixture.h"

namespace tprimat::logs {

struct ZipPart {
  std::string name, content;
};

inline std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0';
  return text;
}

// A zip file; the parts are deflated or stored in turn.
inline std::string make_zip(const std::vector<ZipPart>& parts) {
  std::string file, directory;
  bool deflated = true;
  for (const ZipPart& part : parts) {
    const std::string packed = deflated ? deflate_bytes(part.content, -15) : part.content;
    const auto checksum =
        ::crc32(0, reinterpret_cast<const Bytef*>(part.content.data()), static_cast<uInt>(part.content.size()));
    // Version, flags, method, time, date, checksum, sizes, length of the name, no extra field.
    const std::string common = little_endian(20, 2) + little_endian(0, 2) + little_endian(deflated ? 8 : 0, 2) +
                               little_endian(0, 4) + little_endian(checksum, 4) + little_endian(packed.size(), 4) +
                               little_endian(part.content.size(), 4) + little_endian(part.name.size(), 2) +
                               little_endian(0, 2);
    directory +=
        "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 10) + little_endian(file.size(), 4) + part.name;
    file += "PK\x03\x04" + common + part.name + packed;
    deflated = !deflated;
  }
  const std::string count = little_endian(parts.size(), 2);
  return file + directory + "PK\x05\x06" + little_endian(0, 4) + count + count + little_endian(directory.size(), 4) +
         little_endian(file.size(), 4) + little_endian(0, 2);
}

// The parts of a workbook with the given content of <sheetData> per sheet.
inline std::vector<ZipPart> workbook_parts(const std::vector<ZipPart>& sheets, const std::string& shared = "") {
  std::string list, relations;
  std::vector<ZipPart> parts;
  for (size_t i = 0; i < sheets.size(); ++i) {
    list += fmt::format(R"(<sheet name="{}" sheetId="{}" r:id="rId{}"/>)", sheets[i].name, i + 1, i + 1);
    relations += fmt::format(R"(<Relationship Id="rId{}" Target="{}worksheets/sheet{}.xml"/>)", i + 1,
                             i % 2 == 0 ? "/xl/" : "", i + 1);
    parts.push_back({fmt::format("xl/worksheets/sheet{}.xml", i + 1),
                     "<?xml version=\"1.0\"?><worksheet><sheetData>" + sheets[i].content + "</sheetData></worksheet>"});
  }
  parts.push_back({"xl/workbook.xml", "<workbook xmlns:r=\"r\"><sheets>" + list + "</sheets></workbook>"});
  parts.push_back({"xl/_rels/workbook.xml.rels", "<Relationships>" + relations + "</Relationships>"});
  if (!shared.empty()) parts.push_back({"xl/sharedStrings.xml", "<sst>" + shared + "</sst>"});
  return parts;
}
inline std::string make_workbook(const std::vector<ZipPart>& sheets, const std::string& shared = "") {
  return make_zip(workbook_parts(sheets, shared));
}

inline std::string text_cell(std::string_view text) {
  return fmt::format(R"(<c t="inlineStr"><is><t>{}</t></is></c>)", text);
}
inline std::string number_cell(std::string_view number) { return fmt::format("<c><v>{}</v></c>", number); }

// Rows of cells; what begins with a digit is a number.
inline std::string sheet_data(const std::vector<std::vector<std::string_view>>& rows) {
  std::string data;
  for (const auto& row : rows) {
    data += "<row>";
    for (const std::string_view cell : row)
      data += !cell.empty() && cell[0] >= '0' && cell[0] <= '9' ? number_cell(cell) : text_cell(cell);
    data += "</row>";
  }
  return data;
}

}  // namespace tprimat::logs
