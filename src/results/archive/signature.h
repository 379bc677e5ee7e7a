#pragma once

#include <filesystem>
#include <string>

#include "archive/verify.h"
#include "process/process.h"

namespace tprimat::results {

// Namespace of the signatures of manifests. OpenSSH's ssh-keygen makes and checks them (PROTOCOL.sshsig).
inline constexpr const char* k_signature_namespace = "tprimat-archive";

// Signs `text` with a private key: its file, or the file of its public key if ssh-agent holds the private one. Throws
// Error for a key that cannot sign, and if ssh-keygen is not installed.
std::string sign_text(ProcessRunner& runner, const std::filesystem::path& key, const std::string& text);

// Whether a text is one signature and nothing else.
bool is_one_signature(const std::string& text);

// Checks the signature of a manifest. `trusted` is a file of allowed signers (ssh-keygen(1)) or of public keys. A
// signature that is missing, by another key or of other bytes is invalid; else `signed_by` names the signer. Throws
// Error for a file that cannot be read, and if ssh-keygen is not installed.
void check_signature(ProcessRunner& runner, const std::filesystem::path& trusted, Verification& found);

}  // namespace tprimat::results
