#include "device/gpu/find_library.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/error.h"
#include "device/gpu/libraries.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {
namespace {

namespace fs = std::filesystem;

// A folder that holds a Python environment with a vendor's library, gone at the end.
class PythonHome {
 public:
  PythonHome()
      : root_(fs::temp_directory_path() / ("tprimat_find_library_" + std::to_string(::getpid()))),
        packages_(root_ / "lib" / "python3.11" / "site-packages") {
    fs::create_directories(packages_ / "nvidia" / "thing" / "lib");
    fs::create_directories(root_ / "bin");
    std::ofstream(root_ / "bin" / "python3") << "#!/bin/sh\n";
    std::ofstream(library()) << "no library\n";
  }
  ~PythonHome() { fs::remove_all(root_); }
  PythonHome(const PythonHome&) = delete;
  PythonHome& operator=(const PythonHome&) = delete;
  const fs::path& root() const { return root_; }
  const fs::path& packages() const { return packages_; }
  fs::path library() const { return packages_ / "nvidia" / "thing" / "lib" / "libtprimat_thing.so.7"; }

 private:
  fs::path root_, packages_;
};

ReadVariable variables(const std::map<std::string, std::string>& set) {
  return [set](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found != set.end() ? std::optional<std::string>(found->second) : std::nullopt;
  };
}

const WantedLibrary k_thing{"Thing",
                            {"libtprimat_thing.so.7", "libtprimat_thing.so.6"},
                            {"nvidia/other/lib", "nvidia/thing/lib"},
                            "TPRIMAT_THING",
                            "install Thing"};

bool contains(const std::vector<std::string>& candidates, const fs::path& path) {
  return std::find(candidates.begin(), candidates.end(), path.string()) != candidates.end();
}

TEST(FindLibrary, LooksIntoPythonsPackages) {
  const PythonHome home;
  const std::string path = "/nowhere:" + (home.root() / "bin").string();
  for (const auto& set : {std::map<std::string, std::string>{{"VIRTUAL_ENV", home.root().string()}},
                          std::map<std::string, std::string>{{"CONDA_PREFIX", home.root().string()}},
                          std::map<std::string, std::string>{{"PATH", path}}}) {
    const auto candidates = library_candidates(k_thing, variables(set));
    EXPECT_EQ(candidates.front(), "libtprimat_thing.so.7");  // the dynamic linker comes first
    EXPECT_TRUE(contains(candidates, home.library())) << set.begin()->first;
    EXPECT_EQ(python_package_folders(variables(set)).front(), home.packages());
  }
  EXPECT_FALSE(contains(library_candidates(k_thing, variables({})), home.library()));
}

// `pip install` into an environment that is not the active one.
TEST(FindLibrary, LooksIntoTheEnvironmentOfTheProgramFirst) {
  const PythonHome home;
  const auto folders =
      python_package_folders(variables({{"VIRTUAL_ENV", "/nowhere"}}), home.root() / "lib/tprimat/tprimat-train");
  ASSERT_FALSE(folders.empty());
  EXPECT_EQ(folders.front(), home.packages());
}

// A link in /usr/local/bin to a virtual environment's python3, which is a link to the system's.
TEST(FindLibrary, LooksWhereALinkToPythonLeads) {
  const PythonHome home;
  const fs::path links = home.root() / "links";
  fs::create_directories(links / "bin");
  fs::create_symlink(home.root() / "bin" / "python3", links / "bin" / "python3");
  EXPECT_TRUE(contains(library_candidates(k_thing, variables({{"PATH", (links / "bin").string()}})), home.library()));
  fs::create_symlink("python3", links / "bin" / "python3.self");
  fs::rename(links / "bin" / "python3.self", links / "bin" / "python3");  // a link to itself
  EXPECT_NO_THROW(library_candidates(k_thing, variables({{"PATH", (links / "bin").string()}})));
}

TEST(FindLibrary, AnOlderReleaseComesAfterEveryPlaceOfTheNewer) {
  const PythonHome home;
  const auto candidates = library_candidates(k_thing, variables({{"VIRTUAL_ENV", home.root().string()}}));
  const auto place = [&](const std::string& candidate) {
    return std::find(candidates.begin(), candidates.end(), candidate) - candidates.begin();
  };
  EXPECT_LT(place(home.library().string()), place("libtprimat_thing.so.6"));
}

#if defined(TPRIMAT_GPU_HOST)
// As NVRTC opens libnvrtc-builtins by its bare name, in a folder that the dynamic linker does not search.
TEST(FindLibrary, WhatALibraryOpensByItsBareNameIsOpenedBesideIt) {
  WantedLibrary wanted{"Opener", {"libtprimat_opener.so.7"}, {}, "TPRIMAT_OPENER", "install it"};
  ::setenv("TPRIMAT_OPENER", TPRIMAT_OPENER_FILE, 1);
  const auto finds_its_part = [](void* library) {
    return reinterpret_cast<int (*)()>(need_function(library, k_thing, "tprimat_opener_finds_its_part"))();
  };
  EXPECT_EQ(finds_its_part(open_library(wanted)), 0);
  wanted.beside = {"libtprimat_opened_part.so."};
  void* const library = open_library(wanted);
  EXPECT_EQ(finds_its_part(library), 1);
  EXPECT_EQ(library_file(library), fs::path(TPRIMAT_OPENER_FILE));
  ::unsetenv("TPRIMAT_OPENER");
}
#endif

// The real one: it needs no GPU to compile for one.
TEST(FindLibrary, NvrtcCompilesFromAFolderThatTheLinkerDoesNotSearch) {
  void* library = nullptr;
  try {
    library = open_library(compiler_library());
  } catch (const Error& error) {
    GTEST_SKIP() << "there is no NVRTC here (scripts/build_gpu.sh nvd brings it): " << error.problems().front().what;
  }
  const auto call = [&]<class... Parameters>(const char* name, Parameters... parameters) {
    return reinterpret_cast<int (*)(Parameters...)>(need_function(library, compiler_library(), name))(parameters...);
  };
  void* program = nullptr;
  ASSERT_EQ(call("nvrtcCreateProgram", &program, "__global__ void f(float* x) { *x = 1; }", "f.cu", 0,
                 static_cast<const char* const*>(nullptr), static_cast<const char* const*>(nullptr)),
            0);
  const char* const options[] = {"--gpu-architecture=sm_90a"};
  EXPECT_EQ(call("nvrtcCompileProgram", program, 1, static_cast<const char* const*>(options)), 0);
  EXPECT_EQ(call("nvrtcDestroyProgram", &program), 0);
}

TEST(FindLibrary, APartThatCannotBeLoadedIsNamed) {
  const PythonHome home;
  try {
    open_beside(home.library().parent_path() / "libwhole.so", {"libtprimat_thing"});
    FAIL() << "this is no library";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(", which libwhole.so requires: "), text.npos) << text;
    EXPECT_NE(text.find(home.library().string()), text.npos) << text;
  }
}

