#include "base/program_module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

ModuleFile wanted_file(const std::string& name) {
  return {.name = name,
          .where = "part",
          .wanted_for = "a part is wanted",
          .when_missing = "build it",
          .when_broken = "install what it needs"};
}

std::string refusal_of(const ModuleFile& file) {
  try {
    ProgramModule module(file);
    return "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    return error.what();
  }
}

TEST(ProgramModule, AMissingFileIsNamedWithWhoWantsIt) {
  const std::string text = refusal_of(wanted_file("libno_such_part.so"));
  EXPECT_NE(text.find("part: a part is wanted, but libno_such_part.so is not in "), std::string::npos) << text;
  EXPECT_NE(text.find("build it"), std::string::npos) << text;
}

TEST(ProgramModule, AFileThatCannotBeLoadedIsNamedWithTheReason) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string name = "libbroken_part" + std::to_string(::getpid()) + ".so";
  std::ofstream(folder / name) << "no library";
  const std::string text = refusal_of(wanted_file(name));
  fs::remove(folder / name);
  EXPECT_NE(text.find(name + " cannot be loaded: "), std::string::npos) << text;
  EXPECT_NE(text.find("install what it needs"), std::string::npos) << text;
}

// libm is everywhere; the module itself is looked for first.
TEST(ProgramModule, TheFirstLibraryThatOpensServesTheModule) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string name = "libpart_without_library" + std::to_string(::getpid()) + ".so";
  std::ofstream(folder / name) << "no library";
  ModuleFile file = wanted_file(name);
  file.libraries = {"libno_such_a.so", "libno_such_b.so"};
  const std::string missing = refusal_of(file);
  file.libraries = {"libno_such_a.so", "libm.so.6"};
  const std::string broken = refusal_of(file);
  fs::remove(folder / name);
  EXPECT_NE(missing.find("part: a part is wanted, but this machine has no libno_such_a.so or libno_such_b.so: "),
            std::string::npos)
      << missing;
  EXPECT_NE(missing.find("install what it needs"), std::string::npos) << missing;
  EXPECT_NE(broken.find(name + " cannot be loaded: "), std::string::npos) << broken;
}

}  // namespace
}  // namespace tprimat
