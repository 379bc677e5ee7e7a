#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::results {

// Replacement of a secret.
inline constexpr std::string_view k_hidden_secret = "[redacted]";

// Private data of this machine, besides secrets that are recognised by their form.
struct RedactionOptions {
  std::vector<std::string> secrets;  // values, e.g. of HF_TOKEN; those shorter than 8 characters are left alone
  std::string user_name;             // replaced as a whole word; "root" and the like are not secret
  std::string home;                  // "/home/jane"
  std::vector<std::string> hosts;    // each becomes host-1, host-2, ...; empty: host names stay
};

// Why a text cannot be a secret word; empty where it can.
std::string why_not_hidden(const std::string& text);

// The same word always becomes the same stand-in, so that a log stays readable. Recognised by shape: tokens of Hugging
// Face (hf_...), GitHub (ghp_..., github_pat_...), GitLab, OpenAI and others (sk-...), NVIDIA, Slack, Google
// (AIza...) and AWS (AKIA...); home folders of anybody (/home/NAME, /Users/NAME); values behind names such as
// MY_PASSWORD= or "api_key":, passwords in addresses (https://user:PASSWORD@host), tokens behind Bearer, JSON Web
// Tokens, private keys in PEM form (line by line, so that a log keeps its lines), and the secret behind an AWS key.
class Redactor {
 public:
  explicit Redactor(const RedactionOptions& options);

  std::string redact(std::string_view text);

  // Number of replacements by kind: "secret", "user", "home", "host".
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  template <class Find>
  std::string replace(std::string text, std::string_view mark, std::string_view by, const std::string& kind, Find find);
  std::string replace_stated(std::string text);

  struct Word {
    std::string from, to, kind;
    bool whole;  // only if no adjacent character is part of a name
  };
  std::vector<Word> words_;
  std::map<std::string, int64_t> counts_;
};

// Whether a redactor may have changed a text: it holds one of the replacements above.
bool holds_stand_in(std::string_view text);

// The secrets and names of this process: values of the environment variables that holds_a_secret() accepts
// (base/environment.h); the user; the home folder; with `with_hosts` also the name of this machine.
RedactionOptions local_redaction(bool with_hosts);

}  // namespace tprimat::results
