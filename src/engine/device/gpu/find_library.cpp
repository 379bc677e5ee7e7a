#include "device/gpu/find_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace tprimat::engine::gpu {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

// The folders that hold bin/python3, for the first python3 in PATH: where it is, and where the links lead that it may
// be. A virtual environment's is such a link, and one to it may stand in /usr/local/bin.
std::vector<fs::path> python_prefixes(const std::string& path) {
  constexpr int k_max_links = 16;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    fs::path file = fs::path(path.substr(begin, end - begin)) / "python3";
    begin = end + 1;
    std::error_code failure;
    if (!file.has_parent_path() || !fs::exists(file, failure)) continue;
    std::vector<fs::path> prefixes;
    for (int link = 0; link < k_max_links; ++link) {
      prefixes.push_back(file.parent_path().parent_path());
      if (!fs::is_symlink(file, failure)) break;
      file = (file.parent_path() / fs::read_symlink(file, failure)).lexically_normal();
      if (failure) break;
    }
    return prefixes;
  }
  return {};
}

// lib/python3.*/{site,dist}-packages below `prefix`, by name.
void add_package_folders(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* kind : {"site-packages", "dist-packages"})
      if (fs::is_directory(entry.path() / kind, ignored)) found.push_back(entry.path() / kind);
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& folder : found)
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
}

}  // namespace

std::vector<fs::path> python_package_folders(const ReadVariable& read, const fs::path& program) {
  std::vector<fs::path> folders;
  add_package_folders(program.parent_path().parent_path().parent_path(), folders);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto prefix = read(variable)) add_package_folders(*prefix, folders);
  if (const auto path = read("PATH"))
    for (const fs::path& prefix : python_prefixes(*path)) add_package_folders(prefix, folders);
  if (const auto home = read("HOME")) add_package_folders(fs::path(*home) / ".local", folders);
  for (const char* prefix : {"/usr/local", "/usr"}) add_package_folders(prefix, folders);
  return folders;
}

fs::path own_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

std::vector<std::string> library_candidates(const WantedLibrary& wanted, const ReadVariable& read) {
  if (const auto file = read(wanted.variable)) return {*file};
  std::vector<std::string> candidates;
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/opt/rocm/lib"};
  for (const fs::path& packages : python_package_folders(read))
    for (const std::string& folder : wanted.packages) folders.push_back(packages / folder);
  for (const std::string& name : wanted.names) {
    candidates.push_back(name);
    for (const fs::path& folder : folders) {
      std::error_code ignored;
      if (fs::is_regular_file(folder / name, ignored)) candidates.push_back((folder / name).string());
    }
  }
  return candidates;
}

void* open_library(const WantedLibrary& wanted) {
  std::string reason = "file not found";
  for (const std::string& candidate : library_candidates(wanted, environment_variable)) {
    std::error_code ignored;
    if (candidate.find('/') != candidate.npos && !fs::is_regular_file(candidate, ignored)) {  // a FIFO would block
      reason = candidate + " is not a regular file";
      continue;
    }
    if (void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      if (!wanted.beside.empty()) open_beside(library_file(library), wanted.beside);
      return library;
    }
    const char* const text = ::dlerror();
    if (candidate.find('/') != candidate.npos && text != nullptr) reason = text;  // it is there, but cannot be loaded
  }
  throw Error(Problem{wanted.names.front() + " cannot be loaded: " + reason, wanted.title,
                      wanted.remedy + "; or name the file in " + wanted.variable},
              ExitStatus::missing_component);
}

fs::path library_file(void* library) {
  link_map* map = nullptr;
  return ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? fs::path(map->l_name) : fs::path();
}

void open_beside(const fs::path& file, const std::vector<std::string>& beginnings) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    const bool wanted = entry.is_regular_file(ignored) && name.find(".so") != name.npos &&
                        std::any_of(beginnings.begin(), beginnings.end(),
                                    [&](const std::string& beginning) { return name.starts_with(beginning); });
    if (!wanted || ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    const char* const text = ::dlerror();
    throw Error(Problem{fmt::format("cannot load {}, which {} requires: {}", name, file.filename().string(),
                                    text != nullptr ? text : "unknown reason"),
                        entry.path().string(), "reinstall the package that contains both"},
                ExitStatus::missing_component);
  }
}

void* find_function(void* library, const char* name) { return ::dlsym(library, name); }

void* need_function(void* library, const WantedLibrary& wanted, const char* name) {
  if (void* function = find_function(library, name)) return function;
  throw Error(Problem{wanted.title + " has no function " + name + ": this version is not supported", wanted.title,
                      wanted.remedy + "; or name another file in " + wanted.variable},
              ExitStatus::missing_component);
}

}  // namespace tprimat::engine::gpu
