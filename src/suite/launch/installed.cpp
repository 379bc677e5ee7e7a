#include "launch/installed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// "MAJOR = 0" -> "0"
std::string value_in(const std::string& line, const std::string& name) {
  if (!line.starts_with(name + " =")) return "";
  const size_t start = line.find_first_of("0123456789"), end = line.find_first_not_of("0123456789", start);
  return start == std::string::npos ? "" : line.substr(start, end - start);
}

std::optional<std::string> read_first_line(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return std::nullopt;  // a pipe would wait
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  line.erase(line.find_last_not_of(" \r\t") + 1);
  return line.empty() ? std::nullopt : std::optional(line);
}

// .git itself; or, of a submodule or a worktree, the folder that the file .git names: "gitdir: ../.git/modules/x".
fs::path find_git_folder(const fs::path& checkout) {
  const fs::path git = checkout / ".git";
  std::error_code failure;
  if (fs::is_directory(git, failure)) return git;
  const std::string mark = "gitdir: ", line = read_first_line(git).value_or("");
  return line.starts_with(mark) ? checkout / line.substr(mark.size()) : git;
}

// A worktree has its HEAD alone and shares the branches of the folder that "commondir" names.
fs::path find_branches_folder(const fs::path& git) {
  const auto common = read_first_line(git / "commondir");
  return common ? git / *common : git;
}

std::optional<std::string> find_packed_commit(const fs::path& git, const std::string& branch) {
  std::ifstream file(git / "packed-refs");
  for (std::string line; std::getline(file, line);)
    if (line.ends_with(" " + branch)) return line.substr(0, line.find(' '));
  return std::nullopt;
}

std::optional<std::string> find_commit(const fs::path& git) {
  const auto head = read_first_line(git / "HEAD");
  const std::string mark = "ref: ";
  if (!head || !head->starts_with(mark)) return head;
  const std::string branch = head->substr(mark.size());
  const fs::path branches = find_branches_folder(git);
  if (const auto commit = read_first_line(branches / branch)) return commit;
  return find_packed_commit(branches, branch);
}

}  // namespace

std::vector<std::string> folders_in_path() {
  const char* path = std::getenv("PATH");
  std::istringstream rest(path != nullptr ? path : "");
  std::vector<std::string> folders;
  for (std::string folder; std::getline(rest, folder, ':');) folders.push_back(folder);
  return folders;
}

std::optional<std::string> find_in_path(const std::string& program) {
  for (const std::string& folder : folders_in_path())
    if (const std::string place = folder + "/" + program; ::access(place.c_str(), X_OK) == 0) return place;
  return std::nullopt;
}

fs::path python_environments() {
  if (const char* folder = std::getenv("TPRIMAT_FRAMEWORKS"); folder != nullptr && *folder != 0) return folder;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != 0)
    return fs::path(data) / "tprimat/frameworks";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/") / ".local/share/tprimat/frameworks";
}

// "transformers-5.23.0.dist-info" gives the version without starting Python.
std::optional<std::string> find_package_version(const fs::path& prefix, std::string_view package) {
  const std::string start = std::string(package) + "-", end = ".dist-info";
  std::error_code failure;
  for (const auto& python : fs::directory_iterator(prefix / "lib", failure))
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const auto& entry : fs::directory_iterator(python.path() / packages, failure)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(start) && name.ends_with(end))
          return name.substr(start.size(), name.size() - start.size() - end.size());
      }
  return std::nullopt;
}

fs::path place_of_checkout(const Checkout& checkout, const std::vector<std::string>& usual_places,
                           const std::string& landmark) {
  if (!checkout.installation.empty()) return checkout.installation;
  std::error_code unreadable;
  for (const fs::path place : usual_places)
    if (fs::exists(place / landmark, unreadable)) return place;
  return usual_places.front();
}

std::optional<std::string> read_megatron_version(const fs::path& folder) {
  return read_package_version(folder / "megatron/core/package_info.py");
}

std::optional<std::string> read_package_version(const fs::path& package_info) {
  std::error_code failure;
  if (!fs::is_regular_file(package_info, failure)) return std::nullopt;
  std::ifstream file(package_info);
  std::string parts[3];
  const char* const names[] = {"MAJOR", "MINOR", "PATCH"};
  for (std::string line; std::getline(file, line);)
    for (int i = 0; i < 3; ++i)
      if (std::string value = value_in(line, names[i]); !value.empty()) parts[i] = std::move(value);
  if (parts[0].empty() || parts[1].empty()) return std::nullopt;
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2].empty() ? "0" : parts[2]);
}

std::string python_for(Framework framework) {
  const fs::path python = python_environments() / enum_name(framework) / "bin" / "python";
  std::error_code unreadable;
  return fs::exists(python, unreadable) ? python.string() : "python3";
}

std::optional<std::string> find_checkout_revision(const fs::path& folder) {
  if (const auto version = read_first_line(folder / "VERSION")) return version;
  constexpr size_t k_digits = 12;
  const auto commit = find_commit(find_git_folder(folder));
  return commit ? std::optional(commit->substr(0, k_digits)) : std::nullopt;
}

}  // namespace tprimat::suite
