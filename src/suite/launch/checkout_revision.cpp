#include "launch/checkout_revision.h"

#include <fstream>

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_first_line(const fs::path& path) {
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

std::optional<std::string> find_checkout_revision(const fs::path& folder) {
  if (const auto version = read_first_line(folder / "VERSION")) return version;
  constexpr size_t k_digits = 12;
  const auto commit = find_commit(find_git_folder(folder));
  return commit ? std::optional(commit->substr(0, k_digits)) : std::nullopt;
}

}  // namespace tprimat::suite
