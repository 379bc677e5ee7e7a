#include "model_files/checkpoint_manifest.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "model_files/checksum.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

constexpr std::string_view k_format = "tprimat checkpoint 1";
constexpr std::string_view k_before_checksum = "  \"checksum\": \"", k_after_checksum = "\"\n}\n";
constexpr size_t k_digits = 16;

Error damaged(const std::string& what, const std::string& where) { return Error(Problem{what, where, ""}); }

// The last line holds the checksum of all before it.
void check_sum(std::string_view text, const std::string& where) {
  const size_t tail = k_before_checksum.size() + k_digits + k_after_checksum.size();
  if (text.size() < tail) throw damaged("is truncated: it has no checksum", where);
  const std::string_view checked = text.substr(0, text.size() - tail);
  const std::string expected =
      fmt::format("{}{}{}", k_before_checksum, checksum_text(checksum_of(checked)), k_after_checksum);
  if (text.substr(checked.size()) != expected) throw damaged("is damaged: its checksum is wrong", where);
}

uint64_t parse_checksum(const Json& value, const std::string& where) {
  uint64_t checksum = 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), checksum, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != k_digits)
    throw damaged("holds an invalid checksum", where);
  return checksum;
}

CheckpointManifest::RankEntry parse_rank(const Json& rank, const std::string& where) {
  const auto is_size = [](const Json& value) { return value.is_number_integer() && value.get<int64_t>() >= 0; };
  if (!rank.is_object() || !rank.contains("file") || !rank["file"].is_string() || !rank.contains("bytes") ||
      !is_size(rank["bytes"]) || !rank.contains("checksum"))
    throw damaged("does not describe each rank's file", where);
  CheckpointManifest::RankEntry entry{rank["file"].text(), rank["bytes"].get<int64_t>(),
                                      parse_checksum(rank["checksum"], where)};
  if (entry.file.empty() || entry.file.find_first_of(std::string("/\0", 2)) != std::string::npos)
    throw damaged("names a file outside its folder", where);
  return entry;
}

}  // namespace

std::string print_manifest(const CheckpointManifest& manifest) {
  Json ranks = Json::array();
  for (const auto& rank : manifest.ranks)
    ranks.push_back({{"file", rank.file}, {"bytes", rank.bytes}, {"checksum", checksum_text(rank.checksum)}});
  std::string text = print_json(
      {{"format", k_format}, {"step", manifest.step}, {"state", parse_json(manifest.state, "")}, {"ranks", ranks}});
  text.replace(text.size() - 3, 3, ",\n");  // instead of the last "\n}\n"
  return text + fmt::format("{}{}{}", k_before_checksum, checksum_text(checksum_of(text)), k_after_checksum);
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& where) {
  check_sum(text, where);
  const Json json = parse_json(text, where, SameKeys::refused);
  for (const char* key : {"format", "step", "state", "ranks"})
    if (!json.is_object() || !json.contains(key)) throw damaged(fmt::format("has no {}", key), where);
  if (json["format"] != k_format)
    throw damaged(fmt::format("is not in format '{}', the only one this program reads", k_format), where);
  if (!json["step"].is_number_integer() || json["step"].get<int64_t>() < 0) throw damaged("names no step", where);
  if (!json["ranks"].is_array() || json["ranks"].empty()) throw damaged("names no rank's file", where);
  CheckpointManifest manifest{json["step"].get<int64_t>(), {}, print_json_line(json["state"])};
  for (const Json& rank : json["ranks"]) manifest.ranks.push_back(parse_rank(rank, where));
  return manifest;
}

CheckpointManifest read_manifest(const std::filesystem::path& checkpoint_folder) {
  const std::filesystem::path path = checkpoint_folder / k_manifest_file;
  return parse_manifest(read_file(path), path.string());
}

}  // namespace tprimat::engine
