#include "unit/archive/archive_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "archive/archive_format.h"
#include "archive/redactor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/gzip.h"

namespace tprimat::results {
namespace {

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

TEST(Redactor, HidesSecretsBesideTheirNames) {
  Redactor redactor({});
  for (const auto& [text, redacted] : std::initializer_list<std::pair<const char*, const char*>>{
           {"WANDB_API_KEY=0123456789abcdef0123", "WANDB_API_KEY=[redacted]"},
           {"export MY_PASSWORD=hunter2", "export MY_PASSWORD=[redacted]"},
           {"{\"api_key\": \"a1b2c3d4\", \"x\": 1}", "{\"api_key\": \"[redacted]\", \"x\": 1}"},
           {"  password: hunter2", "  password: [redacted]"},
           {"git clone https://user:hunter2pass@github.com/x", "git clone https://user:[redacted]@github.com/x"},
           {"Authorization: Bearer abcdef.0123456789-xyz", "Authorization: Bearer [redacted]"},
           {"jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl end", "jwt [redacted] end"},
           {"AIzaSyA0123456789012345678901234567890123", "[redacted]"},
           {"AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[redacted] [redacted]"},
           {"-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz=\n-----END RSA PRIVATE KEY-----\nb",
            "-----BEGIN RSA PRIVATE KEY-----\n[redacted]\n[redacted]\n-----END RSA PRIVATE KEY-----\nb"}})
    EXPECT_EQ(redactor.redact(text), redacted);
}

TEST(Redactor, LeavesSettingsWithNamesLikeSecrets) {
  Redactor redactor({});
  for (const char* text :
       {"eos_token=</s>", "pad_token='<|endoftext|>'", "moe_token_dispatcher_type=alltoall", "max_tokens=4096",
        "USE_TOKEN=true", "MY_PASSWORD=$PASSWORD", "token: 12", "see https://host:8080/x and a@b", "lr=0.001",
        "MY_PASSWORD=[redacted]", "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----"})
    EXPECT_EQ(redactor.redact(text), text);
}

TEST_F(ArchiveTest, LinksAndPipesAreNamed) {
  write_run();
  fs::create_symlink("training.log", output_ / "link.log");
  ASSERT_EQ(::mkfifo((output_ / "pipe.log").c_str(), 0600), 0);
  std::vector<std::string> reasons;
  for (const LeftOut& each : seal().left_out) reasons.push_back(each.reason);
  for (const char* reason : {"a link: pass the file itself", "not a regular file"})
    EXPECT_NE(std::find(reasons.begin(), reasons.end(), reason), reasons.end()) << reason;
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
  const std::string text = "hf_trainer_of_bars_and_dicts trueness root cause janet hf_short sk-ip node17 /rooted/path";
  EXPECT_EQ(redactor.redact(text), text);
  Redactor named({{}, "jan", "/home/jan", {}});
  EXPECT_EQ(named.redact("january jan's jan_x"), "january user's jan_x");
}

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

TEST_F(ArchiveTest, TracesBesideResultsAreSealedWithoutPrivateData) {
  const fs::path traces = output_ / "train_x_profile";
  write_file_atomically(traces / "rank_0.json.gz", gzip(R"({"traceName": "/home/jane/rank_0.json"})"));
  write_file_atomically(traces / "rank_1.json.gz", gzip(R"({"traceEvents": []})"));
  write_file_atomically(traces / "rank_2.json.gz", "no gzip file");
  write_file_atomically(output_ / "other.json.gz", gzip("{}"));
  const Seal sealed = seal_files({{output_}, folder_ / "a.tar.zst", {{}, "jane", "", {}}, "", ""});
  std::map<std::string, std::string> files;
  read_sealed_files(folder_ / "a.tar.zst",
                    [&](const std::string& name, std::string content) { files[name] = std::move(content); });
  const auto trace = gunzip(files.at("output/train_x_profile/rank_0.json.gz"), 1000);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->find("jane"), std::string::npos);
  EXPECT_EQ(files.at("output/train_x_profile/rank_1.json.gz"), read_file(traces / "rank_1.json.gz"));
  EXPECT_EQ(files.size(), 3u) << "with the manifest";
  ASSERT_EQ(sealed.left_out.size(), 2u);
}

TEST_F(ArchiveTest, AResultWhoseNameIsTakenIsVerifiedToo) {
  write_run();
  fs::rename(output_ / "train_nvd_mega_llama.json", output_ / "jane.json");
  fs::rename(output_ / "runs", folder_ / "runs");
  fs::copy_file(output_ / "jane.json", output_ / "user.json");
  const Seal sealed = seal_files({{output_}, folder_ / "a.tar.zst", {{}, "jane", "", {}}, "", ""});
  EXPECT_EQ(sealed.manifest.files[2].path, "output/user-2.json");
  EXPECT_EQ(verify_archive(folder_ / "a.tar.zst").results, 2);
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
}  // namespace tprimat::results
