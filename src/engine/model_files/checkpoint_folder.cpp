#include "model_files/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "model_files/checkpoint_manifest.h"

namespace tprimat::engine {
namespace {

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
