#include "archive/redactor.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/environment.h"
#include "text/json.h"

extern char** environ;

namespace tprimat::results {
namespace {

// A part of a text.
struct TextSpan {
  size_t begin = 0, size = 0;
};
using Spans = std::vector<TextSpan>;

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_variable(char c) { return is_alnum(c) || c == '_'; }
bool is_name(char c) { return is_variable(c) || c == '-'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_base64(char c) { return is_alnum(c) || c == '+' || c == '/' || c == '='; }
bool is_token(char c) { return is_base64(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

// Number of characters from `begin` on that pass the test.
template <class Test>
size_t run_of(std::string_view text, size_t begin, Test test) {
  size_t end = begin;
  while (end < text.size() && test(text[end])) ++end;
  return end - begin;
}

template <class Visit>
void visit_all(std::string_view text, std::string_view mark, Visit visit) {
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + mark.size())) visit(at);
}

std::string_view name_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_variable(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// A count of tokens is not a secret, and a number in JSON cannot be replaced.
bool is_number(std::string_view text) { return text.find_first_not_of("0123456789.+-eE") == std::string_view::npos; }

bool is_plain_word(std::string_view value) {
  constexpr std::array k_words = {"true", "false", "null", "none", "None", "True", "False", "yes", "no"};
  return is_number(value) || std::ranges::find(k_words, value) != k_words.end();
}

// Trainers print names of special tokens (eos_token=...), so after *TOKEN only random-looking text is a secret.
bool is_secret_value(std::string_view name, std::string_view value) {
  constexpr size_t k_shortest = 4, k_shortest_token = 8;
  if (value.size() < k_shortest || is_plain_word(value) || !names_a_secret(name)) return false;
  if (value.find_first_of("<[$*{") == 0) return false;  // a stand-in, a variable, a special token
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper.find("TOKEN") == std::string::npos) return true;
  return value.size() >= k_shortest_token && value.find_first_of("0123456789") != std::string_view::npos;
}

bool is_quote(char c) { return c == '"' || c == '\''; }

// DB_PASSWORD, as programs print variables; other words may be prose.
bool is_variable_like(std::string_view name) {
  return name.find('_') != std::string_view::npos && name.find_first_of("abcdefghijklmnopqrstuvwxyz") == name.npos;
}

// A value in quotes ends at the same quote, which a backslash inside does not make; \"...\" at the next \".
TextSpan value_at(std::string_view text, size_t begin) {
  const bool is_escaped = begin < text.size() && text[begin] == '\\';
  if (is_escaped) ++begin;
  if (begin >= text.size() || !is_quote(text[begin])) {
    constexpr std::string_view k_ends = "\"'\\,;&|)}]> \t\r\n";
    return {begin, run_of(text, begin, [&](char c) { return k_ends.find(c) == std::string_view::npos; })};
  }
  const char quote = text[begin++];
  size_t end = begin;
  for (; end < text.size() && text[end] != '\n'; ++end) {
    if (text[end] == quote) break;
    if (text[end] != '\\') continue;
    if (is_escaped) break;
    ++end;
  }
  return {begin, std::min(end, text.size()) - begin};
}

// "NAME=value", "NAME = 'a value'", "\"name\": \"value\"", and "name: value" at the start of a line or where the name
// is a variable's.
void find_named(std::string_view text, size_t separator, Spans& spans) {
  size_t name_end = separator;
  while (name_end > 0 && is_blank(text[name_end - 1])) --name_end;
  const bool is_quoted = name_end > 0 && is_quote(text[name_end - 1]);
  if (is_quoted) --name_end;
  const std::string_view name = name_before(text, name_end);
  if (name.empty()) return;
  if (text[separator] == ':' && !is_quoted && !is_variable_like(name)) {
    auto start = static_cast<size_t>(name.data() - text.data());
    while (start > 0 && (is_blank(text[start - 1]) || text[start - 1] == '-')) --start;
    if (start > 0 && text[start - 1] != '\n') return;
  }
  const TextSpan value = value_at(text, separator + 1 + run_of(text, separator + 1, is_blank));
  if (is_secret_value(name, text.substr(value.begin, value.size))) spans.push_back(value);
}

// "https://user:password@host"
void find_password(std::string_view text, size_t scheme, Spans& spans) {
  const size_t begin = scheme + 3;
  const size_t end = text.find_first_of("/ \t\r\n\"'<>", begin);
  const std::string_view address = text.substr(begin, end == std::string_view::npos ? end : end - begin);
  const size_t at = address.rfind('@'), colon = address.find(':');
  if (at == std::string_view::npos || colon >= at || colon + 1 == at) return;
  spans.push_back({begin + colon + 1, at - colon - 1});
}

void find_bearer(std::string_view text, size_t begin, Spans& spans) {
  constexpr size_t k_shortest = 16;
  const size_t size = run_of(text, begin, is_token);
  if (size >= k_shortest) spans.push_back({begin, size});
}

// "eyJhbGciOi.eyJzdWIi.signature"
void find_web_token(std::string_view text, size_t begin, Spans& spans) {
  constexpr size_t k_shortest = 20;
  if (begin > 0 && is_token(text[begin - 1])) return;
  const size_t size = run_of(text, begin, [](char c) { return is_name(c) || c == '.'; });
  const std::string_view token = text.substr(begin, size);
  if (size >= k_shortest && token.find(".eyJ") != std::string_view::npos) spans.push_back({begin, size});
}

// The lines between BEGIN and END, or as long as they are base64.
void find_private_key(std::string_view text, size_t begin, Spans& spans) {
  const size_t line = text.find("-----", begin + 5);
  if (line == std::string_view::npos || text.substr(begin, line - begin).find("PRIVATE KEY") == std::string_view::npos)
    return;
  const size_t end = std::min(text.find("-----END", line + 5), text.size());
  for (size_t at = line + 5; at < end;) {
    const size_t size = run_of(text.substr(0, end), at, is_base64);
    constexpr size_t k_shortest = 3;  // excludes the n of an escaped line end
    if (size >= k_shortest) spans.push_back({at, size});
    at += std::max<size_t>(1, size);
    if (end == text.size() && at < end && !is_base64(text[at]) && text[at] != '\n' && text[at] != '\r') break;
  }
}

// "AKIA... wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": on the same line or the next, forty characters.
void find_aws_secret(std::string_view text, size_t key, Spans& spans) {
  constexpr size_t k_key = 20, k_secret = 40, k_near = 120;
  if (run_of(text, key, is_alnum) != k_key) return;
  const size_t end = std::min(text.size(), key + k_key + k_near);
  for (size_t at = key + k_key; at < end;) {
    const size_t size = run_of(text, at, is_base64);
    if (size == k_secret) return spans.push_back({at, size});
    at += std::max<size_t>(1, size);
  }
}

Spans without_overlaps(Spans spans) {
  std::ranges::sort(spans, [](const TextSpan& a, const TextSpan& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size > b.size;
  });
  Spans apart;
  for (const TextSpan& each : spans)
    if (apart.empty() || each.begin >= apart.back().begin + apart.back().size) apart.push_back(each);
  return apart;
}

// Secrets that a text states beside their names or in a known form, in order and without overlaps.
Spans find_stated_secrets(std::string_view text) {
  Spans spans;
  visit_all(text, "=", [&](size_t at) { find_named(text, at, spans); });
  visit_all(text, ":", [&](size_t at) { find_named(text, at, spans); });
  visit_all(text, "://", [&](size_t at) { find_password(text, at, spans); });
  for (const std::string_view mark : {"Bearer ", "bearer ", "Authorization: Basic "})
    visit_all(text, mark, [&](size_t at) { find_bearer(text, at + mark.size(), spans); });
  visit_all(text, "eyJ", [&](size_t at) { find_web_token(text, at, spans); });
  visit_all(text, "-----BEGIN", [&](size_t at) { find_private_key(text, at, spans); });
  for (const std::string_view mark : {"AKIA", "ASIA"})
    visit_all(text, mark, [&](size_t at) { find_aws_secret(text, at, spans); });
  return without_overlaps(std::move(spans));
}

constexpr size_t k_shortest_secret = 8;  // "true" or "1" behind a name like USE_TOKEN is not a secret

bool stands_alone(std::string_view text, size_t begin, size_t size) {
  return (begin == 0 || !is_name(text[begin - 1])) && (begin + size >= text.size() || !is_name(text[begin + size]));
}

// Names that many machines share identify nobody and occur in logs as ordinary words.
bool is_telling(const std::string& user) {
  constexpr std::array k_common = {"root", "user", "admin", "ubuntu", "debian", "nobody", "test"};
  return user.size() >= 3 && std::ranges::find(k_common, user) == k_common.end();
}

struct TokenShape {
  std::string_view prefix;
  size_t shortest;     // characters behind the prefix
  bool plain = false;  // only letters and digits: hf_trainer_of_ours is a name
};
constexpr std::array k_token_shapes = {
    TokenShape{"hf_", 20, true}, TokenShape{"ghp_", 20, true}, TokenShape{"github_pat_", 20}, TokenShape{"sk-", 20},
    TokenShape{"AKIA", 16},      TokenShape{"ASIA", 16},       TokenShape{"AIza", 35},        TokenShape{"xoxb-", 20},
    TokenShape{"glpat-", 16},    TokenShape{"nvapi-", 20}};

std::string escape_in_json(const std::string& text) {
  const std::string quoted = print_json_line(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string why_not_hidden(const std::string& text) {
  if (text.size() < k_shortest_secret)
    return fmt::format("is shorter than {} characters, so that other words may hold it", k_shortest_secret);
  return is_number(text) ? "is a number, which may be a figure of a result" : "";
}

Redactor::Redactor(const RedactionOptions& options) {
  for (const std::string& secret : options.secrets) {
    if (!why_not_hidden(secret).empty()) continue;
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
  std::ranges::stable_sort(words_, [](const Word& a, const Word& b) { return a.from.size() > b.from.size(); });
}

// Replaces the part that `find` returns for each occurrence of `mark` in the text, unless it is empty.
template <class Find>
std::string Redactor::replace(std::string text, std::string_view mark, std::string_view by, const std::string& kind,
                              Find find) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    if (at < done) continue;
    const TextSpan part = find(text, at);
    if (part.size == 0) continue;
    result.append(text, done, part.begin - done).append(by);
    done = part.begin + part.size;
    ++counts_[kind];
  }
  return done > 0 ? result.append(text, done) : text;
}

std::string Redactor::redact(std::string_view given) {
  std::string text(given);
  for (const Word& word : words_)
    text = replace(std::move(text), word.from, word.to, word.kind, [&](std::string_view in, size_t at) {
      return TextSpan{at, word.whole && !stands_alone(in, at, word.from.size()) ? 0 : word.from.size()};
    });
  text = replace_stated(std::move(text));
  for (const auto& [prefix, shortest, plain] : k_token_shapes)
    text = replace(std::move(text), prefix, k_hidden_secret, "secret", [&](std::string_view in, size_t at) {
      const size_t behind = at + prefix.size(), length = run_of(in, behind, plain ? is_alnum : is_name);
      const bool is_inside = at > 0 && is_name(in[at - 1]);
      return TextSpan{at, is_inside || length < shortest ? 0 : run_of(in, at, is_name)};
    });
  for (const std::string_view folder : {"/home/", "/Users/"})
    text = replace(std::move(text), folder, "user", "home", [&](std::string_view in, size_t at) {
      const size_t name = at + folder.size(), size = run_of(in, name, is_name);
      return TextSpan{name, in.substr(name, size) == "user" ? 0 : size};
    });
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

bool holds_stand_in(std::string_view text) {
  if (text.find(k_hidden_secret) != std::string_view::npos || text.starts_with("~")) return true;
  for (const std::string_view word : {"user", "host-"})
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      const size_t size = run_of(text, at, is_name);
      if (stands_alone(text, at, size) && (word != "user" || size == word.size())) return true;
    }
  return false;
}

RedactionOptions local_redaction(bool with_hosts) {
  RedactionOptions options;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    const size_t equals = assignment.find('=');
    if (equals != std::string_view::npos && holds_a_secret(assignment.substr(0, equals), assignment.substr(equals + 1)))
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
