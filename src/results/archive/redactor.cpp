#include "archive/redactor.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "archive/secret_shapes.h"
#include "base/environment.h"
#include "text/json.h"

extern char** environ;

namespace tprimat::results {
namespace {

constexpr size_t k_shortest_secret = 8;  // "true" or "1" behind a name like USE_TOKEN is none

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

bool stands_alone(std::string_view text, size_t begin, size_t size) {
  return (begin == 0 || !is_name_character(text[begin - 1])) &&
         (begin + size >= text.size() || !is_name_character(text[begin + size]));
}

// Names that many machines share tell nobody who worked there, and stand in logs as ordinary words.
bool is_telling(const std::string& user) {
  constexpr std::array k_common = {"root", "user", "admin", "ubuntu", "debian", "nobody", "test"};
  return user.size() >= 3 && std::find(k_common.begin(), k_common.end(), user) == k_common.end();
}

struct TokenShape {
  std::string_view prefix;
  size_t shortest;     // characters behind the prefix
  bool plain = false;  // these are letters and digits alone: hf_trainer_of_ours is a name
};
constexpr std::array k_token_shapes = {
    TokenShape{"hf_", 20, true}, TokenShape{"ghp_", 20, true}, TokenShape{"github_pat_", 20}, TokenShape{"sk-", 20},
    TokenShape{"AKIA", 16},      TokenShape{"ASIA", 16},       TokenShape{"AIza", 35},        TokenShape{"xoxb-", 20},
    TokenShape{"glpat-", 16},    TokenShape{"nvapi-", 20}};

// A count of tokens is no secret, and a number in JSON has no stand-in.
bool is_number(std::string_view text) { return text.find_first_not_of("0123456789.+-eE") == std::string_view::npos; }

std::string escape_in_json(const std::string& text) {
  const std::string quoted = print_json_line(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

size_t count_letters_and_digits(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
  return end - begin;
}

size_t name_end(std::string_view text, size_t begin) {
  while (begin < text.size() && is_name_character(text[begin])) ++begin;
  return begin;
}

}  // namespace

Redactor::Redactor(const RedactionOptions& options) {
  for (const std::string& secret : options.secrets) {
    if (secret.size() < k_shortest_secret || is_number(secret)) continue;
    words_.push_back({secret, std::string(k_hidden_secret), "secret", false});
    if (const std::string in_json = escape_in_json(secret); in_json != secret)
      words_.push_back({in_json, std::string(k_hidden_secret), "secret", false});
  }
  if (options.home.size() > 1) words_.push_back({options.home, "~", "home", true});
  if (is_telling(options.user_name)) words_.push_back({options.user_name, "user", "user", true});
  size_t number = 0;
  for (const std::string& host : options.hosts)
    if (!host.empty()) words_.push_back({host, fmt::format("host-{}", ++number), "host", true});
  // The longest first: a host's full name holds its short one, and the home folder the user's name.
  std::stable_sort(words_.begin(), words_.end(),
                   [](const Word& a, const Word& b) { return a.from.size() > b.from.size(); });
}

std::string Redactor::redact(std::string_view text) {
  return replace_homes(replace_tokens(replace_stated(replace_words(std::string(text)))));
}

std::string Redactor::replace_words(std::string text) {
  for (const Word& word : words_) {
    std::string result;
    size_t done = 0;
    for (size_t at = text.find(word.from); at != std::string::npos; at = text.find(word.from, at + 1)) {
      if (at < done || (word.whole && !stands_alone(text, at, word.from.size()))) continue;
      result.append(text, done, at - done).append(word.to);
      done = at + word.from.size();
      ++counts_[word.kind];
    }
    if (done > 0) text = result.append(text, done);
  }
  return text;
}

std::string Redactor::replace_stated(std::string text) {
  std::string result;
  size_t done = 0;
  for (const TextSpan& span : find_stated_secrets(text)) {
    result.append(text, done, span.begin - done).append(k_hidden_secret);
    done = span.begin + span.size;
    ++counts_["secret"];
  }
  return done > 0 ? result.append(text, done) : text;
}

std::string Redactor::replace_tokens(std::string text) {
  for (const auto& [prefix, shortest, plain] : k_token_shapes) {
    std::string result;
    size_t done = 0;
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
      if (at < done) continue;
      const size_t end = name_end(text, at), behind = at + prefix.size();
      const size_t length = plain ? count_letters_and_digits(text, behind) : end - behind;
      if ((at > 0 && is_name_character(text[at - 1])) || length < shortest) continue;
      result.append(text, done, at - done).append(k_hidden_secret);
      done = end;
      ++counts_["secret"];
    }
    if (done > 0) text = result.append(text, done);
  }
  return text;
}

std::string Redactor::replace_homes(std::string text) {
  for (const std::string_view folder : {"/home/", "/Users/"}) {
    std::string result;
    size_t done = 0;
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at + 1)) {
      const size_t name = at + folder.size(), end = name_end(text, name);
      if (end == name || text.compare(name, end - name, "user") == 0) continue;
      result.append(text, done, name - done).append("user");
      done = end;
      ++counts_["home"];
    }
    if (done > 0) text = result.append(text, done);
  }
  return text;
}

bool holds_stand_in(std::string_view text) {
  if (text.find(k_hidden_secret) != std::string_view::npos || text.starts_with("~")) return true;
  for (const std::string_view word : {"user", "host-"})
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
      if (stands_alone(text, at, name_end(text, at) - at) && (word != "user" || name_end(text, at) == at + word.size()))
        return true;
  return false;
}

RedactionOptions local_redaction(bool with_hosts) {
  RedactionOptions options;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    const size_t equals = assignment.find('=');
    if (equals != std::string_view::npos && names_a_secret(assignment.substr(0, equals)))
      options.secrets.emplace_back(assignment.substr(equals + 1));
  }
  if (const passwd* user = ::getpwuid(::getuid()); user != nullptr) {
    options.user_name = user->pw_name;
    options.home = user->pw_dir;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') options.home = home;
  std::array<char, 256> host{};
  if (with_hosts && ::gethostname(host.data(), host.size() - 1) == 0) options.hosts.emplace_back(host.data());
  return options;
}

}  // namespace tprimat::results
