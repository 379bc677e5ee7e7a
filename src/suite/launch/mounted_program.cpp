#include "launch/mounted_program.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/program_module.h"
#include "launch/container.h"
#include "launch/launch_plan.h"
#include "launch/trainer_program.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_folder = "/opt/tprimat-mounted";  // in the container; no image of ours has it
constexpr std::string_view k_script = "program/tprimat";       // in the folder of the run, which is mounted too

std::string real_path(const fs::path& path) {
  std::error_code failure;
  const fs::path real = fs::canonical(path, failure);
  return failure ? path.string() : real.string();
}

void add_once(std::vector<std::string>& list, const std::string& path) {
  if (std::ranges::find(list, path) == list.end()) list.push_back(path);
}

// The first object is the program itself, which names its loader; the others are libraries with a path.
int note_object(dl_phdr_info* object, size_t, void* files_of) {
  auto& files = *static_cast<ProgramFiles*>(files_of);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type == PT_INTERP && files.loader.empty())
      files.loader = real_path(reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr));
  }
  const fs::path path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  if (path.is_absolute() && real_path(path) != files.loader)
    add_once(files.library_folders, real_path(path.parent_path()));
  return 0;
}

std::string inside(const std::string& name) { return fmt::format("{}/{}", k_folder, name); }

// "lib", "lib2", ...
std::string library_folder(size_t index) {
  return inside(index == 0 ? std::string("lib") : fmt::format("lib{}", index + 1));
}

std::string render_script(const ProgramFiles& files) {
  std::string text = fmt::format(
      "#!/bin/sh\n# tprimat of the machine that started this container, with that machine's loader and libraries.\n"
      "folder={}\nprogram=tprimat\n",
      inside("bin"));
  if (!files.trainer.empty()) text += "case $1 in train | data | probe) program=tprimat-train ;; esac\n";
  if (files.loader.empty()) return text + "exec $folder/$program \"$@\"\n";
  std::string folders;
  for (size_t i = 0; i < files.library_folders.size(); ++i) folders += (i == 0 ? "" : ":") + library_folder(i);
  return text + fmt::format(
                    "libraries={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n"
                    "exec $folder/ld.so --library-path \"$libraries\" $folder/$program \"$@\"\n",
                    folders);
}

}  // namespace

ProgramFiles find_program_files() {
  ProgramFiles files;
  ::dl_iterate_phdr(note_object, &files);
  if (const auto trainer = find_trainer_program()) files.trainer = real_path(*trainer);
  for (const char* name : {"libtprimat_nvd.so", "libtprimat_amd.so"})
    if (const auto module = find_program_module(name)) files.modules.push_back(real_path(*module));
  return files;
}

bool mounts_program(const LaunchRequest& request) {
  const LauncherSettings& launch = request.launch;
  const bool own_image = launch.launcher == Launcher::docker && launch.docker.image.empty();
  const bool can_mount = launch.launcher != Launcher::kubernetes;  // the nodes do not have this machine's files
  return launch.in_container() && launch.program_inside.empty() && !own_image && can_mount;
}

std::string program_in_container(const LaunchRequest& request) {
  if (mounts_program(request)) return fmt::format("{}/{}", request.paths.folder, k_script);
  return request.launch.program_inside.empty() ? "tprimat" : request.launch.program_inside;
}

std::vector<std::string> mounts_of_program(const LaunchRequest& request, std::string_view separators) {
  const ProgramFiles& files = request.program_files;
  std::vector<std::string> mounts;
  const auto add = [&](const std::string& from, const std::string& to) {
    if (from.empty()) return;
    require_mountable(from, separators, "launch.program_inside",
                      "move tprimat to another folder, or name the image's own tprimat with launch.program_inside");
    mounts.push_back(fmt::format("{}:{}:ro", from, to));
  };
  add(request.own_program, inside("bin/tprimat"));
  add(files.trainer, inside("bin/tprimat-train"));
  for (const std::string& module : files.modules) add(module, inside("bin/" + fs::path(module).filename().string()));
  add(files.loader, inside("bin/ld.so"));
  for (size_t i = 0; i < files.library_folders.size(); ++i) add(files.library_folders[i], library_folder(i));
  return mounts;
}

void add_start_script(const LaunchRequest& request, LaunchPlan& plan) {
  plan.files.push_back({program_in_container(request), render_script(request.program_files), true});
}

bool has_start_script(const LaunchPlan& plan) {
  return std::ranges::any_of(plan.files, [](const GeneratedFile& file) {
    return file.executable && file.path.ends_with("/" + std::string(k_script));
  });
}

}  // namespace tprimat::suite
