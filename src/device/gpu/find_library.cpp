#include "device/gpu/find_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace tprimat::gpu {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

// The folder that holds bin/python3, for the first python3 in PATH.
std::optional<fs::path> python_prefix(const std::string& path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path folder = path.substr(begin, end - begin);
    std::error_code ignored;
    if (!folder.empty() && fs::exists(folder / "python3", ignored)) return folder.parent_path();
    begin = end + 1;
  }
  return std::nullopt;
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

std::vector<fs::path> python_package_folders(const ReadVariable& read) {
  std::vector<fs::path> folders;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto prefix = read(variable)) add_package_folders(*prefix, folders);
  if (const auto path = read("PATH"))
    if (const auto prefix = python_prefix(*path)) add_package_folders(*prefix, folders);
  if (const auto home = read("HOME")) add_package_folders(fs::path(*home) / ".local", folders);
  for (const char* prefix : {"/usr/local", "/usr"}) add_package_folders(prefix, folders);
  return folders;
}

std::vector<std::string> library_candidates(const WantedLibrary& wanted, const ReadVariable& read) {
  if (const auto file = read(wanted.variable)) return {*file};
  std::vector<std::string> candidates = wanted.names;
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/opt/rocm/lib"};
  for (const fs::path& packages : python_package_folders(read))
    for (const std::string& folder : wanted.packages) folders.push_back(packages / folder);
  for (const std::string& name : wanted.names)
    for (const fs::path& folder : folders) {
      std::error_code ignored;
      if (fs::exists(folder / name, ignored)) candidates.push_back((folder / name).string());
    }
  return candidates;
}

void* open_library(const WantedLibrary& wanted) {
  std::string reason = "no file of that name was found";
  for (const std::string& candidate : library_candidates(wanted, environment_variable)) {
    if (void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* const text = ::dlerror();
    if (candidate.find('/') != candidate.npos && text != nullptr) reason = text;  // it is there, but cannot be loaded
  }
  throw Error(Problem{wanted.title + " (" + wanted.names.front() + ") cannot be loaded: " + reason, wanted.title,
                      wanted.remedy + "; or name the file in " + wanted.variable},
              ExitStatus::missing_component);
}

void* find_function(void* library, const char* name) { return ::dlsym(library, name); }

void* need_function(void* library, const WantedLibrary& wanted, const char* name) {
  if (void* function = find_function(library, name)) return function;
  throw Error(Problem{wanted.title + " has no function " + name + ": this version of it is not one that we know",
                      wanted.title, wanted.remedy + "; or name another file in " + wanted.variable},
              ExitStatus::missing_component);
}

}  // namespace tprimat::gpu
