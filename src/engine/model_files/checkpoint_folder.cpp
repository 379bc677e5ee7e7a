#include "model_files/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "model_files/rank_file.h"
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

namespace fs = std::filesystem;

constexpr std::string_view k_prefix = "step_";

std::optional<int64_t> parse_step(const std::string& name) {
  if (!name.starts_with(k_prefix)) return std::nullopt;
  int64_t step = 0;
  const char* const begin = name.data() + k_prefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0 || step_folder("", step) != name)
    return std::nullopt;
  return step;
}

// All that can be seen without reading the weights.
std::optional<CheckpointManifest> look_at(const fs::path& folder) {
  try {
    CheckpointManifest manifest = read_manifest(folder);
    for (const auto& rank : manifest.ranks) {
      std::error_code error;
      if (static_cast<int64_t>(fs::file_size(folder / rank.file, error)) != rank.bytes || error) return std::nullopt;
    }
    return manifest;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Cleaner {
 public:
  explicit Cleaner(int64_t step) : step_(step) {}

  void clean(const std::vector<StepFolder>& folders, int64_t keep_last_n) {
    int64_t sound = 0;
    for (const auto& [step, folder] : folders) {
      if (step > step_) continue;
      const auto manifest = look_at(folder);
      const bool dead = !fs::exists(folder / k_manifest_file);
      if (step < step_ && (dead || sound >= std::max<int64_t>(1, keep_last_n))) {
        remove_folder(folder);
      } else if (manifest) {
        ++sound;
        remove_strangers(folder, *manifest);
      }
    }
  }

  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  // The manifest goes first: from then on the folder is no checkpoint, whatever happens.
  void remove_folder(const fs::path& folder) {
    remove(folder / k_manifest_file);
    sync_folder(folder);
    std::error_code error;
    fs::remove_all(folder, error);
    note(folder, error);
  }

  void remove_strangers(const fs::path& folder, const CheckpointManifest& manifest) {
    std::set<std::string> named = {std::string(k_manifest_file)};
    for (const auto& rank : manifest.ranks) named.insert(rank.file);
    std::error_code error;
    std::vector<fs::path> strangers;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (named.count(entry.path().filename().string()) == 0) strangers.push_back(entry.path());
    for (const fs::path& path : strangers) remove(path);
  }

  void remove(const fs::path& path) {
    std::error_code error;
    fs::remove(path, error);
    note(path, error);
  }

  void note(const fs::path& path, const std::error_code& error) {
    if (error) notes_.push_back(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
  }

  int64_t step_;
  std::vector<std::string> notes_;
};

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

fs::path step_folder(const fs::path& directory, int64_t step) {
  return directory / fmt::format("{}{:08}", k_prefix, step);
}

std::string rank_file_name(uint32_t rank, uint32_t ranks, uint64_t run) {
  return fmt::format("rank_{:05}_of_{:05}.{:016x}.bin", rank, ranks, run);
}

std::vector<StepFolder> list_step_folders(const fs::path& directory) {
  std::vector<StepFolder> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (const auto step = parse_step(entry.path().filename().string())) folders.push_back({*step, entry.path()});
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return folders;
}

std::vector<std::string> remove_old_checkpoints(const fs::path& directory, int64_t step, int64_t keep_last_n) {
  Cleaner cleaner(step);
  cleaner.clean(list_step_folders(directory), keep_last_n);
  return cleaner.take_notes();
}

}  // namespace tprimat::engine
