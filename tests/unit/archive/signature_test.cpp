// Signatures of manifests, made and checked by ssh-keygen itself.
#include "archive/signature.h"

#include <algorithm>

#include "base/error.h"
#include "process/process.h"
#include "unit/archive/archive_folder.h"

namespace tprimat::results {
namespace {

class SignatureTest : public ArchiveTest {
 protected:
  // A name with a dash at its beginning and a space in it must reach ssh-keygen as it is.
  void SetUp() override {
    fs::create_directories(folder_ / "-my keys");
    if (!make_key("alice")) GTEST_SKIP() << "ssh-keygen is missing: apt-get install openssh-client";
    make_key("bob");
    write_run();
  }

  bool make_key(const std::string& name) {
    const auto run = run_captured(runner_, {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name + "@example.org",
                                            "-f", key(name).string()});
    return run && run->exit.success();
  }
  fs::path key(const std::string& name) const { return folder_ / "-my keys" / ("-" + name); }
  fs::path public_key(const std::string& name) const { return key(name).string() + ".pub"; }

  void seal_signed_by(const std::string& name) {
    SealRequest request{{output_}, folder_ / "a.tar.zst", {}, "tprimat test", "2026-01-01T00:00:00Z"};
    request.sign = [&](const std::string& manifest) { return sign_text(runner_, key(name), manifest); };
    seal_files(request);
  }

  Verification verify_signed_by(const fs::path& archive, const fs::path& trusted) {
    Verification found = verify_archive(folder_ / archive);
    check_signature(runner_, trusted, found);
    return found;
  }

  static void expect_refuted(const Verification& found, const std::string& stated) {
    EXPECT_EQ(found.signed_by, "");
    ASSERT_EQ(found.broken.size(), 1u);
    EXPECT_EQ(found.broken[0].what, "signature");
    EXPECT_NE(found.broken[0].stated.find(stated), std::string::npos) << found.broken[0].stated;
  }

  LocalRunner runner_;
};

TEST_F(SignatureTest, HoldsForTheKeyAndForAllowedSigners) {
  seal_signed_by("alice");
  Verification found = verify_signed_by("a.tar.zst", public_key("alice"));
  EXPECT_TRUE(found.broken.empty()) << found.broken[0].stated << found.broken[0].derived;
  EXPECT_TRUE(found.signed_by.starts_with("alice@example.org, ED25519 key SHA256:")) << found.signed_by;
  const fs::path signers = folder_ / "allowed signers";
  write_file_atomically(signers,
                        "# ours\nbob " + read_file(public_key("bob")) + "alice,al " + read_file(public_key("alice")));
  found = verify_signed_by("a.tar.zst", signers);
  EXPECT_TRUE(found.broken.empty());
  EXPECT_TRUE(found.signed_by.starts_with("alice, ED25519 key SHA256:")) << found.signed_by;
}

TEST_F(SignatureTest, OfSomebodyElseDoesNotHold) {
  seal_signed_by("alice");
  expect_refuted(verify_signed_by("a.tar.zst", public_key("bob")), "by ED25519 key SHA256:");
  const fs::path signers = folder_ / "signers";
  write_file_atomically(signers, "alice namespaces=\"git\" " + read_file(public_key("alice")));
  const Verification found = verify_signed_by("a.tar.zst", signers);  // allowed to sign other things
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_NE(found.broken[0].what.find("the signature by alice is invalid"), std::string::npos);
  write_file_atomically(signers, "");
  expect_refuted(verify_signed_by("a.tar.zst", signers), "by ED25519 key");
}

TEST_F(SignatureTest, OfAnotherManifestDoesNotHold) {
  seal_signed_by("alice");
  rewrite([](const std::string& name, std::string& content) {
    if (name == k_manifest_name) content.replace(content.find("2026-01-01"), 10, "2025-01-01");
  });
  EXPECT_EQ(verify_signed_by("changed.tar", public_key("alice")).broken.size(), 1u);
}

TEST_F(SignatureTest, ThatWasStrippedIsMissed) {
  seal();
  expect_refuted(verify_signed_by("a.tar.zst", public_key("alice")), "nothing");
}

TEST_F(SignatureTest, ThatIsNoneDoesNotHold) {
  seal_signed_by("alice");
  rewrite([](const std::string& name, std::string& content) {
    if (name == k_signature_name) content = "no signature";
  });
  EXPECT_EQ(verify_signed_by("changed.tar", public_key("alice")).broken.size(), 1u);
}

TEST_F(SignatureTest, WithOtherBytesAroundItDoesNotHold) {
  seal_signed_by("alice");
  for (const bool before : {true, false}) {
    rewrite([&](const std::string& name, std::string& content) {
      if (name == k_signature_name) content = before ? "claim\n" + content : content + "claim\n";
    });
    const Verification found = verify_signed_by("changed.tar", public_key("alice"));
    ASSERT_EQ(found.broken.size(), 1u);
    EXPECT_EQ(found.broken[0].what, "is not exactly one SSH signature");
    EXPECT_EQ(found.signed_by, "");
  }
}

TEST_F(SignatureTest, OfAPatternNamesTheKey) {
  seal_signed_by("alice");
  const fs::path signers = folder_ / "signers";
  write_file_atomically(signers, "*@example.org " + read_file(public_key("alice")));
  Verification found = verify_signed_by("a.tar.zst", signers);
  EXPECT_TRUE(found.broken.empty());
  EXPECT_TRUE(found.signed_by.starts_with("ED25519 key SHA256:")) << found.signed_by;
  EXPECT_NE(found.signed_by.find("which the pattern *@example.org allows"), std::string::npos) << found.signed_by;
  write_file_atomically(signers, "*@example.org,alice@example.org " + read_file(public_key("alice")));
  found = verify_signed_by("a.tar.zst", signers);
  EXPECT_TRUE(found.signed_by.starts_with("alice@example.org, ED25519")) << found.signed_by;
}

TEST_F(SignatureTest, KeysThatCannotSignAreNamed) {
  EXPECT_THROW(sign_text(runner_, folder_ / "nowhere", "x"), Error);
  write_file_atomically(folder_ / "text", "no key\n");
  EXPECT_THROW(sign_text(runner_, folder_ / "text", "x"), Error);
}

class EmptyPath : public ProcessRunner {
 public:
  std::unique_ptr<ChildProcess> start(const Command&) override {
    throw Error(Problem{"is not in PATH", "", ""}, ExitStatus::missing_component);
  }
};

TEST_F(SignatureTest, WithoutTheProgramItsPackageIsNamed) {
  EmptyPath runner;
  try {
    sign_text(runner, key("alice"), "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(error.problems().front().hint.find("openssh-client"), std::string::npos);
  }
}

}  // namespace
}  // namespace tprimat::results