// Opening a FIFO waits for whoever writes into it.
TEST(FindLibrary, WhatIsNoRegularFileIsNotOpened) {
  const PythonHome home;
  fs::remove(home.library());
  ASSERT_EQ(::mkfifo(home.library().c_str(), 0600), 0);
  EXPECT_FALSE(
      contains(library_candidates(k_thing, variables({{"VIRTUAL_ENV", home.root().string()}})), home.library()));
  ::setenv("TPRIMAT_THING", home.library().c_str(), 1);
  EXPECT_THROW(open_library(k_thing), Error);
  ::unsetenv("TPRIMAT_THING");
  EXPECT_NO_THROW(open_beside(home.library().parent_path() / "libwhole.so", {"libtprimat_thing"}));
}

#if defined(TPRIMAT_GPU_HOST)
// A library of another kind under the wanted name.
TEST(FindLibrary, ALibraryWithoutTheVersionIsRefused) {
  ::setenv("TPRIMAT_NCCL", TPRIMAT_OPENER_FILE, 1);
  const LibraryReport report = report_libraries().back();
  ::unsetenv("TPRIMAT_NCCL");
  EXPECT_NE(report.refusal.find("reports no version of"), std::string::npos) << report.refusal;
  EXPECT_TRUE(report.file.empty());
}
#endif

TEST(FindLibrary, EveryLibraryOfATrainingIsReported) {
  const auto reports = report_libraries();
  std::vector<std::string> titles;
  for (const LibraryReport& report : reports) {
    titles.push_back(report.title);
    EXPECT_NE(report.file.empty(), report.refusal.empty()) << report.title;
    EXPECT_EQ(report.remedy.empty(), report.refusal.empty()) << report.title;
  }
  EXPECT_EQ(titles.front(), TPRIMAT_GPU_NAME("cuBLASLt", "hipBLASLt"));
  EXPECT_EQ(titles.back(), TPRIMAT_GPU_NAME("NCCL", "RCCL"));
}

TEST(FindLibrary, AFileThatIsNamedIsTheOnlyCandidate) {
  const auto candidates = library_candidates(k_thing, variables({{"TPRIMAT_THING", "/opt/thing.so"}}));
  EXPECT_EQ(candidates, std::vector<std::string>{"/opt/thing.so"});
}

TEST(FindLibrary, SaysWhatIsMissingAndHowToMendIt) {
  try {
    open_library(k_thing);
    FAIL() << "there is no such library";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    const std::string text = error.what();
    EXPECT_NE(text.find("libtprimat_thing.so.7"), text.npos) << text;
    EXPECT_NE(text.find("install Thing; or name the file in TPRIMAT_THING"), text.npos) << text;
  }
}

TEST(FindLibrary, SaysWhyAFileCannotBeLoaded) {
  const PythonHome home;
  ::setenv("TPRIMAT_THING", home.library().c_str(), 1);
  try {
    open_library(k_thing);
    FAIL() << "this is no library";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(home.library().string()), std::string::npos) << error.what();
  }
  ::unsetenv("TPRIMAT_THING");
}

TEST(FindLibrary, MissingFunctionsAreNamed) {
  const WantedLibrary c_library{"the C library", {"libc.so.6"}, {}, "TPRIMAT_C_LIBRARY", "install it"};
  void* const library = open_library(c_library);
  EXPECT_NE(need_function(library, c_library, "getpid"), nullptr);
  EXPECT_EQ(find_function(library, "tprimat_no_such_function"), nullptr);
  EXPECT_THROW(need_function(library, c_library, "tprimat_no_such_function"), Error);
}

}  // namespace
}  // namespace tprimat::engine::gpu
