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

}  // namespace
}  // namespace tprimat
