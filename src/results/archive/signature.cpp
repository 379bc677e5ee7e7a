#include "archive/signature.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "archive/archive_format.h"
#include "base/error.h"
#include "base/files.h"
#include "process/process.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

constexpr double k_seconds_to_sign = 120.0;  // the user may have to touch a key or type its passphrase
constexpr double k_seconds_to_check = 20.0;

fs::path add_file(const ScratchFolder& folder, const char* name, const std::string& content) {
  write_file_atomically(folder.path() / name, content);
  return folder.path() / name;
}

Captured run_ssh_keygen(ProcessRunner& runner, std::vector<std::string> arguments, double seconds,
                        const std::string& input = "") {
  arguments.insert(arguments.begin(), "ssh-keygen");
  auto run = run_captured(runner, arguments, seconds, input);
  if (run) return std::move(*run);
  throw Error(Problem{"the program 'ssh-keygen' is not in PATH", "",
                      "install it (Debian: apt-get install openssh-client): it makes and checks signatures"},
              ExitStatus::missing_component);
}

std::string last_line(const std::string& output) {
  std::string last = "no reason given";
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

// "ssh-ed25519", "ecdsa-sha2-nistp256", "sk-ssh-ed25519@openssh.com"
bool is_key_type(const std::string& word) {
  return word.starts_with("ssh-") || word.starts_with("ecdsa-") || word.starts_with("sk-");
}

struct PublicKey {
  std::string type, key, comment;  // comment: free text of the owner
};

// The keys of a file of public keys, one per line. A file of allowed signers gives none: its lines begin with names.
std::vector<PublicKey> read_public_keys(const std::string& text) {
  std::vector<PublicKey> keys;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    PublicKey found;
    std::istringstream words(line);
    words >> found.type >> found.key >> std::ws;
    std::getline(words, found.comment);
    if (!is_key_type(found.type) || found.key.empty()) return {};
    keys.push_back(found);
  }
  return keys;
}

std::string list_signers(const std::vector<PublicKey>& keys) {
  std::string lines;
  for (const PublicKey& each : keys) lines += fmt::format("signer {} {}\n", each.type, each.key);
  return lines;
}

// "Good "tprimat-archive" signature for alice with ED25519 key SHA256:...": "ED25519 key SHA256:..."
std::string key_in(const std::string& output) {
  const size_t with = output.rfind(" with ");
  if (with == std::string::npos) return "a key that ssh-keygen does not name";
  const size_t begin = with + std::string_view(" with ").size();
  return output.substr(begin, output.find('\n', begin) - begin);
}

// Whether a principal is a pattern and not a name.
bool is_pattern(const std::string& principal) { return principal.find_first_of("*?!") != std::string::npos; }

// The first name of "alice,bob" in a file of allowed signers stands for all of them; a pattern where there is no name.
std::string first_principal(const std::string& output) {
  std::string list = output;
  std::ranges::replace(list, '\n', ',');
  std::istringstream names(list);
  std::string pattern;
  for (std::string name; std::getline(names, name, ',');) {
    if (!name.empty() && !is_pattern(name)) return name;
    if (pattern.empty() && !name.starts_with('!')) pattern = name;
  }
  return pattern;
}

class SignatureCheck {
 public:
  SignatureCheck(ProcessRunner& runner, const Verification& found)
      : runner_(runner),
        manifest_(add_file(folder_, k_manifest_name, found.manifest).string()),
        signature_(add_file(folder_, k_signature_name, *found.signature).string()) {}

  // The name of the allowed signer who made the signature; nothing if none of them did.
  std::optional<std::string> find_principal(const fs::path& signers) const {
    const Captured run = run_ssh_keygen(runner_, {"-Y", "find-principals", "-s", signature_, "-f", signers.string()},
                                        k_seconds_to_check);
    const std::string principal = first_principal(run.output);
    return run.exit.success() && !principal.empty() ? std::optional(principal) : std::nullopt;
  }

