#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "archive/redactor.h"
#include "archive/seal.h"
#include "archive/sealed_files.h"
#include "archive/sha256.h"
#include "archive/verify.h"
#include "base/error.h"
#include "base/files.h"
#include "result/result_file.h"
#include "result/step_record.h"
#include "result/summary.h"
#include "text/json.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

TEST(Sha256, IsThatOfTheStandardsExamples) {  // FIPS 180-4, example of one block
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Redactor, HidesSecretsNamesAndHomes) {
  Redactor redactor({{"s3cr3t-value"}, "jane", "/srv/people/jane", {"node17"}});
  EXPECT_EQ(redactor.redact("HF_TOKEN=s3cr3t-value jane@node17:/srv/people/jane/run"),
            "HF_TOKEN=[redacted] user@host-1:~/run");
  EXPECT_EQ(redactor.redact("token hf_abcdefghijklmnopqrstuvwxyz012345 end"), "token [redacted] end");
  EXPECT_EQ(redactor.redact("/home/bob/x and /Users/bob/y"), "/home/user/x and /Users/user/y");
  EXPECT_EQ(redactor.counts().at("secret"), 2);
}

TEST(Redactor, FindsASecretAsJsonWritesItAndLeavesNumbers) {
  Redactor redactor({{"a\"bcdefghij", "100000000"}, "", "", {}});
  EXPECT_EQ(redactor.redact(R"({"key": "a\"bcdefghij", "tokens": 100000000})"),
            R"({"key": "[redacted]", "tokens": 100000000})");
}

TEST(Redactor, ManyHitsTakeNoSquareOfTime) {  // at a square, minutes
  std::string log;
  for (int i = 0; i < 300'000; ++i) log += "File /home/jane2/x.py, line 7\n";
  Redactor redactor({});
  redactor.redact(log);
  EXPECT_EQ(redactor.counts().at("home"), 300'000);
}

TEST(Redactor, LeavesOrdinaryWordsAlone) {
  Redactor redactor({{"true", ""}, "root", "/root", {}});
  const std::string text = "trueness root cause janet hf_short sk-ip node17 /rooted/path";
  EXPECT_EQ(redactor.redact(text), text);
  Redactor named({{}, "jan", "/home/jan", {}});
  EXPECT_EQ(named.redact("january jan's jan_x"), "january user's jan_x");
}

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() {
    std::string pattern = (fs::temp_directory_path() / "tprimat_archive_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    output_ = folder_ / "output";
  }
  ~ArchiveTest() override { fs::remove_all(folder_); }

  void write_run() {
    RunResult run;
    run.platform = Platform::nvd;
    run.framework = Framework::mega;
    run.model_info.name = "llama";
    run.gpu_info = {"NVIDIA H100 80GB HBM3", 8, {}, {}, {}, {}, {}};
    run.training_config.global_batch_size = 64;
    run.training_config.sequence_length = 2048;
    run.training_config.max_steps = 30;
    std::string lines;
    for (int i = 0; i < 30; ++i) {
      StepRecord record;
      record.step = i + 1;
      record.time_seconds = i == 0 ? 5.0 : 1.0 + 0.01 * (i % 7);
      record.loss = 9.0 - 0.1 * i;
      run.step_times.push_back(record.time_seconds);
      run.loss_values.push_back(*record.loss);
      lines += step_record_to_line(record) + "\n";
    }
    summarise_run(run, {});
    write_run_result(output_ / "train_nvd_mega_llama.json", run);
    write_file_atomically(output_ / "runs/train_nvd_mega_llama/steps.jsonl", lines);
    write_file_atomically(output_ / "training.log", "token hf_abcdefghijklmnopqrstuvwxyz012345\n");
    write_file_atomically(output_ / "weights.safetensors", "large");
  }

  Seal seal() { return seal_files({{output_}, folder_ / "a.tar.zst", {}, "tprimat test", "2026-01-01T00:00:00Z"}); }

  // The archive once more, with one file changed on the way.
  void rewrite(const std::function<void(const std::string& name, std::string& content)>& change) {
    std::map<std::string, std::string> files;
    read_sealed_files(folder_ / "a.tar.zst", [&](const std::string& name, std::string content) {
      change(name, content);
      files[name] = std::move(content);
    });
    write_tar(files);
  }

  void write_tar(const std::map<std::string, std::string>& files, unsigned kind = AE_IFREG) {
    archive* tar = ::archive_write_new();
    ::archive_write_set_format_pax_restricted(tar);
    ::archive_write_open_filename(tar, (folder_ / "changed.tar").c_str());
    for (const auto& [name, content] : files) {
      archive_entry* entry = ::archive_entry_new();
      ::archive_entry_set_pathname(entry, name.c_str());
      ::archive_entry_set_filetype(entry, kind);
      ::archive_entry_set_perm(entry, 0644);
      if (kind == AE_IFLNK) ::archive_entry_set_symlink(entry, "/etc/passwd");
      ::archive_entry_set_size(entry, kind == AE_IFREG ? static_cast<la_int64_t>(content.size()) : 0);
      ::archive_write_header(tar, entry);
      if (kind == AE_IFREG) ::archive_write_data(tar, content.data(), content.size());
      ::archive_entry_free(entry);
    }
    ::archive_write_free(tar);
  }

  Verification verify_changed() { return verify_archive(folder_ / "changed.tar"); }

  fs::path folder_, output_;
};

TEST_F(ArchiveTest, WhatWasSealedHolds) {
  write_run();
  const Seal sealed = seal();
  ASSERT_EQ(sealed.left_out.size(), 1u);
  EXPECT_EQ(sealed.manifest.redactions.at("secret"), 1);
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  EXPECT_TRUE(found.broken.empty()) << found.broken.front().file << " " << found.broken.front().what;
  EXPECT_EQ(found.manifest_sha256, sealed.manifest_sha256);
  EXPECT_EQ(found.results, 1);
  EXPECT_EQ(found.steps, 30);
  EXPECT_GT(found.numbers, 15);
}

TEST_F(ArchiveTest, TheSameFilesMakeTheSameBytes) {
  write_run();
  seal();
  const std::string first = read_file(folder_ / "a.tar.zst");
  seal();
  EXPECT_EQ(read_file(folder_ / "a.tar.zst"), first);
}

TEST_F(ArchiveTest, AChangedFigureIsNamed) {
  write_run();
  Json result = parse_json(read_file(output_ / "train_nvd_mega_llama.json"), "");
  result["statistics"]["p95"] = 0.5;
  write_file_atomically(output_ / "train_nvd_mega_llama.json", print_json(result));
  seal();
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0].what, "statistics.p95");
}

