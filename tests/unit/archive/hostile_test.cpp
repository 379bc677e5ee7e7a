#include <fmt/format.h>

#include <algorithm>

#include "archive/find_sealed.h"
#include "archive/manifest.h"
#include "base/error.h"
#include "unit/archive/archive_folder.h"

namespace tprimat {
namespace {

// What a reader says of an archive; empty where it takes it.
std::string complaint_about(const fs::path& archive, const ArchiveLimits& limits = {}) {
  try {
    verify_archive(archive, limits);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_EQ(error.problems().size(), 1u);
    return error.problems().front().what;
  }
}

using HostileTest = ArchiveTest;
using SealLimits = ArchiveTest;

void expect_says(const std::string& complaint, const std::string& what) {
  EXPECT_NE(complaint.find(what), std::string::npos) << complaint;
}

TEST_F(HostileTest, NamesThatLeadElsewhere) {
  for (const char* name : {"../outside", "/etc/shadow", "a/../../b"}) {
    write_tar({{name, "x"}});
    expect_says(complaint_about(folder_ / "changed.tar"), "leads out of it");
  }
  write_tar({{"line\nbreak", "x"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "control characters");
  write_tar({{std::string(5000, 'n'), "x"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "a name of 5000 bytes, where 4096 are allowed");
}

TEST_F(HostileTest, LinksAndDevices) {
  for (const unsigned kind : {AE_IFLNK, AE_IFCHR, AE_IFIFO}) {
    write_tar({{"link", ""}}, kind);
    expect_says(complaint_about(folder_ / "changed.tar"), "is no plain file");
  }
}

TEST_F(HostileTest, ANameThatComesTwice) {
  write_tar({{"a/b", "x"}});
  const std::string one = read_file(folder_ / "changed.tar").substr(0, 1024);
  write_file_atomically(folder_ / "changed.tar", one + one + std::string(1024, '\0'));
  expect_says(complaint_about(folder_ / "changed.tar"), "comes twice");
  write_tar({{"a/b", "x"}, {"a//b", "y"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "comes twice");
}

// The first header of a tar archive with other bytes in it, and the checksum that they make (POSIX, ustar).
std::string edit_header(std::string tar, size_t at, const std::string& bytes) {
  tar.replace(at, bytes.size(), bytes);
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  return tar.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

TEST_F(HostileTest, AMemberThatClaimsToBeHuge) {
  write_tar({{"a", "x"}});
  const std::string tar = read_file(folder_ / "changed.tar");
  write_file_atomically(folder_ / "changed.tar", edit_header(tar, 124, "77777777777"));  // octal, 8 GiB
  expect_says(complaint_about(folder_ / "changed.tar"), "holds more than 1.00 GB in one file");
}

TEST_F(HostileTest, AHardLink) {
  write_tar({{"a", ""}});
  const std::string tar = read_file(folder_ / "changed.tar");
  write_file_atomically(folder_ / "changed.tar", edit_header(tar, 156, "1/etc/passwd"));
  expect_says(complaint_about(folder_ / "changed.tar"), "is no plain file");
}

TEST_F(HostileTest, ABombAndTooManyFiles) {
  write_file_atomically(output_ / "big.log", std::string(5'000'000, 'x'));
  seal();
  EXPECT_LT(fs::file_size(folder_ / "a.tar.zst"), 20'000u);
  expect_says(complaint_about(folder_ / "a.tar.zst", {.file_bytes = 1'000'000}), "in one file");
  expect_says(complaint_about(folder_ / "a.tar.zst", {.all_bytes = 5'000'000}), "in all");
  expect_says(complaint_about(folder_ / "a.tar.zst", {.files = 1}), "more than 1 files");
  EXPECT_EQ(complaint_about(folder_ / "a.tar.zst"), "");
}

TEST_F(HostileTest, WhatIsDamagedOrEmpty) {
  write_run();
  seal();
  const std::string whole = read_file(folder_ / "a.tar.zst");
  for (const size_t size : {size_t{0}, size_t{3}, whole.size() / 2, whole.size() * 9 / 10}) {
    write_file_atomically(folder_ / "cut.tar.zst", whole.substr(0, size));
    EXPECT_NE(complaint_about(folder_ / "cut.tar.zst"), "") << size;
  }
  EXPECT_NE(complaint_about(folder_ / "nowhere.tar.zst"), "");
  EXPECT_NE(complaint_about(folder_), "");
}

class ManifestTest : public ArchiveTest {
 protected:
  void expect_refused(const std::string& manifest, const std::string& what) {
    write_tar({{k_manifest_name, manifest}, {"a.log", "x"}});
    expect_says(complaint_about(folder_ / "changed.tar"), what);
  }
};

TEST_F(ManifestTest, ListsAFileTwice) {
  const std::string file = R"({"path": "a.log", "bytes": 1, "sha256": "00"})";
  expect_refused(R"({"archive_version": 1, "files": [)" + file + "," + file + "]}", "lists \"a.log\" twice");
}

TEST_F(ManifestTest, HoldsSizesThatAreNone) {
  const auto with_size = [](const std::string& size) {
    return R"({"archive_version": 1, "files": [{"path": "a.log", "bytes": )" + size + R"(, "sha256": "00"}]})";
  };
  expect_refused(with_size("NaN"), "is not valid JSON");
  expect_refused(with_size("1e999"), "too large");
  expect_refused(with_size("1.5"), "must be a whole number");
  expect_refused(with_size("null"), "must be a whole number");
  expect_refused(with_size("\"1\""), "must be a whole number");
  expect_refused(with_size("-1"), "a length of -1 bytes");
}

TEST_F(ManifestTest, IsNone) {
  expect_refused("", "is not valid JSON");
  expect_refused("[]", "names no archive_version");
  expect_refused("{}", "names no archive_version");
  expect_refused(R"({"archive_version": 2, "files": []})", "is of version 2");
  write_tar({{"a.log", "x"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "holds no MANIFEST.json");
}

TEST_F(ManifestTest, StatesAnotherLength) {
  write_run();
  seal();
  rewrite([](const std::string& name, std::string& content) {
    if (name != k_manifest_name) return;
    Json manifest = parse_json(content, "");
    manifest["files"][0]["bytes"] = 7;
    content = print_json(manifest);
  });
  const Verification found = verify_changed();
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0].what, "bytes");
  EXPECT_EQ(found.broken[0].stated, "7");
}

TEST_F(SealLimits, OddNamesAreEscapedAndHold) {
  write_file_atomically(output_ / "line\nbreak.log", "a");
  write_file_atomically(output_ / "line%0Abreak.log", "b");
  write_file_atomically(output_ / "no\xff utf\xc2\x9b.log", "c");
  const Seal sealed = seal();
  ASSERT_EQ(sealed.manifest.files.size(), 3u);
  EXPECT_EQ(sealed.manifest.files[0].path, "output/line%0Abreak.log");
  EXPECT_EQ(sealed.manifest.files[1].path, "output/line%0Abreak-2.log");
  EXPECT_EQ(sealed.manifest.files[2].path, "output/no%FF utf%C2%9B.log");
  EXPECT_TRUE(verify_archive(folder_ / "a.tar.zst").broken.empty());
}

TEST_F(SealLimits, WhatNoArchiveMayHoldIsLeftOutAndNamed) {
  write_file_atomically(output_ / "small.log", "a");
  write_file_atomically(output_ / "large.log", std::string(2000, 'x'));
  write_file_atomically(output_ / "grows.log",
                        std::string(900, 'x') + std::string(20, ' ') + "/home/i /home/j /home/k /home/l");
  write_file_atomically(output_ / (std::string(100, 'n') + ".log"), "b");
  const ArchiveLimits limits{.file_bytes = 955, .name_bytes = 90};
  const Seal sealed = seal_files({{output_}, folder_ / "a.tar.zst", {}, "", "", limits});
  ASSERT_EQ(sealed.manifest.files.size(), 1u);
  EXPECT_EQ(sealed.manifest.files[0].path, "output/small.log");
  ASSERT_EQ(sealed.left_out.size(), 3u);
  EXPECT_EQ(complaint_about(folder_ / "a.tar.zst", limits), "");
}

TEST_F(SealLimits, MoreThanAnArchiveMayHoldIsNotSealed) {
  write_file_atomically(output_ / "a.log", std::string(600, 'x'));
  write_file_atomically(output_ / "b.log", std::string(600, 'x'));
  for (const ArchiveLimits& limits : {ArchiveLimits{.all_bytes = 1000}, ArchiveLimits{.files = 2}}) {
    EXPECT_THROW(seal_files({{output_}, folder_ / "a.tar.zst", {}, "", "", limits}), Error);
    EXPECT_FALSE(fs::exists(folder_ / "a.tar.zst"));
  }
}

TEST_F(SealLimits, MoreResultsThanCanBeHeldAreNeitherSealedNorRead) {
  write_run();
  write_file_atomically(output_ / "trace.json", "[\"" + std::string(100'000, 'x') + "\"]");  // no result: not held
  seal();
  EXPECT_EQ(complaint_about(folder_ / "a.tar.zst", {.result_bytes = 50'000}), "");
  const ArchiveLimits limits{.result_bytes = 1000};
  EXPECT_NE(complaint_about(folder_ / "a.tar.zst", limits).find("of results"), std::string::npos);
  EXPECT_THROW(seal_files({{output_}, folder_ / "b.tar.zst", {}, "", "", limits}), Error);
}

TEST(SealedNames, AreFoundQuicklyAmongThousandsOfOneName) {  // one by one: minutes
  SealedNames names;
  constexpr int k_runs = 20'000;
  const auto name_of = [](int run) { return "output/runs/" + std::to_string(run) + "/steps.jsonl"; };
  for (int run = 0; run < k_runs; ++run) names.add(name_of(run));
  for (int run = 0; run < k_runs; ++run) {
    ASSERT_TRUE(names.holds(name_of(run)));
    ASSERT_EQ(names.find("/data/" + name_of(run), "output/x.json"), name_of(run));
  }
}

TEST(SealedNames, AreFoundByTheirEnd) {
  SealedNames names;
  for (const char* name : {"output/runs/a/steps.jsonl", "output/runs/b/steps.jsonl", "x.log", "one/t.log", "two/t.log"})
    names.add(name);
  EXPECT_EQ(names.find("/data/output/runs/b/steps.jsonl", "output/b.json"), "output/runs/b/steps.jsonl");
  EXPECT_EQ(names.find("/data/output/runs/c/steps.jsonl", "output/c.json"), std::nullopt);
  EXPECT_EQ(names.find("/var/log/x.log", "a.json"), "x.log");
  EXPECT_EQ(names.find("t.log", "two/t.json"), "two/t.log");
  EXPECT_EQ(names.find("t.log", "three/t.json"), std::nullopt) << "either could be it";
  EXPECT_EQ(names.find("", "three/t.json"), std::nullopt);
}

}  // namespace
}  // namespace tprimat