  Captured verify(const fs::path& signers, const std::string& principal) const {
    return run_ssh_keygen(
        runner_,
        {"-Y", "verify", "-f", signers.string(), "-I", principal, "-n", k_signature_namespace, "-s", signature_},
        k_seconds_to_check, manifest_);
  }

  // Checks that anybody, trusted or not, signed these bytes.
  Captured check_novalidate() const {
    return run_ssh_keygen(runner_, {"-Y", "check-novalidate", "-n", k_signature_namespace, "-s", signature_},
                          k_seconds_to_check, manifest_);
  }

  const ScratchFolder& folder() const { return folder_; }

 private:
  ProcessRunner& runner_;
  ScratchFolder folder_;
  std::string manifest_, signature_;
};

}  // namespace

// PROTOCOL.sshsig: one block of base64 between two lines. Text around it is not signed.
bool is_one_signature(const std::string& text) {
  constexpr std::string_view k_begin = "-----BEGIN SSH SIGNATURE-----\n", k_end = "-----END SSH SIGNATURE-----";
  if (!text.starts_with(k_begin)) return false;
  const size_t end = text.find(k_end);
  if (end == std::string::npos || text.substr(k_begin.size(), end - k_begin.size()).find('-') != std::string::npos)
    return false;
  const std::string rest = text.substr(end + k_end.size());
  return rest.empty() || rest == "\n";
}

std::string sign_text(ProcessRunner& runner, const fs::path& key, const std::string& text) {
  if (!fs::is_regular_file(key))
    throw Error(Problem{"is not a key file", key.string(), "make one: ssh-keygen -t ed25519 -f KEYFILE"});
  const ScratchFolder folder;
  const fs::path file = add_file(folder, k_manifest_name, text);
  const Captured run = run_ssh_keygen(
      runner, {"-Y", "sign", "-f", fs::absolute(key).string(), "-n", k_signature_namespace, file.string()},
      k_seconds_to_sign);
  const fs::path signature = folder.path() / k_signature_name;
  if (!run.exit.success() || !fs::exists(signature))
    throw Error(Problem{fmt::format("cannot sign: {}", last_line(run.output)), key.string(),
                        "give a private key file, or the .pub file of a key that ssh-agent holds"});
  return read_file(signature);
}

void check_signature(ProcessRunner& runner, const fs::path& trusted, Verification& found) {
  const std::string text = read_file(trusted);
  const auto refute = [&](const std::string& stated, const std::string& derived) {
    found.broken.push_back({k_manifest_name, "signature", stated, derived, trusted.string()});
  };
  if (!found.signature) return refute("nothing", "a signature by one of the trusted keys");
  if (!is_one_signature(*found.signature)) return;  // reported by verify_files()
  const SignatureCheck check(runner, found);
  const std::vector<PublicKey> keys = read_public_keys(text);
  const fs::path signers = add_file(check.folder(), "signers", keys.empty() ? text : list_signers(keys));
  const auto principal = check.find_principal(signers);
  if (!principal) {
    const Captured anybody = check.check_novalidate();
    return refute(anybody.exit.success() ? "by " + key_in(anybody.output) : last_line(anybody.output), "no such key");
  }
  const bool has_name = keys.size() == 1 && !keys[0].comment.empty();
  const std::string name = keys.empty() ? *principal : has_name ? keys[0].comment : trusted.string();
  const Captured run = check.verify(signers, *principal);
  if (!run.exit.success()) {
    found.broken.push_back({k_signature_name,
                            fmt::format("the signature by {} is invalid: it covers another text or a namespace other "
                                        "than {}, or the key is not allowed to sign in it",
                                        name, k_signature_namespace),
                            "", ""});
    return;
  }
  if (keys.empty() && is_pattern(*principal)) {
    found.signed_by = fmt::format("{}, which the pattern {} allows", key_in(run.output), *principal);
    return;
  }
  found.signed_by = fmt::format("{}, {}", name, key_in(run.output));
}

}  // namespace tprimat::results