TEST_F(ArchiveTest, AChangedStepIsHeldAgainstItsRecord) {
  write_run();
  Json result = parse_json(read_file(output_ / "train_nvd_mega_llama.json"), "");
  result["step_times"][12] = 0.9;
  write_file_atomically(output_ / "train_nvd_mega_llama.json", print_json(result));
  seal();
  const auto broken = verify_archive(folder_ / "a.tar.zst").broken;
  EXPECT_TRUE(
      std::any_of(broken.begin(), broken.end(), [](const Broken& each) { return each.what.starts_with("step 13"); }));
}

TEST_F(ArchiveTest, StepsThatTheResultLeavesOutAreNamed) {
  write_run();
  const fs::path records = output_ / "runs/train_nvd_mega_llama/steps.jsonl";
  StepRecord more;
  more.step = 31;
  more.time_seconds = 3.0;
  write_file_atomically(records, read_file(records) + step_record_to_line(more) + "\n");
  seal();
  const auto broken = verify_archive(folder_ / "a.tar.zst").broken;
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].what, "steps");
}

TEST_F(ArchiveTest, AFigureWithoutSamplesDoesNotHold) {
  write_run();
  Json result = parse_json(read_file(output_ / "train_nvd_mega_llama.json"), "");
  result["derived"]["mfu"] = {{"value", 0.9}};
  write_file_atomically(output_ / "train_nvd_mega_llama.json", print_json(result));
  seal();
  const auto broken = verify_archive(folder_ / "a.tar.zst").broken;
  ASSERT_FALSE(broken.empty());
  EXPECT_EQ(broken[0].what, "derived.mfu.value");
  EXPECT_EQ(broken[0].derived, "nothing");
}

TEST_F(ArchiveTest, NamesThatBecomeOneStayApart) {
  write_file_atomically(output_ / "jane.log", "a");
  write_file_atomically(output_ / "user.log", "b");
  write_file_atomically(output_ / "r\xc3\xa9sum\xc3\xa9.log", "c");
  write_file_atomically(folder_ / "MANIFEST.json", "{}");
  seal_files({{output_, folder_ / "MANIFEST.json"}, folder_ / "a.tar.zst", {{}, "jane", "", {}}, "", ""});
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  EXPECT_TRUE(found.broken.empty());
  EXPECT_EQ(found.files, 4);
}

TEST_F(ArchiveTest, AFileChangedAfterSealingIsNamed) {
  write_run();
  seal();
  rewrite([](const std::string& name, std::string& content) {
    if (name == "output/training.log") content += "one more line\n";
  });
  const Verification found = verify_changed();
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0].file, "output/training.log");
  EXPECT_EQ(found.broken[0].what, "SHA-256");
}

TEST_F(ArchiveTest, HostileArchivesAreRefused) {
  for (const char* name : {"../outside", "/etc/shadow", "a/../../b", "line\nbreak"}) {
    write_tar({{name, "x"}});
    EXPECT_THROW(verify_changed(), Error) << name;
  }
  write_tar({{"link", ""}}, AE_IFLNK);
  EXPECT_THROW(verify_changed(), Error);
  write_tar({{"fine", "x"}});
  EXPECT_THROW(verify_changed(), Error);  // no manifest
  write_file_atomically(folder_ / "changed.tar", "this is no archive");
  EXPECT_THROW(verify_changed(), Error);
  write_file_atomically(folder_ / "changed.tar", "");
  EXPECT_THROW(verify_changed(), Error);
}

TEST_F(ArchiveTest, WhatUnpacksToTooMuchIsRefused) {
  write_file_atomically(output_ / "big.log", std::string(5'000'000, 'x'));
  seal();
  EXPECT_LT(fs::file_size(folder_ / "a.tar.zst"), 20'000u);
  const auto ignore = [](const std::string&, std::string) {};
  EXPECT_THROW(read_sealed_files(folder_ / "a.tar.zst", ignore, {1'000'000, 1'000'000, 10}), Error);
  EXPECT_NO_THROW(read_sealed_files(folder_ / "a.tar.zst", ignore));
}

TEST_F(ArchiveTest, NothingToSealIsSaid) {
  fs::create_directories(output_);
  EXPECT_THROW(seal(), Error);
  EXPECT_FALSE(fs::exists(folder_ / "a.tar.zst"));
  EXPECT_THROW(seal_files({{folder_ / "nowhere"}, folder_ / "a.tar.zst", {}, "", ""}), Error);
  EXPECT_THROW(seal_files({{output_}, folder_ / "a.zip", {}, "", ""}), Error);
}

}  // namespace
}  // namespace tprimat
