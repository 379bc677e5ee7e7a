#include <fmt/format.h>

#include <algorithm>

#include "archive/archive_format.h"
#include "archive/find_sealed.h"
#include "base/error.h"
#include "unit/archive/archive_folder.h"

namespace tprimat::results {
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
    expect_says(complaint_about(folder_ / "changed.tar"), "points outside the archive");
  }
  write_tar({{"line\nbreak", "x"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "control characters");
  write_tar({{std::string(5000, 'n'), "x"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "a name of 5000 bytes, but the limit is 4096");
}

TEST_F(HostileTest, LinksAndDevices) {
  for (const unsigned kind : {AE_IFLNK, AE_IFCHR, AE_IFIFO}) {
    write_tar({{"link", ""}}, kind);
    expect_says(complaint_about(folder_ / "changed.tar"), "is not a regular file");
  }
}

TEST_F(HostileTest, ANameThatComesTwice) {
  write_tar({{"a/b", "x"}});
  const std::string one = read_file(folder_ / "changed.tar").substr(0, 1024);
  write_file_atomically(folder_ / "changed.tar", one + one + std::string(1024, '\0'));
  expect_says(complaint_about(folder_ / "changed.tar"), "appears twice");
  write_tar({{"a/b", "x"}, {"a//b", "y"}});
  expect_says(complaint_about(folder_ / "changed.tar"), "appears twice");
}

// The first header of a tar archive with other bytes in it, and the checksum that they make (POSIX, ustar).
std::string edit_header(std::string tar, size_t at, const std::string& bytes) {
  tar.replace(at, bytes.size(), bytes);
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  return tar.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

// What stands behind them would not be looked at: libarchive and others read on.
TEST_F(HostileTest, HeadersThatProgramsReadDifferently) {
  write_tar({{"a", "x"}});
  const std::string tar = read_file(folder_ / "changed.tar");
  const std::string global = edit_header(edit_header(tar.substr(0, 512), 156, "g"), 124, "00000000000");
  const auto expect_refused = [&](const std::string& first) {
    write_file_atomically(folder_ / "changed.tar", first + global + tar);
    expect_says(complaint_about(folder_ / "changed.tar"), "ambiguous header");
  };
  const std::string member = tar.substr(0, 1024);
  expect_refused(edit_header(member, 124, std::string("\x80\0\0\0\0\0\0\0\0\0\0\1", 12)));  // GNU's base 256
  expect_refused(edit_header(member, 124, "1x000000000"));
  std::string with_signed_sum = edit_header(member, 0, "\xe4");
  with_signed_sum.replace(148, 7,
                          fmt::format("{:06o}", std::stoi(with_signed_sum.substr(148, 6), nullptr, 8) - 256) + '\0');
  expect_refused(with_signed_sum);
  expect_refused(edit_header(edit_header(tar.substr(0, 512), 156, "5"), 124, "00000001000"));  // a folder with content
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
  expect_says(complaint_about(folder_ / "changed.tar"), "is not a regular file");
}

TEST_F(HostileTest, FoldersAreLookedAtToo) {
  const auto expect_folder = [&](const std::string& name, const std::string& what) {
    write_tar({{name, ""}}, AE_IFDIR);
    expect_says(complaint_about(folder_ / "changed.tar"), what);
  };
  expect_folder("../outside/", "points outside the archive");
  expect_folder("/etc/cron.d/", "points outside the archive");
  expect_folder("a\033[2J/", "control characters");
  expect_folder("MANIFEST.json/", "is both a folder and a file");
  expect_folder("plain/", "holds no MANIFEST.json");
  write_tar({{"a", "x"}});
  const std::string file = read_file(folder_ / "changed.tar").substr(0, 1024);
  write_tar({{"a/", ""}}, AE_IFDIR);
  const std::string folder = read_file(folder_ / "changed.tar").substr(0, 512);
  for (const std::string& both : {file + folder, folder + file}) {
    write_file_atomically(folder_ / "changed.tar", both + std::string(1024, '\0'));
    expect_says(complaint_about(folder_ / "changed.tar"), "is both a folder and a file");
  }
}

// Programs differ in what they make of these.
TEST_F(HostileTest, HeadersThatChangeWhatIsUnpacked) {
  write_tar({{"a", "x"}});
  const std::string tar = read_file(folder_ / "changed.tar");
  const auto expect_header = [&](char kind, const std::string& records, const std::string& what) {
    std::string header = edit_header(tar.substr(0, 512), 124, fmt::format("{:011o}", records.size()));
    header = edit_header(header, 156, std::string(1, kind));
    std::string content = records;
    content.resize((records.size() + 511) / 512 * 512);
    write_file_atomically(folder_ / "changed.tar", header + content + tar);
    expect_says(complaint_about(folder_ / "changed.tar"), what);
  };
  expect_header('g', "19 path=elsewhere\n", "holds a global header");
  expect_header('V', "", "unknown kind \"V\"");
  expect_header('M', "", "unknown kind \"M\"");
  expect_header('x', "10 size=9\n", "overrides the length");
  expect_header('x', "10 path=b\n", "holds no MANIFEST.json");  // a name of its own
}

TEST_F(HostileTest, ABombAndTooManyFiles) {
  write_file_atomically(output_ / "big.log", std::string(5'000'000, 'x'));
  seal();
  EXPECT_LT(fs::file_size(folder_ / "a.tar.zst"), 20'000u);
  expect_says(complaint_about(folder_ / "a.tar.zst", {.file_bytes = 1'000'000}), "in one file");
  expect_says(complaint_about(folder_ / "a.tar.zst", {.all_bytes = 5'000'000}), "in total");
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

// Whatever stands behind the end was not sealed, and another program may read it as the archive.
TEST_F(HostileTest, WhatStandsBehindTheEnd) {
  write_run();
  const auto expect_refused_behind = [&](const fs::path& name, const std::string& rest, const std::string& what) {
    const std::string whole = read_file(folder_ / name);
    EXPECT_EQ(complaint_about(folder_ / name), "");
    write_file_atomically(folder_ / ("more_" + name.string()), whole + rest);
    expect_says(complaint_about(folder_ / ("more_" + name.string())), what);
  };
  const std::string zstd_frame = std::string("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00", 9);                  // empty
  const std::string skippable = std::string("\x50\x2a\x4d\x18\x04\x00\x00\x00more", 12);                  // zstd's own
  const std::string gzip_member = std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20);  // empty
  for (const char* name : {"a.tar.zst", "a.tar.gz"}) {
    seal_files({{output_}, folder_ / name, {}, "tprimat test", ""});
    const std::string whole = read_file(folder_ / name);
    for (const std::string& rest : {std::string("x"), std::string(1, '\0'), zstd_frame, skippable, gzip_member, whole})
      expect_refused_behind(name, rest, "has data after its");
  }
  rewrite([](const std::string&, std::string&) {});  // a plain tar
  const std::string tar = read_file(folder_ / "changed.tar");
  expect_refused_behind("changed.tar", "x", "has data after the end of its tar archive");
  expect_refused_behind("changed.tar", tar, "has data after the end of its tar archive");
  expect_refused_behind("changed.tar", std::string(2 << 20, '\0'), "has data after the end of its tar archive");
}

TEST_F(HostileTest, ZerosThatFillTheLastRecordAreNoData) {
  write_run();
  seal();
  rewrite([](const std::string&, std::string&) {});
  const std::string tar = read_file(folder_ / "changed.tar");
  for (const size_t size : {size_t{0}, size_t{512}, size_t{100'000}}) {
    write_file_atomically(folder_ / "changed.tar", tar + std::string(size, '\0'));
    EXPECT_EQ(complaint_about(folder_ / "changed.tar"), "") << size;
  }
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
  expect_refused("[]", "lacks archive_version");
  expect_refused("{}", "lacks archive_version");
  expect_refused(R"({"archive_version": 2, "files": []})", "has version 2");
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
}  // namespace tprimat::results
