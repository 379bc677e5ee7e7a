#include "base/program_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_module(const ModuleFile& file, const std::string& what, const std::string& hint) {
  throw Error(Problem{what, file.where, hint}, ExitStatus::missing_component);
}

// Empty if /proc is not available.
fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path require_module(const ModuleFile& file) {
  if (const auto path = find_program_module(file.name)) return *path;
  refuse_module(file, fmt::format("{}, but {} is not in {}", file.wanted_for, file.name, program_folder().string()),
                file.when_missing);
}

std::string loader_reason() {
  const char* reason = ::dlerror();
  return reason != nullptr ? reason : "no reason given";
}

// For all to see: such a library loads parts of its own, which look for its symbols in the whole process. Never closed.
void open_first_of(const ModuleFile& file) {
  std::vector<std::string> reasons;
  for (const std::string& name : file.libraries) {
    if (::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
    reasons.push_back(loader_reason());
  }
  if (reasons.empty()) return;
  refuse_module(file,
                fmt::format("{}, but this machine has no {}: {}", file.wanted_for, fmt::join(file.libraries, " or "),
                            fmt::join(reasons, "; ")),
                file.when_broken);
}

}  // namespace

std::optional<fs::path> find_program_module(const std::string& name) {
  const fs::path folder = program_folder();
  std::error_code unreadable;  // counts as absent
  for (const fs::path& path : {folder / name, folder.parent_path() / "lib" / "tprimat" / name})
    if (!folder.empty() && fs::is_regular_file(path, unreadable)) return path;
  return std::nullopt;
}

ProgramModule::ProgramModule(ModuleFile file) : file_(std::move(file)) {
  const fs::path path = require_module(file_);
  open_first_of(file_);
  library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr)
    refuse_module(file_, fmt::format("{} cannot be loaded: {}", path.string(), loader_reason()), file_.when_broken);
}

void* ProgramModule::symbol(const char* name) const {
  if (void* symbol = ::dlsym(library_, name)) return symbol;
  refuse_module(file_, fmt::format("{} has no {}: it belongs to another version of this program", file_.name, name),
                "build the whole program again");
}

}  // namespace tprimat
